//===- Expressions.h - what an operation of a program makes of first values -------===//
//
// Operations that exporters evaluate of parameters, executed in f64 on the file's values: each has a few forms, by the
// axis that it is over and the order of its operands, which notes do not tell.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_EXPRESSIONS_H
#define LOWTIDE_LIB_RECOVER_EXPRESSIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

class UnfoldingGraph;

/// Numbers with dimensions.
struct Numbers {
  std::vector<double> values;
  llvm::SmallVector<int64_t> dims;
  /// The largest number that was added on the way: what rounding is measured by.
  double scale = 0;
};

/// One way to apply an operation.
struct Step {
  enum Kind {
    Function,  ///< of each element: `op`
    Pairs,     ///< of two elements at a time, or of one and `number`: `op`
    Reduce,    ///< over `axes`, of `number` elements each: `op`, with or without the dimensions that are gone
    Normalize, ///< `Softmax` or `LogSoftmax` over `axes`
    Product,   ///< of two matrices, the second transposed where `turnsSecond`
    Turn,      ///< dimensions in the order `axes`
    View,      ///< into `dims`
    Repeat,    ///< in front and along dimensions of one, into `dims`
    Take,      ///< the elements `axes`, into `dims`; −1: zero
  };
  Kind kind;
  const char *op = "";
  llvm::SmallVector<unsigned, 3> operands; ///< which values
  llvm::SmallVector<int64_t> axes = {}, dims = {};
  std::optional<double> number = std::nullopt; ///< takes the place of an operand
  int64_t size = 0;                            ///< of `Take`: elements of the operand
  bool numberFirst = false, keepsDims = false, turnsSecond = false;
};

/// Elements of a tensor.
inline int64_t sizeOf(llvm::ArrayRef<int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t(1), std::multiplies<>());
}

/// What the step gives; nullopt: its operands do not fit.
std::optional<Numbers> evaluate(const Step &step, llvm::ArrayRef<Numbers> values);

/// How many multiplications `evaluate` takes.
int64_t costOf(const Step &step, llvm::ArrayRef<Numbers> values);

/// The operands that an operation may have at least and at most; {0, 0}: it is not known.
std::pair<unsigned, unsigned> countOperands(llvm::StringRef operation);

/// How many places the forms of an operation that takes elements by their places hold together; 0: it is none. Of a
/// large tensor they are too many to list.
int64_t countPlaces(llvm::StringRef operation, const Numbers &of);

/// All ways to apply `operation` to `operands`, in this order; `goal`: the dimensions of what is looked for.
std::vector<llvm::SmallVector<Step, 2>> findForms(llvm::StringRef operation, llvm::ArrayRef<unsigned> operands,
                                                  llvm::ArrayRef<Numbers> values, llvm::ArrayRef<int64_t> goal);

/// Whether exchanging the operands changes nothing.
bool isSymmetric(llvm::StringRef operation);

/// Adds nodes that compute the step of the values `names`, and returns the name of what they give.
std::string addStep(UnfoldingGraph &graph, const Step &step, llvm::ArrayRef<std::string> names);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_EXPRESSIONS_H
