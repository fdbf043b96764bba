//===- StepBytes.h - bytes that a step stores -------------------*- C++ -*-===//
#pragma once

#include "lowtide/Analysis/StoredBytes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide {

/// What a step stores for its parameters, read off its arguments; gradients are those of all updates together, where
/// the step still has updates.
StoredBytes countStoredBytes(mlir::func::FuncOp step);

} // namespace lowtide
