//===- LossRules.cpp - losses ---------------------------------------------===//
//
// Rules for SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/LossOption.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

/// Weight of each sample: that of its class, 0 where the label is to be ignored.
static Expr sampleWeights(Expr labels, Type element, Expr weights, std::optional<int64_t> ignoreIndex) {
  if (!ignoreIndex)
    return weights ? nn::gather(weights, labels, 0) : Expr();
  Expr counts = nn::notEqual(labels, double(*ignoreIndex));
  if (!weights)
    return nn::cast(counts, element);
  Expr safe = nn::select(counts, labels, labels.like(0.0));
  Expr chosen = nn::gather(weights, safe, 0);
  return nn::select(counts, chosen, chosen.like(0.0));
}

/// "none", "sum" or "mean"; the mean is over the weights of the samples, or over `count` of them.
static Expr reduceLoss(Expr losses, Expr weights, StringRef reduction, Expr count = {}) {
  if (reduction == "none")
    return losses;
  Shape all = llvm::to_vector(llvm::seq<int64_t>(0, losses.rank()));
  if (reduction == "mean" && !weights)
    return meanOf(losses, all, count);
  Expr total = nn::sum(widened(losses), all);
  if (reduction == "mean")
    total = total / nn::sum(widened(weights), all);
  return nn::cast(total, losses.elementType());
}

Expr lowtide::crossEntropyLoss(Expr logits, Expr labels, Expr weights, int64_t classDim,
                               std::optional<int64_t> ignoreIndex, StringRef reduction, Expr count) {
  if (classDim != 1 || logits.rank() == 1) { // nn's op has the classes in dimension 1
    int64_t rank = logits.rank();
    if (classDim == rank - 1) {
      int64_t rows = labels.type().getNumElements();
      logits = nn::reshape(logits, {rows, logits.dim(-1)});
      labels = nn::reshape(labels, {rows});
    }
  }
  Expr losses = nn::softmaxCrossEntropy(logits, labels, weights, ignoreIndex)[0];
  return reduceLoss(losses, sampleWeights(labels, logits.elementType(), weights, ignoreIndex), reduction, count);
}

Expr lowtide::smoothedCrossEntropy(Expr logits, const ClassLoss &loss, double smoothing) {
  Expr hard = crossEntropyLoss(logits, loss.labels, loss.weights, loss.classDim, loss.ignoreIndex, loss.reduction);
  if (smoothing == 0)
    return hard;
  const int64_t dim = loss.classDim;
  Expr each = nn::logSoftmax(logits, dim);
  if (loss.weights)
    each = each * nn::broadcast(loss.weights, logits.shape(), {dim});
  Expr spread = -nn::sum(each, {dim}) / double(logits.dim(dim));
  if (loss.ignoreIndex)
    spread = nn::select(nn::notEqual(loss.labels, double(*loss.ignoreIndex)), spread, spread.like(0.0));
  Expr weights = sampleWeights(loss.labels, logits.elementType(), loss.weights, loss.ignoreIndex);
  return hard * (1 - smoothing) + reduceLoss(spread, weights, loss.reduction) * smoothing;
}

Expr lowtide::negativeLogLikelihood(Expr scores, const ClassLoss &loss) {
  Expr labels = nn::cast(loss.labels, scores.getBuilder().getI64Type());
  Expr weights = sampleWeights(labels, scores.elementType(), loss.weights, loss.ignoreIndex);
  Expr safe = labels;
  if (loss.ignoreIndex)
    safe = nn::select(nn::equal(labels, double(*loss.ignoreIndex)), labels.like(0.0), labels);
  Expr picked = nn::reshape(nn::gatherElements(scores, unsqueeze(safe, loss.classDim), loss.classDim), labels.shape());
  return reduceLoss(weights ? -(picked * weights) : -picked, weights, loss.reduction, loss.count);
}

namespace {

LogicalResult checkLabels(NodeView &n, bool isSoft = false) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0), labels = n.in(1);
  Shape expected(x.shape());
  if (x.rank() >= 2)
    expected.erase(expected.begin() + 1);
  if (!isSoft && (x.rank() < 2 || ArrayRef<int64_t>(expected) != labels.shape() || !isFloat(x) || isFloat(labels)))
    return n.reject("float scores [N, C, d…] and integer labels [N, d…] are expected");
  if (n.has(2) && n.in(2).shape() != ArrayRef<int64_t>{x.dim(1)})
    return n.reject("one weight for each of " + Twine(x.dim(1)) + " classes is expected");
  std::string reduction = n.attrString("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return n.reject("reduction '" + reduction + "'; there are none, sum and mean");
  // PyTorch's exporter (2.9 and later) states the scalar of a mean for unreduced losses, too.
  n.ignoresStatedShape = reduction == "none";
  return success();
}

std::optional<int64_t> ignoredLabel(NodeView &n) {
  return n.hasAttr("ignore_index") ? std::optional<int64_t>(n.attr("ignore_index", -1)) : std::nullopt;
}

/// How many labels there are for `scores`; null where the extents say it.
Expr countSamples(NodeView &n, Expr scores) { return n.context.selected.countAlong(scores, dimsBut(scores, 1)); }

/// PyTorch's exporters write `cross_entropy` with a probability for each class (mixed labels, a teacher) as this
/// operator, too, whose definition knows whole labels only. Its mean is over samples, whatever their weights.
LogicalResult softCrossEntropy(NodeView &n) {
  Expr x = n.in(0), weights = n.in(2);
  Expr losses = nn::cast(n.in(1), x.elementType()) * nn::logSoftmax(x, 1);
  if (weights) {
    Shape places(x.rank(), 1);
    places[1] = x.dim(1);
    losses = losses * nn::broadcastTo(nn::reshape(weights, places), x.shape());
  }
  n.set(0, reduceLoss(-nn::sum(losses, {1}), {}, n.attrString("reduction", "mean"), countSamples(n, n.in(0))));
  if (n.wants(1))
    n.set(1, nn::logSoftmax(x, 1));
  return success();
}

LogicalResult softmaxCrossEntropy(NodeView &n) {
  bool isSoft = succeeded(n.need(2)) && n.in(0).rank() >= 2 && isFloat(n.in(0)) && isFloat(n.in(1)) &&
                n.in(0).shape() == n.in(1).shape();
  if (failed(checkLabels(n, isSoft)))
    return failure();
  if (isSoft)
    return softCrossEntropy(n);
  n.set(0, crossEntropyLoss(n.in(0), n.in(1), n.in(2), 1, ignoredLabel(n), n.attrString("reduction", "mean"),
                            countSamples(n, n.in(0))));
  if (n.wants(1))
    n.set(1, nn::logSoftmax(n.in(0), 1));
  return success();
}

LogicalResult negativeLogLikelihoodNode(NodeView &n) {
  if (failed(checkLabels(n)))
    return failure();
  const std::string reduction = n.attrString("reduction", "mean");
  n.set(0, negativeLogLikelihood(n.in(0), {n.in(1), n.in(2), 1, ignoredLabel(n), reduction, countSamples(n, n.in(0))}));
  return success();
}

} // namespace

void lowtide::addLossRules(RuleTable &t) {
  t.add("SoftmaxCrossEntropyLoss", softmaxCrossEntropy, SelectedMeet::Yes);
  t.add("NegativeLogLikelihoodLoss", negativeLogLikelihoodNode, SelectedMeet::Yes);
}
