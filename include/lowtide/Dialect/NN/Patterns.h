//===- Patterns.h - what exporters write out, recognised --------*- C++ -*-===//
//
// Patterns that turn the parts into which exporters break activations, normalizations and attention back into one op,
// whose derivative saves less. They expect canonical form.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/PatternMatch.h"

namespace lowtide::nn {

/// x · Φ(x) by erf or tanh → nn.gelu, nn.gelu_tanh; x · sigmoid(x) → nn.silu; logarithms of sigmoid and softmax →
/// nn.softplus, nn.log_softmax.
void addActivationFusion(mlir::RewritePatternSet &patterns);
/// One entry of a log-softmax for each label, of which nothing else is read but sums over the classes, or a log-sum-exp
/// less the entry of a label → nn.softmax_cross_entropy; such sums, and log-sum-exps of the same logits → what its lse
/// makes of them.
void addCrossEntropyFusion(mlir::RewritePatternSet &patterns);
/// (x − mean) / √(variance + ε) · scale + bias → nn.layer_norm; x / √(mean square + ε) · scale → nn.rms_norm.
void addNormalizationFusion(mlir::RewritePatternSet &patterns);
/// softmax(scale · q kᵀ + mask) v → nn.attention.
void addAttentionFusion(mlir::RewritePatternSet &patterns);
/// concat(f(slice 0 of x), f(slice 1 of x), …) → f(x) with one dimension more, where f is the same for all: what is
/// left of a loop over samples or heads.
void addPieceStacking(mlir::RewritePatternSet &patterns);
/// What is computed of logits on the way to their loss, row by row or element by element → the same on rows and
/// classes, whatever reshapes and transposes exporters put between; slices of rows → slices of what the product reads.
/// Where the logits are large (see below), unless `always`.
void addHeadFlattening(mlir::RewritePatternSet &patterns, bool always);
/// Of these, what meets a head's rows without being made of them, such as a teacher's probabilities: its reshape to
/// rows and classes rises. Canonical forms have it below what is computed element by element, so that who follows rows
/// needs it once more.
void addReshapeRaising(mlir::RewritePatternSet &patterns, bool always);
/// Cross-entropy of a product with a weight → nn.linear_cross_entropy, where nothing else is read of the logits but
/// sums over the classes and, unless `always`, where they are at least 1 MiB and four times the weight.
void addLossHeadFusion(mlir::RewritePatternSet &patterns, bool always);

/// Turns each recurrence that the block has step after step into nn.scan, where steps read a sequence slice by slice or
/// their results are put one after another. Returns how many.
int64_t rollRecurrences(mlir::Block &block);

} // namespace lowtide::nn
