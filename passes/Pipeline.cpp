//===- Pipeline.cpp - orders the passes -------------------------*- C++ -*-===//
//
// The life of a step: forward graph, training step, fitted step. Each stage ends in the check of its contract.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Pipeline.h"
#include "Passes.h"
#include "PlanLower.h"
#include "TrainRematerialize.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include <charconv>

using namespace mlir;
using namespace lowtide;

static void addCleanUp(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

static void addAccumulate(OpPassManager &passes, int64_t microBatches) {
  if (microBatches == 1)
    return;
  lowtide::TrainAccumulateOptions accumulate;
  accumulate.microBatches = std::to_string(microBatches);
  addCleanUp(passes);
  passes.addPass(lowtide::createTrainAccumulate(accumulate));
  addCleanUp(passes);
}

void lowtide::buildGraphStage(OpPassManager &passes, const GraphStageOptions &options) {
  addCleanUp(passes);
  if (!options.adapters.empty()) {
    // Before products become parts of larger ops.
    TrainAdaptOptions adapt;
    adapt.rules = options.adapters;
    adapt.dropout = options.adapterDropout;
    passes.addPass(createTrainAdapt(adapt));
    addCleanUp(passes);
  }
  if (options.frozenWeights == "int8" || options.frozenWeights == "nf4") {
    // After pairs, whose rules name matrices; before products become parts of larger ops.
    TrainEncodeFrozenOptions encode;
    encode.codec = options.frozenWeights;
    passes.addPass(createTrainEncodeFrozen(encode));
    addCleanUp(passes);
  }
  NNFusePatternsOptions patterns;
  patterns.lossHead = options.lossHead;
  patterns.lossHeadAlways = options.lossHeadAlways;
  passes.addNestedPass<func::FuncOp>(createNNFusePatterns(patterns));
  addCleanUp(passes);
  passes.addNestedPass<func::FuncOp>(createNNSplitSums());
  addCleanUp(passes);
  passes.addPass(createVerifyLegal());
}

static void addAutocast(OpPassManager &passes, const TrainStageOptions &options) {
  if (!isNarrow(options.precision))
    return;
  TrainAutocastOptions autocast;
  autocast.precision = options.precision;
  autocast.overrides = options.precisionOverrides;
  autocast.frozenWeights = options.frozenWeights;
  passes.addPass(createTrainAutocast(autocast));
  addCleanUp(passes);
}

std::string lowtide::formatNumber(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

static void addScaleLoss(OpPassManager &passes, const TrainStageOptions &options) {
  if (options.lossScale == "none" && options.clipNorm == 0.0 && options.clipValue == 0.0)
    return;
  TrainScaleLossOptions scale;
  scale.lossScale = options.lossScale;
  scale.clipNorm = formatNumber(options.clipNorm);
  scale.clipValue = formatNumber(options.clipValue);
  passes.addPass(createTrainScaleLoss(scale));
}

static void addSparseUpdates(OpPassManager &passes, const TrainStageOptions &options) {
  TrainSparseUpdatesOptions rows;
  rows.rules = options.sparseUpdates;
  passes.addPass(createTrainSparseUpdates(rows));
}

static void addStateLayouts(OpPassManager &passes, const TrainStageOptions &options) {
  const llvm::StringRef groups = options.groups;
  if (options.moments == "f32" && options.master == "f32" && !groups.contains("moments=") &&
      !groups.contains("master="))
    return;
  TrainStateLayoutsOptions layouts;
  layouts.moments = options.moments;
  layouts.master = options.master;
  layouts.groups = options.groups;
  passes.addPass(createTrainStateLayouts(layouts));
}

void lowtide::buildTrainStage(OpPassManager &passes, const TrainStageOptions &options) {
  passes.addPass(createTrainWeighLoss());
  bool train = llvm::is_contained(options.entries, "train"), gradient = llvm::is_contained(options.entries, "gradient");
  if (train || gradient) {
    passes.addPass(createNNSegmentScans());
    TrainDifferentiateOptions differentiate;
    differentiate.lossScale = options.lossScale;
    differentiate.precision = options.precision;
    passes.addPass(createTrainDifferentiate(differentiate));
    addCleanUp(passes);
  }
  addAutocast(passes, options);
  if (train || gradient)
    addScaleLoss(passes, options);
  if (train) {
    TrainOptimizeOptions optimize;
    optimize.optimizer = options.optimizer;
    optimize.convention = options.convention;
    optimize.lr = options.lr;
    optimize.schedule = options.schedule;
    optimize.warmupSteps = options.warmupSteps;
    optimize.totalSteps = options.totalSteps;
    optimize.minLr = options.minLr;
    optimize.scheduleSettings = options.scheduleSettings;
    optimize.fallback = options.fallback;
    optimize.settings = options.settings;
    optimize.groups = options.groups;
    optimize.keepGradient = gradient;
    passes.addPass(createTrainOptimize(optimize));
    addStateLayouts(passes, options);
    if (options.ema != 0.0) {
      TrainAverageWeightsOptions average;
      average.decay = formatNumber(options.ema);
      passes.addPass(createTrainAverageWeights(average));
    }
  }
  addAccumulate(passes, options.microBatches);
  if (train)
    addSparseUpdates(passes, options);
  passes.addPass(createVerifyStep());
}

void lowtide::buildStepStage(OpPassManager &passes, const TrainStageOptions &options) {
  // First, since it may derive the gradients anew: precision is then decided for forward and backward pass together.
  addScaleLoss(passes, options);
  addCleanUp(passes);
  addAutocast(passes, options);
  addAccumulate(passes, options.microBatches);
  passes.addPass(createVerifyStep());
}

void lowtide::addLossHeads(OpPassManager &passes, const FitStageOptions &options) {
  if (!options.partLossHeads)
    return;
  TrainChunkLossHeadOptions head;
  head.chunks = options.lossHeadChunks;
  passes.addNestedPass<func::FuncOp>(createTrainChunkLossHead(head));
}

void lowtide::addRecomputedSteps(OpPassManager &passes, const FitStageOptions &options) {
  if (options.recomputedSteps == "none")
    return;
  TrainRecomputeScansOptions scans;
  scans.kept = options.recomputedSteps;
  passes.addNestedPass<func::FuncOp>(createTrainRecomputeScans(scans));
  addCleanUp(passes);
}

void lowtide::buildFitStage(OpPassManager &passes, const FitStageOptions &options) {
  if (!options.widen.empty()) {
    NNWidenOptions widen;
    widen.from = {"f16", "bf16", "f32"};
    widen.to = options.widen;
    passes.addPass(createNNWiden(widen));
  }
  addRecomputedSteps(passes, options);
  addLossHeads(passes, options);
  passes.addNestedPass<func::FuncOp>(createTrainTileCoded());
  NNDecomposeOptions decompose;
  decompose.library = options.library;
  passes.addNestedPass<func::FuncOp>(createNNDecompose(decompose));
  addCleanUp(passes);
  if (options.library && options.isForGpu) {
    NNConvLayoutOptions layout;
    layout.layout = options.convLayout;
    passes.addNestedPass<func::FuncOp>(createNNConvLayout(layout));
    addCleanUp(passes);
    passes.addNestedPass<func::FuncOp>(createNNLibraryForms());
    addCleanUp(passes);
    // Once more: canonical form has reshapes after casts, kernels had better have them in front.
    passes.addNestedPass<func::FuncOp>(createNNLibraryForms());
    passes.addPass(createCSEPass());
  }
  NNClusterOptions cluster;
  cluster.fuse = formatSwitch(options.fuse);
  cluster.library = options.library;
  passes.addNestedPass<func::FuncOp>(createNNCluster(cluster));
  if (options.fuse)
    passes.addNestedPass<func::FuncOp>(createTrainInlineSaved());
  passes.addPass(createTrainOrder());
  if (!options.budget.empty()) {
    TrainRematerializeOptions fit;
    fit.budget = options.budget;
    fit.hostBudget = options.hostBudget;
    fit.diskBudget = options.diskBudget;
    fit.strategy = options.strategy;
    fit.withoutMethods = options.withoutMethods;
    fit.bound = formatSwitch(options.bound);
    passes.addPass(createTrainRematerialize(fit, options.solved));
  }
  passes.addPass(createProfileMemory());
}

void lowtide::buildLaunchStage(OpPassManager &passes, const FitStageOptions &options) {
  if (!options.isForGpu || !options.fuse)
    return;
  passes.addPass(createNNBatchLaunches());
}

void lowtide::buildProofStage(OpPassManager &passes) {
  passes.addPass(createVerifyBudget());
  passes.addPass(createVerifyPlan());
}

void lowtide::buildPlanStage(OpPassManager &passes, const PlanStageOptions &options) {
  PlanLowerOptions lower;
  lower.weights = formatSwitch(options.weights);
  passes.addPass(createPlanLower(lower));
  passes.addPass(createPlanPlace());
  passes.addPass(createPlanAssignStreams());
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
                             [](OpPassManager &passes) { buildGraphStage(passes, GraphStageOptions()); });
  PassPipelineRegistration<>("train-stage", "nn → train with AdamW",
                             [](OpPassManager &passes) { buildTrainStage(passes, TrainStageOptions()); });
  PassPipelineRegistration<>("fit-stage", "train → fitted: kernels and library calls",
                             [](OpPassManager &passes) { buildFitStage(passes, FitStageOptions()); });
}
