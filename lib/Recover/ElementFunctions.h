//===- ElementFunctions.h - what exporters evaluate of a parameter ---------------===//
//
// One table for all that recognise a function: by the name of the program's operation, by the operator, or by values.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_ELEMENTFUNCTIONS_H
#define LOWTIDE_LIB_RECOVER_ELEMENTFUNCTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include "onnx/onnx_pb.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lowtide {

class UnfoldingGraph;

/// A function of an element x, and perhaps of a number c that is the same for all.
struct ElementFunction {
  /// What stands beside x among the operands of the first operator. `Sum`: the number comes from all elements.
  enum Other { Nothing, NumberLast, NumberFirst, Itself, Sum };

  /// The operation of the exported program.
  const char *operation;
  /// The operators that compute it, one after the other; the second may be null.
  const char *ops[2];
  Other other;
  double (*evaluate)(double x, double c);
  /// The number that makes y of x; null: it takes none.
  double (*solve)(double x, double y);
  /// Null: it has none, or has a number.
  double (*inverse)(double y);

  bool takesNumber() const { return other == NumberLast || other == NumberFirst; }
  llvm::SmallVector<llvm::StringRef> operators() const;
};

/// All of them. Where several fit the same values, the first is meant: programs that know a number compute with it.
llvm::ArrayRef<ElementFunction> elementFunctions();

/// The function without a number that the program calls `operation`; null: there is none.
const ElementFunction *findElementFunction(llvm::StringRef operation);

/// Whether some function, with or without a number, is called `operation`.
bool isElementOperation(llvm::StringRef operation);

/// A number as someone wrote it, of few digits, and how many these are; NAN: it is none.
std::pair<double, int> asWritten(double number);

/// Elements of the largest tensors whose values are compared where no note speaks for what they are.
inline constexpr int64_t largestCompared = 1 << 20;
/// The f32 values of `tensor`; empty where they cannot be read.
std::vector<float> valuesOf(const UnfoldingGraph &graph, const ::onnx::TensorProto &tensor);

/// Whether an exporter that evaluates in f32 may have got `value` where `expected` is right; `scale`: the largest
/// number that was added on the way.
bool isEvaluated(double expected, double value, double scale = 0);

/// The number with which `function` makes `values` of `parameter`, which has as many (0 where it takes none); nullopt:
/// it does not.
std::optional<double> matchFunction(const ElementFunction &function, llvm::ArrayRef<float> parameter,
                                    llvm::ArrayRef<float> values);

/// Whether `values` cannot be the function's of `parameter` by chance: there are a few, and they differ by more than
/// what the comparison forgives.
bool isTelling(const ElementFunction &function, llvm::ArrayRef<float> parameter, llvm::ArrayRef<float> values);

/// Adds nodes that compute the function of `value`, and returns the name of what they give.
std::string addFunction(UnfoldingGraph &graph, const ElementFunction &function, double number, std::string value);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_ELEMENTFUNCTIONS_H
