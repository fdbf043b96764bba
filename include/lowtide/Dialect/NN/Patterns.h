//===- Patterns.h - what exporters write out, recognised --------*- C++ -*-===//
//
// Patterns that turn the parts into which exporters break activations, normalizations and attention back into one op,
// whose derivative saves less. They expect canonical form.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace lowtide::nn {

/// x · Φ(x) by erf or tanh → nn.gelu, nn.gelu_tanh; x · sigmoid(x) → nn.silu.
void addActivationFusion(mlir::RewritePatternSet &patterns);
/// (x − mean) / √(variance + ε) · scale + bias → nn.layer_norm; x / √(mean square + ε) · scale → nn.rms_norm.
void addNormalizationFusion(mlir::RewritePatternSet &patterns);
/// softmax(scale · q kᵀ + mask) v → nn.attention.
void addAttentionFusion(mlir::RewritePatternSet &patterns);
/// Cross-entropy of a product with a weight → nn.linear_cross_entropy, where nothing else reads the logits.
void addLossHeadFusion(mlir::RewritePatternSet &patterns);

} // namespace lowtide::nn
