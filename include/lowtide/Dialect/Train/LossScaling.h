//===- LossScaling.h - loss scales and clipped gradients --------*- C++ -*-===//
//
// What the user chose about the loss scale, the names under which its state is kept, and what the records of
// LossScaling.td call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include <string>

namespace lowtide::train {

/// State of a step: the scale (f32), finite steps since it last changed (i32), steps that made no update (i64).
inline constexpr llvm::StringLiteral lossScaleName = "loss_scale", growthTrackerName = "loss_scale.growth_tracker",
                                     skippedName = "loss_scale.skipped";
/// Output of @gradient that says whether the step may be committed; @train does not show it.
inline constexpr llvm::StringLiteral finiteName = "finite";

/// Attribute of @gradient: the loss scale, as LossScale::parse reads it, that its gradients hold; absent: none.
inline constexpr llvm::StringLiteral scaledAttrName = "train.scaled";

/// `none`, a number, or `dynamic[,init=65536][,growth=2][,backoff=0.5][,interval=2000]`: the defaults are those of
/// torch.amp.GradScaler.
struct LossScale {
  enum class Kind { None, Fixed, Dynamic };
  Kind kind = Kind::None;
  double initial = 65536.0; ///< the scale itself when fixed
  double growth = 2.0, backoff = 0.5;
  int64_t interval = 2000;

  bool operator==(const LossScale &) const = default;

  /// Errors say what was found and what is possible.
  static llvm::Expected<LossScale> parse(llvm::StringRef text);
};

/// The argument that holds the scale, appended if there is none: an f32 scalar.
mlir::Value appendLossScale(mlir::func::FuncOp step, const LossScale &scale);

/// The cotangent of `loss`, one number of any shape, with which a backward pass starts: the scale, of its type. A
/// dynamic one is the step's state.
mlir::Value buildLossSeed(mlir::OpBuilder &builder, mlir::func::FuncOp step, mlir::Value loss, const LossScale &scale);

/// The same of gradient `number` of the op alone; `others`: its operands that are no gradients.
mlir::Value buildAlone(mlir::OpBuilder &builder, GradientsInterface op, unsigned number, mlir::Value gradient,
                       mlir::ValueRange others);

// Called by the records.

/// `perElement` for each element of the operands.
uint64_t countGradientFlops(mlir::Operation *op, uint64_t perElement);

} // namespace lowtide::train
