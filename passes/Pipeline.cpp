//===- Pipeline.cpp - orders the passes -------------------------*- C++ -*-===//
//
// The life of a step: forward graph, training step, fitted step. Each stage ends in the check of its contract.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Pipeline.h"
#include "PassFlags.h"
#include "Passes.h"
#include "PlanLower.h"
#include "TrainRematerialize.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace lowtide;

static void addCleanUp(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

static void addAccumulate(OpPassManager &passes, const OptionValues &options) {
  if (options.microBatches == 1)
    return;
  addCleanUp(passes);
  passes.addPass(createTrainAccumulate(options));
  addCleanUp(passes);
}

void lowtide::buildGraphStage(OpPassManager &passes, const OptionValues &options) {
  addCleanUp(passes);
  if (!options.lora.empty()) {
    // Before products become parts of larger ops.
    auto adapt = takeFlags<TrainAdaptOptions>(options);
    if (options.mode == "eval")
      adapt.dropout = "0";
    passes.addPass(createTrainAdapt(adapt));
    addCleanUp(passes);
  }
  if (isCodedStorage(options.frozenWeights)) {
    // After pairs, whose rules name matrices; before products become parts of larger ops.
    passes.addPass(createTrainEncodeFrozen(options));
    addCleanUp(passes);
  }
  auto patterns = takeFlags<NNFusePatternsOptions>(options);
  patterns.lossHead = options.lossHeadChunks != "off";
  patterns.lossHeadAlways = options.lossHeadChunks != "off" && options.lossHeadChunks != "auto";
  passes.addNestedPass<func::FuncOp>(createNNFusePatterns(patterns));
  addCleanUp(passes);
  passes.addNestedPass<func::FuncOp>(createNNSplitSums(options));
  addCleanUp(passes);
  passes.addPass(createVerifyLegal(options));
}

static void addAutocast(OpPassManager &passes, const OptionValues &options) {
  if (!isNarrow(options.precision))
    return;
  passes.addPass(createTrainAutocast(options));
  addCleanUp(passes);
}

static void addScaleLoss(OpPassManager &passes, const OptionValues &options) {
  if (options.lossScale != "none" || options.clipNorm != 0.0 || options.clipValue != 0.0)
    passes.addPass(createTrainScaleLoss(options));
}

static void addStateLayouts(OpPassManager &passes, const OptionValues &options) {
  const bool isOfGroup = llvm::any_of(
      options.groups, [](llvm::StringRef group) { return group.contains("moments=") || group.contains("master="); });
  if (options.moments != "f32" || options.master != "f32" || isOfGroup)
    passes.addPass(createTrainStateLayouts(options));
}

void lowtide::buildTrainStage(OpPassManager &passes, const OptionValues &options) {
  passes.addPass(createTrainWeighLoss(options));
  bool train = llvm::is_contained(options.entries, "train"), gradient = llvm::is_contained(options.entries, "gradient");
  if (train || gradient) {
    passes.addPass(createNNSegmentScans(options));
    passes.addPass(createTrainDifferentiate(options));
    addCleanUp(passes);
  }
  addAutocast(passes, options);
  if (train || gradient)
    addScaleLoss(passes, options);
  if (train) {
    auto optimize = takeFlags<TrainOptimizeOptions>(options);
    optimize.scheduleSettings = formatOption(options.scheduleOptions);
    optimize.settings = formatOption(options.optimizerOptions);
    optimize.keepGradient = gradient;
    passes.addPass(createTrainOptimize(optimize));
    addStateLayouts(passes, options);
    if (options.ema != 0.0)
      passes.addPass(createTrainAverageWeights(options));
  }
  addAccumulate(passes, options);
  if (train && options.updateTime != "now")
    passes.addPass(createTrainDeferUpdates(options));
  if (train)
    passes.addPass(createTrainSparseUpdates(options));
  passes.addPass(createVerifyStep(options));
}

void lowtide::buildStepStage(OpPassManager &passes, const OptionValues &options) {
  // First, since it may derive the gradients anew: precision is then decided for forward and backward pass together.
  addScaleLoss(passes, options);
  addCleanUp(passes);
  addAutocast(passes, options);
  addAccumulate(passes, options);
  passes.addPass(createVerifyStep(options));
}

void lowtide::addLossHeads(OpPassManager &passes, const FitStageOptions &options) {
  if (!options.partLossHeads)
    return;
  auto head = takeFlags<TrainChunkLossHeadOptions>(options);
  head.chunks = options.headChunks;
  passes.addNestedPass<func::FuncOp>(createTrainChunkLossHead(head));
}

void lowtide::addRecomputedSteps(OpPassManager &passes, const FitStageOptions &options) {
  if (options.recomputedSteps == RecomputedSteps::None)
    return;
  auto scans = takeFlags<TrainRecomputeScansOptions>(options);
  scans.recompute = getName(options.recomputedSteps).str();
  passes.addNestedPass<func::FuncOp>(createTrainRecomputeScans(scans));
  addCleanUp(passes);
}

void lowtide::addLoopBlocks(OpPassManager &passes, const FitStageOptions &options) {
  if (!options.loopBlocks)
    return;
  auto distribute = takeFlags<TrainDistributeLoopsOptions>(options);
  distribute.blocks = options.loopBlocks;
  passes.addNestedPass<func::FuncOp>(createTrainDistributeLoops(distribute));
}

void lowtide::buildFitStage(OpPassManager &passes, const FitStageOptions &options) {
  if (!options.widen.empty()) {
    auto widen = takeFlags<NNWidenOptions>(options);
    widen.from = {"f16", "bf16", "f32"};
    widen.to = options.widen;
    passes.addPass(createNNWiden(widen));
  }
  addRecomputedSteps(passes, options);
  addLossHeads(passes, options);
  passes.addNestedPass<func::FuncOp>(createTrainTileCoded(options));
  auto decompose = takeFlags<NNDecomposeOptions>(options);
  decompose.library = options.library;
  passes.addNestedPass<func::FuncOp>(createNNDecompose(decompose));
  addCleanUp(passes);
  if (options.library && options.isForGpu) {
    passes.addNestedPass<func::FuncOp>(createNNConvLayout(options));
    addCleanUp(passes);
    passes.addNestedPass<func::FuncOp>(createNNLibraryForms(options));
    addCleanUp(passes);
    // Once more: canonical form has reshapes after casts, kernels had better have them in front.
    passes.addNestedPass<func::FuncOp>(createNNLibraryForms(options));
    passes.addPass(createCSEPass());
  }
  // What is computed is decided: cut or not, loops have the same bits.
  addLoopBlocks(passes, options);
  auto cluster = takeFlags<NNClusterOptions>(options);
  cluster.library = options.library;
  passes.addNestedPass<func::FuncOp>(createNNCluster(cluster));
  if (options.fuse)
    passes.addNestedPass<func::FuncOp>(createTrainInlineSaved(options));
  passes.addPass(createTrainOrder(options));
  if (!options.deviceBudget.empty())
    passes.addPass(
        createTrainRematerialize(takeFlags<TrainRematerializeOptions>(options), options.solved, options.isRefusalRead));
  passes.addPass(createProfileMemory(options));
}

void lowtide::buildLaunchStage(OpPassManager &passes, const FitStageOptions &options) {
  if (!options.isForGpu || !options.fuse)
    return;
  passes.addPass(createNNBatchLaunches(options));
}

void lowtide::buildProofStage(OpPassManager &passes) {
  passes.addPass(createVerifyBudget());
  passes.addPass(createVerifyPlan());
}

void lowtide::buildPlanStage(OpPassManager &passes, const OptionValues &options) {
  passes.addPass(createPlanLower(options));
  passes.addPass(createPlanPlace(options));
  passes.addPass(createPlanAssignStreams(options));
  buildProofStage(passes);
}

void lowtide::buildPlanStage(OpPassManager &passes, codegen::KernelModule &kernels, const PlanLowerSettings &settings) {
  passes.addPass(createPlanLower(kernels, settings));
  passes.addPass(createPlanPlace());
  passes.addPass(createPlanAssignStreams());
  buildProofStage(passes);
}

void lowtide::registerStagePipelines() {
  PassPipelineRegistration<>("graph-stage", "nn: patterns, canonical form, contract",
                             [](OpPassManager &passes) { buildGraphStage(passes, OptionValues()); });
  PassPipelineRegistration<>("train-stage", "nn → train with AdamW",
                             [](OpPassManager &passes) { buildTrainStage(passes, OptionValues()); });
  PassPipelineRegistration<>("fit-stage", "train → fitted: kernels and library calls",
                             [](OpPassManager &passes) { buildFitStage(passes, FitStageOptions()); });
}
