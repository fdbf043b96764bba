//===- Optimizers.h - optimizers by name ------------------------*- C++ -*-===//
//
// Finds the optimizer ops by name and builds updates, without knowing any of
// them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/Train/Train.h"
#include <map>
#include <string>

namespace lowtide::train {

/// What the records say about one optimizer.
struct OptimizerInfo {
  llvm::StringRef name; ///< "adamw"
  llvm::ArrayRef<StateSlot> slots;
  llvm::ArrayRef<OptimizerOption> options;

  /// Null if the optimizer does not have it.
  const OptimizerOption *findOption(llvm::StringRef option) const;
};

/// The optimizer of that name; nullopt if there is none. The train dialect must
/// be loaded.
std::optional<OptimizerInfo> findOptimizer(mlir::MLIRContext *context, llvm::StringRef name);
/// Names of all optimizers, sorted.
llvm::SmallVector<llvm::StringRef> listOptimizers(mlir::MLIRContext *context);

/// Type of a parameter's gradient and optimizer state: the parameter's, in f32 when that has 16 bits.
mlir::RankedTensorType getStateType(mlir::Type param);

/// The operands of one update.
struct UpdateOperands {
  mlir::Value param, grad;              ///< grad: of the state's type
  mlir::Value lr, step;                 ///< scalars (rank 0): float, i64
  llvm::SmallVector<mlir::Value> state; ///< one per slot, of the state's type
};

/// The operands of an update, by what they are.
UpdateOperands getUpdateOperands(OptimizerInterface update);

/// Builds `train.<name>`. `options` holds a value for every option of the
/// optimizer. Results: new parameter, new state.
mlir::Operation *buildUpdate(mlir::OpBuilder &builder, mlir::Location loc, const OptimizerInfo &optimizer,
                             const UpdateOperands &operands, const std::map<std::string, double> &options,
                             bool onnxConvention);

/// Builds the same update of some rows alone: `rows` holds them, one after the other along dimension 0, instead of the
/// whole tensors. Results: the new rows of the parameter and of its state.
mlir::Operation *buildRowUpdate(mlir::OpBuilder &builder, OptimizerInterface update, const UpdateOperands &rows);

// Called by the records.

mlir::ParseResult parseOptimizer(mlir::OpAsmParser &parser, mlir::OperationState &result, size_t slots);
void printOptimizer(mlir::OpAsmPrinter &printer, mlir::Operation *op);
llvm::LogicalResult verifyOptimizer(mlir::Operation *op, size_t slots);
uint64_t countUpdateFlops(mlir::Operation *op, uint64_t flopsPerElement);
/// Learning rate × lr_scale, an f64 scalar.
nn::Expr effectiveLearningRate(mlir::OpBuilder &builder, mlir::Operation *op);
/// The step as an f64 scalar.
nn::Expr updateNumber(mlir::OpBuilder &builder, mlir::Operation *op);
/// `scalar` (rank 0, f64) rounded to the element type of `type` and repeated
/// over its shape.
nn::Expr spreadScalar(nn::Expr scalar, mlir::RankedTensorType type);

} // namespace lowtide::train
