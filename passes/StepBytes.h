//===- StepBytes.h - bytes that a step stores -------------------*- C++ -*-===//
#pragma once

#include "lowtide/Analysis/StoredBytes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide {

/// On state that no codec stores, since updates subtract it from another.
inline constexpr llvm::StringLiteral storedAsIsAttrName = "train.stored_as_is";

/// What a step stores for its parameters, read off its arguments; gradients are those of all updates together, where
/// the step still has updates.
StoredBytes countStoredBytes(mlir::func::FuncOp step);

} // namespace lowtide
