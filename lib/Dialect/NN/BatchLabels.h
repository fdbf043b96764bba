//===- BatchLabels.h - samples as an index of a summation -------*- C++ -*-===//
//
// Most rules of ops are a table: each dimension has a label, and equal labels are the same index.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/BatchRules.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace lowtide::nn {

/// Label of a dimension that is looked at as a whole.
constexpr int64_t closed = -1;

using Labels = llvm::SmallVector<int64_t>;

struct LabelTable {
  llvm::SmallVector<Labels> operands, results;
  Labels summed;
};

inline mlir::RankedTensorType typeOf(mlir::Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()); }

inline Labels identity(mlir::Value value) { return llvm::to_vector(llvm::seq<int64_t>(0, typeOf(value).getRank())); }

/// Elements of a tensor of that shape between one sample and the next.
inline int64_t distanceOf(llvm::ArrayRef<int64_t> shape, const BatchPosition &position) {
  int64_t distance = position.inner;
  for (int64_t extent : shape.drop_front(position.dim + 1))
    distance *= extent;
  return distance;
}

/// Every operand and result by position.
LabelTable identities(mlir::Operation *op);

/// What becomes of elements that are numbers of rows.
enum class Names : uint8_t {
  Refused, ///< the op computes with them
  Kept,    ///< they are elements of the results
  Dropped, ///< results are the same, whichever row is counted as the first
};

/// The answer that the labels are.
llvm::LogicalResult follow(const LabelTable &table, BatchSplit &split, Names names = Names::Refused);

/// Whether who asks makes the op of a part by `takePart`, so that attributes may say something of all samples: those
/// that renumber do. Elsewhere ops are only given other types.
inline bool mayTakeAttributes(const BatchSplit &split) { return split.canRenumber; }

inline int64_t integerAttr(mlir::Operation *op, llvm::StringRef name) {
  return op->getAttrOfType<mlir::IntegerAttr>(name).getInt();
}
inline llvm::ArrayRef<int64_t> arrayAttr(mlir::Operation *op, llvm::StringRef name) {
  return op->getAttrOfType<mlir::DenseI64ArrayAttr>(name).asArrayRef();
}

} // namespace lowtide::nn
