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
  llvm::ArrayRef<OptimizerOption> options;
  OptimizerTraits traits;
  llvm::SmallVector<StateSlot> (*listSlots)(const std::map<std::string, double> &options, const ParamShape &shape);

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

/// How a parameter of this type lies; `permutation` may be null.
ParamShape getParamShape(mlir::RankedTensorType param, mlir::Attribute permutation);
/// Of the parameter of an update.
ParamShape getParamShape(mlir::Operation *update);
/// Type of a slot of a parameter of that shape; `wide` is its state type.
mlir::RankedTensorType getSlotType(const StateSlot &slot, const ParamShape &shape, mlir::RankedTensorType wide);

/// The operands of one update.
struct UpdateOperands {
  mlir::Value param, grad;              ///< grad: of the state's type
  mlir::Value lr, step;                 ///< scalars (rank 0): float, i64
  llvm::SmallVector<mlir::Value> state; ///< one per slot, of the slot's type
  /// The order of the framework's dimensions (ParamShape); null: as stored.
  mlir::DenseI64ArrayAttr permutation;
};

/// The state of an update, by its options and its parameter.
llvm::SmallVector<StateSlot> listSlots(OptimizerInterface update);

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

mlir::ParseResult parseOptimizer(mlir::OpAsmParser &parser, mlir::OperationState &result,
                                 decltype(OptimizerInfo::listSlots) listSlots);
void printOptimizer(mlir::OpAsmPrinter &printer, mlir::Operation *op);
llvm::LogicalResult verifyOptimizer(OptimizerInterface op);
/// `fallback` where the option is not set.
double readOption(const std::map<std::string, double> &options, llvm::StringRef name, double fallback);
/// Learning rate × lr_scale, an f64 scalar.
nn::Expr effectiveLearningRate(mlir::OpBuilder &builder, mlir::Operation *op);
/// The step as an f64 scalar.
nn::Expr updateNumber(mlir::OpBuilder &builder, mlir::Operation *op);
/// `scalar` (rank 0, f64) rounded to the element type of `type` and repeated
/// over its shape.
nn::Expr spreadScalar(nn::Expr scalar, mlir::RankedTensorType type);

// Arithmetic that several optimizers share.

/// torch.lerp, which takes the form that is exact at the nearer end. `weight` may be an f64 scalar of the step.
nn::Expr lerp(nn::Expr start, nn::Expr end, double weight);
nn::Expr lerp(nn::Expr start, nn::Expr end, nn::Expr weight);
/// The root of the sum of all squares, a scalar.
nn::Expr norm(nn::Expr x);
/// Repeats dimensions of extent 1 to `shape`.
nn::Expr stretch(nn::Expr x, llvm::ArrayRef<int64_t> shape);
/// The difference of 1 and the next larger number.
double getEpsilon(mlir::Type elementType);
/// Newton–Schulz iterations on a matrix, X = a X + (b G + c G²) X with G = X Xᵀ (or, where there are more rows than
/// columns, the same from the right), X starting as x / max(norm, eps): in bf16 for f32, in f64 for f64.
nn::Expr orthogonalize(nn::Expr x, std::array<double, 3> coefficients, double steps, double eps);
/// Floating-point operations of that.
uint64_t countOrthogonalizationFlops(llvm::ArrayRef<int64_t> shape, double steps);

} // namespace lowtide::train
