//===- LowerScans.h - scans become loops of the step ------------*- C++ -*-===//
//
// `nn.scan` says what is computed step by step; what fits, places and writes loops reads `train.accumulate`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide::train {

/// Replaces every scan in `step` by a `train.accumulate` that reads from outside what the scan names; returns how many.
unsigned lowerScans(mlir::func::FuncOp step);

} // namespace lowtide::train
