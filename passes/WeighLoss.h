//===- WeighLoss.h - what the loss of an evaluation is a mean over *- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide {

/// Metric of an evaluation: what its loss is a mean over.
inline constexpr llvm::StringLiteral lossWeightName = "loss_weight";

/// Adds the metric `loss_weight` to a forward function whose samples do not meet, as BatchTracking shows: the sum over
/// samples that its loss is divided by (labels that count, or their weights), else the number of samples. The loss over
/// a data set is the mean of the batches' losses by these weights, and rows that fill no batch may be evaluated in one
/// that holds them several times. Where samples meet, a remark says where, and nothing is added.
void weighLoss(mlir::func::FuncOp step);

} // namespace lowtide
