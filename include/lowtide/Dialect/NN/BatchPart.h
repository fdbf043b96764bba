//===- BatchPart.h - an op for a part of the samples ------------*- C++ -*-===//
#pragma once

#include "lowtide/Interfaces/BatchSplit.h"

namespace lowtide::nn {

/// Makes of `op`, whose operands count `samples` samples at `required` (as `splitBatch` said), the op for one of
/// `parts` parts of them, but for operands and result types: what its attributes and regions say of all samples.
void takePart(mlir::Operation *op, llvm::ArrayRef<std::optional<BatchPosition>> required, int64_t samples,
              int64_t parts);

} // namespace lowtide::nn
