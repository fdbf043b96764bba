//===- CanonicalizePatterns.h - canonical forms of nn -----------*- C++ -*-===//
//
// Pattern sets that the dialect's canonicalizer collects. All are equal in real arithmetic; those of movement and
// contraction also bit by bit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace lowtide::nn {

/// x + 0, x · 1, −−x, select of equals, cast there and back; ops on equally repeated operands compute before repeating.
void addArithmeticPatterns(mlir::RewritePatternSet &patterns);
/// broadcast, reshape, transpose: compositions, unit dimensions; gathers at even steps.
void addMovementPatterns(mlir::RewritePatternSet &patterns);
/// Sums of sums, of repeated and of unit dimensions; transposes into the flags of nn.dot; shared weights out of
/// batches.
void addContractionPatterns(mlir::RewritePatternSet &patterns);

} // namespace lowtide::nn
