//===- RowChunks.h - from logits to loss, row by row ------------*- C++ -*-===//
//
// The part of train-chunk-loss-head that needs no op of its own: what lies between a product and its loss.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide {

/// Makes loops over chunks of rows of all that is computed of large logits until it is small, and reports those that
/// stay whole. `chunks` and `wide` as in HeadChunks.h; a positive number takes small logits, too. Returns how many
/// products became loops.
mlir::FailureOr<unsigned> chunkRows(mlir::func::FuncOp step, int64_t chunks, bool wide);

} // namespace lowtide
