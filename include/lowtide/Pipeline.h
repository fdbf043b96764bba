//===- Pipeline.h - which passes run, in which order ------------*- C++ -*-===//
//
// The stages of a compile as pass pipelines. passes/Pipeline.cpp is the only file that orders passes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace lowtide {

namespace codegen {
class KernelModule;
}
struct PlanLowerSettings;

/// What the nn stage recognises.
struct GraphStageOptions {
  bool lossHead = true;        ///< cross-entropy of a linear layer as one op, where its logits are large
  bool lossHeadAlways = false; ///< the same, however small they are
  std::string adapters;        ///< rules of low-rank pairs (passes/Passes.td, train-adapt); empty: none
  std::string adapterDropout;  ///< of all pairs; empty: as the rules say
  std::string frozenCodec;     ///< of frozen matrices: int8, nf4; empty: none
};

/// What the train stage adds; the texts are those of the flags (passes/Passes.td, train-optimize).
struct TrainStageOptions {
  std::string optimizer = "adamw", convention = "torch", lr = "0.001";
  std::string schedule = "constant", warmupSteps = "0", totalSteps = "0", minLr = "0";
  std::string scheduleSettings;        ///< `step_size=30;gamma=0.1`
  std::string fallback;                ///< `adamw:lr=3e-4`
  std::string settings;                ///< `weight_decay=0.1;betas=0.9,0.95`
  std::string groups;                  ///< rules separated by `;`
  std::string sparseUpdates = "exact"; ///< tables in the rows that a batch names: exact, lazy or off
  std::string moments = "f32";         ///< codec of optimizer state: f32, bf16, int8, fp8
  std::string master = "f32";          ///< codec of parameters: f32 (as they are), split, whole or sr
  double ema = 0.0;                    ///< decay of averages of the weights; 0: none are kept
  std::string precision;               ///< mixed-bf16, mixed-f16, bf16 or f16; empty: types stay as they are
  std::string precisionOverrides;      ///< rules separated by `;`
  std::string frozenWeights;           ///< f32, or the precision's 16-bit type; empty: as parameters
  std::string lossScale = "none";
  double clipNorm = 0.0, clipValue = 0.0; ///< 0: gradients are not limited
  std::vector<std::string> entries = {"train", "eval"};
  int64_t microBatches = 1; ///< equal parts of the batch that are computed one after the other
};

/// How the fitted stage cuts the step into kernels and library calls.
struct FitStageOptions {
  bool fuse = true;                ///< several ops in a kernel
  bool library = true;             ///< contractions and convolutions by vendor libraries
  std::string widen = "";          ///< "f64": compute everything in f64
  bool isForGpu = false;           ///< the module's target is one: passes that are for its libraries run
  std::string budget = "";         ///< "8MiB", "50%": everything that the runtime allocates; empty: no limit
  std::string strategy = "fit";    ///< how recomputations are chosen
  bool bound = false;              ///< say how much any plan recomputes at least
  std::string convLayout = "auto"; ///< how a GPU stores images: auto, nchw, nhwc
  bool partLossHeads = true;       ///< large logits in chunks of rows
  int64_t lossHeadChunks = 0;      ///< chunks of rows of a loss head; 0 chooses, -1: one for each tile
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
/// fitted → fitted: on a GPU, small kernels share launches. Elsewhere, and where nothing is fused, no pass.
void buildLaunchStage(mlir::OpPassManager &passes, const FitStageOptions &options);

/// What a plan is made for.
struct PlanStageOptions {
  bool weights = true; ///< parameters start from the model file
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
