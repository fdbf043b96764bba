//===- ConstantFold.h - evaluates ops on constants --------------*- C++ -*-===//
//
// One folder for every op: it runs the element description (or the decomposition) on known operands. There is no second
// definition of any op.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace lowtide::nn {

/// Results with more elements than this stay ops: weights never enter the IR, and neither do tables of their size.
inline constexpr int64_t foldLimitElements = 65'536;

/// Values of the results of `op`, one `DenseElementsAttr` each, when its operands hold `operands` (one
/// `DenseElementsAttr` for each). Fails when an operand is null, a result is too large, the op takes more than some
/// ten million scalar operations, or its arithmetic has no value (integer division by zero).
llvm::FailureOr<llvm::SmallVector<mlir::Attribute>> foldConstant(mlir::Operation *op,
                                                                 llvm::ArrayRef<mlir::Attribute> operands);
/// As above; operands must be defined by constants.
llvm::FailureOr<llvm::SmallVector<mlir::Attribute>> foldConstant(mlir::Operation *op);

/// For builders: replaces the op with one result just built by what it folds to (an operand, or a constant in front of
/// it), erasing it; or leaves it and returns its result.
mlir::Value foldOrSelf(mlir::Operation *op);

} // namespace lowtide::nn
