//===- Pipeline.h - which passes run, in which order ------------*- C++ -*-===//
//
// The stages of a compile as pass pipelines. passes/Pipeline.cpp is the only file that orders passes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Support/DeclaredOptions.h"
#include "mlir/Pass/PassManager.h"

#include <memory>
#include <string>
#include <vector>

namespace lowtide {

namespace codegen {
class KernelModule;
}
namespace solve {
class SolvedSteps;
}
struct PlanLowerSettings;

/// A number as text that reads back as the same number: what options of passes take.
std::string formatNumber(double number);
/// A switch as an option of a pass has it.
inline const char *formatSwitch(bool isOn) { return isOn ? "true" : "false"; }

/// What the nn stage recognises.
struct GraphStageOptions {
  bool lossHead = true;                      ///< cross-entropy of a linear layer as one op, where its logits are large
  bool lossHeadAlways = false;               ///< the same, however small they are
  std::string adapters{defaultText("lora")}; ///< rules of low-rank pairs; empty: none
  std::string adapterDropout{defaultText("dropout")};       ///< of all pairs; negative: as the rules say
  std::string frozenWeights{defaultText("frozen-weights")}; ///< int8, nf4: matrices in codes
};

/// What the train stage adds; the texts are those of the flags (Support/DeclaredOptions.td).
struct TrainStageOptions {
  std::string optimizer{defaultText("optimizer")}, convention{defaultText("convention")}, lr{defaultText("lr")};
  std::string schedule{defaultText("schedule")}, warmupSteps{defaultText("warmup-steps")},
      totalSteps{defaultText("total-steps")}, minLr{defaultText("min-lr")};
  std::string scheduleSettings;                             ///< `step_size=30;gamma=0.1`
  std::string fallback{defaultText("fallback")};            ///< `adamw:lr=3e-4`
  std::string settings;                                     ///< `weight_decay=0.1;betas=0.9,0.95`
  std::string groups{defaultText("group")};                 ///< rules separated by `;`
  std::string sparseUpdates{defaultText("sparse-updates")}; ///< tables in the rows that a batch names
  std::string moments{defaultText("moments")};              ///< codec of optimizer state
  std::string master{defaultText("master")};                ///< codec of parameters
  double ema = defaultNumber("ema");                        ///< decay of averages of the weights; 0: none are kept
  std::string precision{defaultText("precision")};          ///< f32, f64: types stay as they are
  std::string precisionOverrides{defaultText("precision-override")}; ///< rules separated by `;`
  std::string frozenWeights{defaultText("frozen-weights")};
  std::string lossScale{defaultText("loss-scale")};
  double clipNorm = defaultNumber("clip-norm"), clipValue = defaultNumber("clip-value"); ///< 0: not limited
  std::vector<std::string> entries = {"train", "eval"};
  int64_t microBatches = defaultWhole("micro-batches"); ///< equal parts of the batch, one after the other
};

/// How the fitted stage cuts the step into kernels and library calls.
struct FitStageOptions {
  bool fuse = defaultSwitch("fuse"); ///< several ops in a kernel
  bool library = true;               ///< contractions and convolutions by vendor libraries
  std::string widen = "";            ///< "f64": compute everything in f64
  bool isForGpu = false;             ///< the module's target is one: passes that are for its libraries run
  std::string budget{
      defaultText("device-budget")}; ///< "8MiB", "50%": everything that the runtime allocates; empty: no limit
  std::string hostBudget{defaultText("host-budget")};         ///< pinned memory in which values may wait; empty: none
  std::string diskBudget{defaultText("disk-budget")};         ///< the same of a file
  std::string strategy{defaultText("remat-strategy")};        ///< how recomputations are chosen
  std::string withoutMethods{defaultText("without-methods")}; ///< methods of that search which are not asked
  bool bound = defaultSwitch("bound");                        ///< say how much any plan recomputes at least
  std::string convLayout{defaultText("conv-layout")};         ///< how a GPU stores images: auto, nchw, nhwc
  bool partLossHeads = true;                                  ///< large logits in chunks of rows
  int64_t lossHeadChunks = 0;           ///< chunks of rows of a loss head; 0 chooses, -1: one for each tile
  std::string recomputedSteps = "none"; ///< what segments of steps compute once more: none, products, all
  /// What was searched before, and what will be, for the plans of many budgets; null: nothing is kept.
  std::shared_ptr<solve::SolvedSteps> solved = nullptr;
};

/// nn: patterns of exporters recognised, duplicates removed, forms made canonical.
void buildGraphStage(mlir::OpPassManager &passes, const GraphStageOptions &options);
/// nn → train: gradients, updates, entry points.
void buildTrainStage(mlir::OpPassManager &passes, const TrainStageOptions &options);
/// The train stage of a file that holds a whole step already: its precision and its contract.
void buildStepStage(mlir::OpPassManager &passes, const TrainStageOptions &options);
/// train → fitted: decomposed into primitives and grouped into kernels.
void buildFitStage(mlir::OpPassManager &passes, const FitStageOptions &options);
/// Of that stage, what cuts loss heads into chunks of the target's tiles.
void addLossHeads(mlir::OpPassManager &passes, const FitStageOptions &options);
/// Of that stage, what lets segments of steps compute what they would keep.
void addRecomputedSteps(mlir::OpPassManager &passes, const FitStageOptions &options);
/// fitted → fitted: on a GPU, small kernels share launches. Elsewhere, and where nothing is fused, no pass.
void buildLaunchStage(mlir::OpPassManager &passes, const FitStageOptions &options);

/// What a plan is made for.
struct PlanStageOptions {
  bool weights = defaultSwitch("weights"); ///< parameters start from the model file
};

/// fitted → plan: addresses for every byte, proved; the kernels' functions are next to it.
void buildPlanStage(mlir::OpPassManager &passes, const PlanStageOptions &options);
/// The same with the kernels of several plans in `kernels`.
void buildPlanStage(mlir::OpPassManager &passes, codegen::KernelModule &kernels, const PlanLowerSettings &settings);
/// plan → plan: what a plan from elsewhere must prove.
void buildProofStage(mlir::OpPassManager &passes);

/// Registers the stages as pipelines of lowtide-opt: `graph-stage`, `train-stage`, `fit-stage`.
void registerStagePipelines();

} // namespace lowtide
