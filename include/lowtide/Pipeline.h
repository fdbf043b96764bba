//===- Pipeline.h - which passes run, in which order ------------*- C++ -*-===//
//
// The stages of a compile as pass pipelines. passes/Pipeline.cpp is the only file that orders passes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Support/OptionValues.h"
#include "lowtide/Support/RecomputedSteps.h"
#include "mlir/Pass/PassManager.h"

#include <memory>
#include <string>

namespace lowtide {

namespace codegen {
class KernelModule;
}
namespace solve {
class SolvedSteps;
}
struct PlanLowerSettings;

/// How the fitted stage cuts the step into kernels and library calls: the options' values, and what follows from the
/// target, or is searched.
struct FitStageOptions : OptionValues {
  FitStageOptions() = default;
  explicit FitStageOptions(const OptionValues &values) : OptionValues(values) {}

  bool library = true;       ///< contractions and convolutions by vendor libraries
  std::string widen = "";    ///< "f64": compute everything in f64
  bool isForGpu = false;     ///< the module's target is one: passes that are for its libraries run
  bool partLossHeads = true; ///< large logits in chunks of rows
  int64_t headChunks = 0;    ///< chunks of rows of a loss head; 0 chooses, -1: one for each tile
  RecomputedSteps recomputedSteps = RecomputedSteps::None; ///< of segments of steps
  unsigned loopBlocks = 0; ///< shares of the parameters by which loops over parts are cut into blocks; 0: they are not
  /// What was searched before, and what will be, for the plans of many budgets; null: nothing is kept.
  std::shared_ptr<solve::SolvedSteps> solved = nullptr;
  bool isRefusalRead = true; ///< a refusal says what is lacking; else a step whose bound refuses it is not searched
};

/// nn: patterns of exporters recognised, duplicates removed, forms made canonical.
void buildGraphStage(mlir::OpPassManager &passes, const OptionValues &options);
/// nn → train: gradients, updates, entry points.
void buildTrainStage(mlir::OpPassManager &passes, const OptionValues &options);
/// The train stage of a file that holds a whole step already: its precision and its contract.
void buildStepStage(mlir::OpPassManager &passes, const OptionValues &options);
/// train → fitted: decomposed into primitives and grouped into kernels.
void buildFitStage(mlir::OpPassManager &passes, const FitStageOptions &options);
/// Of that stage, what cuts loss heads into chunks of the target's tiles.
void addLossHeads(mlir::OpPassManager &passes, const FitStageOptions &options);
/// Of that stage, what lets segments of steps compute what they would keep.
void addRecomputedSteps(mlir::OpPassManager &passes, const FitStageOptions &options);
/// Of that stage, what lets all parts of a batch pass a block of the model before the next.
void addLoopBlocks(mlir::OpPassManager &passes, const FitStageOptions &options);
/// fitted → fitted: on a GPU, small kernels share launches. Elsewhere, and where nothing is fused, no pass.
void buildLaunchStage(mlir::OpPassManager &passes, const FitStageOptions &options);

/// fitted → plan: addresses for every byte, proved; the kernels' functions are next to it.
void buildPlanStage(mlir::OpPassManager &passes, const OptionValues &options);
/// The same with the kernels of several plans in `kernels`.
void buildPlanStage(mlir::OpPassManager &passes, codegen::KernelModule &kernels, const PlanLowerSettings &settings);
/// plan → plan: what a plan from elsewhere must prove.
void buildProofStage(mlir::OpPassManager &passes);

/// Registers the stages as pipelines of lowtide-opt: `graph-stage`, `train-stage`, `fit-stage`.
void registerStagePipelines();

} // namespace lowtide
