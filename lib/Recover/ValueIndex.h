//===- ValueIndex.h - who makes, holds and reads the values of a graph ------------===//

#ifndef LOWTIDE_LIB_RECOVER_VALUEINDEX_H
#define LOWTIDE_LIB_RECOVER_VALUEINDEX_H

#include "Makers.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace lowtide {

/// Makers, constants and readers of a graph's values. The graph outlives it and keeps its nodes and initializers; what
/// is added later is not in it. Subgraphs are not looked into.
class ValueIndex : public Makers {
public:
  explicit ValueIndex(const ::onnx::GraphProto &graph);

  /// The initializer `value`, or the tensor of the `Constant` node that makes it; null: neither.
  const ::onnx::TensorProto *findTensor(llvm::StringRef value) const { return tensors.lookup(value); }
  /// Whether no input decides about the value: an initializer or a `Constant` node.
  bool isConstant(llvm::StringRef value) const;
  /// The number that a tensor of one element holds, of type f32 or f64; nullopt: it is none, or its data are in another
  /// file.
  std::optional<double> findNumber(llvm::StringRef value) const;
  /// The same, also of a number that sums and quotients of such numbers give, which a file that is not folded leaves.
  std::optional<double> evaluateNumber(llvm::StringRef value) const;
  /// The whole numbers of a constant of type i64 and of at most one dimension; nullopt: it is none, or its data are in
  /// another file.
  std::optional<llvm::SmallVector<int64_t>> findIntegers(llvm::StringRef value) const;
  /// The nodes that read the value, once for each operand; null for each of the graph's outputs that it is.
  llvm::ArrayRef<const ::onnx::NodeProto *> findReaders(llvm::StringRef value) const;

private:
  llvm::StringMap<const ::onnx::TensorProto *> tensors;
  llvm::StringMap<llvm::SmallVector<const ::onnx::NodeProto *, 2>> readers;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_VALUEINDEX_H
