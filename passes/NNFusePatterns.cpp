//===- NNFusePatterns.cpp - recognises what exporters write out -*- C++ -*-===//
//
// Collects the parts of activations, normalizations, attention and losses into one op each, and the rounds of unrolled
// loops, before differentiation.
//
//===----------------------------------------------------------------------===//

#include "Passes.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/Patterns.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace lowtide {
#define GEN_PASS_DEF_NNFUSEPATTERNS
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

/// Below this nobody asks where the logits are.
static constexpr uint64_t smallLogitsBytes = uint64_t(1) << 20;

namespace {
struct NNFusePatterns : lowtide::impl::NNFusePatternsBase<NNFusePatterns> {
  using NNFusePatternsBase::NNFusePatternsBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    if (activations)
      nn::addActivationFusion(patterns);
    if (losses)
      nn::addCrossEntropyFusion(patterns);
    if (pieces)
      nn::addPieceStacking(patterns);
    if (normalizations)
      nn::addNormalizationFusion(patterns);
    if (attention)
      nn::addAttentionFusion(patterns);
    if (lossHead)
      nn::addLossHeadFusion(patterns, lossHeadAlways);
    // Constants stay as they are: the patterns look for splats, the folder is the canonicalizer's.
    GreedyRewriteConfig config;
    config.enableFolding(false).setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    bool changed = false;
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config, &changed)))
      return signalPassFailure();
    if (changed)
      ++numChanged;
    if (lossHead)
      getOperation().walk([](nn::SoftmaxCrossEntropyOp loss) { remarkWhole(loss); });
  }

  /// Says why large logits are kept whole.
  static void remarkWhole(nn::SoftmaxCrossEntropyOp loss) {
    uint64_t bytes = getTensorBytes(loss.getLogits().getType()).value_or(0);
    if (std::optional<StringRef> obstacle = nn::findLossHeadObstacle(loss); obstacle && bytes >= smallLogitsBytes)
      loss.emitRemark("loss head: logits of ") << formatBytes(bytes) << " stay whole: " << *obstacle;
  }
};
} // namespace
