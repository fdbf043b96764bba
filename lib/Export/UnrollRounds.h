//===- UnrollRounds.h - loops written out -----------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide {

/// Writes the rounds of every loop (RepeatInterface) of at most `maxRounds` one after another: slices, the body's ops
/// for each round, and the rows put together.
void unrollRounds(mlir::func::FuncOp step, int64_t maxRounds);

} // namespace lowtide
