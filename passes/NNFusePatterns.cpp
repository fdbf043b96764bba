//===- NNFusePatterns.cpp - recognises what exporters write out -*- C++ -*-===//
//
// Collects the parts of activations, normalizations, attention and losses into one op each, and the rounds of unrolled
// loops, before differentiation.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Dialect/NN/Patterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace lowtide {
#define GEN_PASS_DEF_NNFUSEPATTERNS
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

namespace {
struct NNFusePatterns : StepPass<lowtide::impl::NNFusePatternsBase<NNFusePatterns>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    const bool hasRolled = recurrences && nn::rollRecurrences(getOperation().getBody().front()) > 0;
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
    if (lossHead) {
      nn::addHeadFlattening(patterns, lossHeadAlways);
      nn::addLossHeadFusion(patterns, lossHeadAlways);
    }
    // Constants stay as they are: the patterns look for splats, the folder is the canonicalizer's.
    GreedyRewriteConfig config;
    config.enableFolding(false).setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    bool changed = false;
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config, &changed)))
      return signalPassFailure();
    if (changed || hasRolled)
      ++numChanged;
  }
};
} // namespace
