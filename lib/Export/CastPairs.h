//===- CastPairs.h - bf16 arithmetic in f32 between casts -------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide {

/// Makes every op of `step` that computes in bf16 compute in f32: its bf16 operands are cast up, its bf16 results are
/// rounded back, so that every value keeps the bits that the declared rounding gives it. Casts, constants and views
/// stay, and so do the function's own types.
void castAroundBf16(mlir::func::FuncOp step);

} // namespace lowtide
