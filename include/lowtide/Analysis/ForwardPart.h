//===- ForwardPart.h - what the loss is made from ----------------*- C++ -*-===//
//
// Divides a step's instructions into those that the metrics depend on and the
// rest, loops' bodies included.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace lowtide {

/// What the metrics of a step depend on.
struct ForwardPart {
  /// Instructions, and loops of which a result is needed together with what that result is made from inside. Views are
  /// not listed.
  llvm::DenseSet<mlir::Operation *> ops;
  /// Roots that are needed.
  llvm::DenseSet<mlir::Value> values;

  explicit ForwardPart(mlir::func::FuncOp step);
  /// Whether a root is made before the loss: a loop makes some results before and some after it.
  bool makes(mlir::Value root) const;
};

} // namespace lowtide
