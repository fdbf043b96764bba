//===- LossOption.h - which value is the loss -------------------*- C++ -*-===//
//
// Finds the loss among a model's outputs, or adds the one that the user asked for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Legalize/LegalizeContext.h"

namespace lowtide {

struct NamedOutput {
  std::string name;
  mlir::Value value;
  bool isLoss = false;
};

/// Marks the loss: what `options.loss` says, else the scalar float output named `loss`, else the only scalar float
/// output. A loss that has to be added is appended, with a batch argument for its labels when the model has none.
mlir::LogicalResult findLoss(LegalizeContext &context, llvm::SmallVectorImpl<NamedOutput> &outputs);

/// Cross entropy as ONNX's SoftmaxCrossEntropyLoss: mean over the samples that count. `classDim` of `logits` holds the
/// classes, `labels` (integers) lacks it. `weights`: one per class, or null. Returns per-sample losses for "none".
/// `count`: how many samples there are, a scalar, where the extents do not say it (Legalize/SelectedRows.h).
nn::Expr crossEntropyLoss(nn::Expr logits, nn::Expr labels, nn::Expr weights, int64_t classDim,
                          std::optional<int64_t> ignoreIndex, llvm::StringRef reduction, nn::Expr count = {});

/// What losses of classes have besides scores: as in `crossEntropyLoss`.
struct ClassLoss {
  nn::Expr labels, weights;
  int64_t classDim = 1;
  std::optional<int64_t> ignoreIndex;
  llvm::StringRef reduction = "mean";
  nn::Expr count = {};
};

/// PyTorch's cross_entropy with `label_smoothing` (ATen's cross_entropy_loss_label_smoothing).
nn::Expr smoothedCrossEntropy(nn::Expr logits, const ClassLoss &loss, double smoothing);
/// PyTorch's nll_loss: `scores` are log-probabilities, taken as they are.
nn::Expr negativeLogLikelihood(nn::Expr scores, const ClassLoss &loss);

} // namespace lowtide
