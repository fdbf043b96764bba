//===- DimExpression.h - sizes that exporters derive from others -----------------===//
//
// `2*h`, `s - 1`, `8*s`, `h//2`, `batch*seq`, `((s - 1)//2) + 1`, `Max(1, s)`: PyTorch's exporter calls a dimension by
// how it is computed.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_DIMEXPRESSION_H
#define LOWTIDE_LIB_IMPORT_DIMEXPRESSION_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <optional>
#include <string>

namespace lowtide {

class DimExpression {
public:
  /// Reads `text`; nothing where it is a plain name, or no arithmetic at all.
  static std::optional<DimExpression> parse(llvm::StringRef text);

  /// Names in it, each once, in their order.
  llvm::ArrayRef<std::string> getSymbols() const { return symbols; }
  /// Its value; nothing where a symbol has none, a division leaves a remainder, or 64 bits do not hold it.
  std::optional<int64_t> evaluate(const llvm::StringMap<int64_t> &sizes) const;

  /// Sizes of `symbol`, from 1 on, with which the value is `value`; `sizes` has all others.
  struct Solution {
    /// The only size; nothing: there is none, or more than one.
    std::optional<int64_t> size;
    /// Several fit: the first and the last of them.
    std::optional<std::pair<int64_t, int64_t>> range;
    /// None fits: values that can be had nearest below and above, with their sizes.
    llvm::SmallVector<std::pair<int64_t, int64_t>, 2> nearest;
  };
  Solution solve(llvm::StringRef symbol, int64_t value, const llvm::StringMap<int64_t> &sizes) const;

private:
  struct Node {
    enum Kind { Number, Symbol, Add, Subtract, Multiply, FloorDivide, Divide, Remainder, Power, Max, Min } kind;
    int64_t number = 0; ///< or the symbol's
    int left = -1, right = -1;
  };
  friend class DimParser;

  std::optional<int64_t> evaluateNode(int node, const llvm::StringMap<int64_t> &sizes) const;

  std::vector<Node> nodes;
  llvm::SmallVector<std::string> symbols;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_DIMEXPRESSION_H
