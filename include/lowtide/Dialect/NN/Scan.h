//===- Scan.h - the loop over the steps of a sequence -----------*- C++ -*-===//
//
// The ops of Scan.td. Few files need them, so NN.h leaves them out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Interfaces/BatchSplit.h"

namespace lowtide::nn {
class NextOp;
}

#define GET_OP_CLASSES
#include "lowtide/Dialect/NN/Scan.h.inc"

namespace lowtide::nn {

// Called by the records.

uint64_t scanFlops(ScanOp scan);
llvm::LogicalResult splitScan(mlir::Operation *op, BatchSplit &split);

} // namespace lowtide::nn
