//===- Request.h - what is asked of the compiler ----------------*- C++ -*-===//
//
// Everything that decides what is made of a model, as plain data: no paths of outputs, and nothing about printing.
// Options have the names and the words of the command line's flags, by which messages call them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Support/DeclaredOptions.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

/// The stages in order: onnx 0, nn 1, train 2, fitted 3, plan 4, and what is made of a plan (artifact, kernels, ptx) 5;
/// -1: none.
int getStageNumber(llvm::StringRef name);

/// Words that `Request::schedule` takes.
std::vector<std::string> listSchedules();

/// The step once more, otherwise: its entries stand next to the others and share their parameters and state. The batch
/// has to be a symbol of the model.
struct EntryVariant {
  std::string name;           ///< "last": its entries are `train_last` and `eval_last`
  int64_t batch = 0;          ///< samples; 0: as many as the others have
  int64_t parts = 0;          ///< of the batch; 0: the fewest that are no larger than those of the others
  std::string precision = {}; ///< as `Request::precision`; empty: the same
};

/// What is made of a model.
struct Request {
  // model
  std::vector<std::string> dims;   // NAME=V
  std::vector<std::string> shapes; // INPUT=8x64
  int64_t batch = 0;
  std::vector<EntryVariant> variants; // entries for other batches, parts or precisions
  std::string mode{defaultText("mode")};
  double dropout = defaultNumber("dropout"); // negative: as the file says
  std::vector<std::string> freezeNorms;      // names and globs of batch norms
  std::vector<std::string> rename, set;
  /// One --params or --frozen, as written.
  struct Selection {
    bool trains;
    std::string text;
  };
  std::vector<Selection> selections; // in order: a later one wins
  std::vector<std::string> lora;     // LAYER[,LAYER]:r=16,alpha=32
  std::string loss{defaultText("loss")};
  std::vector<std::string> outputs; // of the file, that train computes too; all, none: not in eval either

  // optimizer and schedule: as written; train-optimize parses and checks them
  std::string optimizer{defaultText("optimizer")};
  std::string convention{defaultText("convention")};
  std::string lr{defaultText("lr")};
  std::map<std::string, std::string> optimizerOptions; // betas, eps, weight_decay, …
  std::map<std::string, std::string> scheduleOptions;  // power, step_size, …
  std::string fallback{defaultText("fallback")};
  std::vector<std::string> groups;
  std::string sparseUpdates{defaultText("sparse-updates")}; // exact, lazy or off
  std::string moments{defaultText("moments")};              // f32, bf16, int8 or fp8
  std::string master{defaultText("master")};                // f32 (as --precision has parameters), split, whole or sr
  double ema = defaultNumber("ema");                        // decay of averages of the weights; 0: none
  std::string schedule{defaultText("schedule")};
  std::string warmupSteps{defaultText("warmup-steps")}, totalSteps{defaultText("total-steps")},
      minLr{defaultText("min-lr")};
  // flags of the forward pass, of updates and of the rate that were given → how a message names them: "eps" → "--eps",
  // "--eps (LOWTIDE_EPS)"
  std::map<std::string, std::string> forwardFlags, updateFlags, rateFlags;

  int64_t microBatches = defaultWhole("micro-batches");
  std::string lossHeadChunks = "auto"; // auto, off or a number

  // target
  std::string target{defaultText("target")};
  std::string targetFile; // figures of a target that has no row, instead of `target`; empty: none
  // whether a target, by name or by file, and threadsMax were given: without, a stage's text keeps its own
  bool givesTarget = false, givesThreads = false;
  std::string precision{defaultText("precision")};
  std::vector<std::string> precisionOverrides;              // PATTERN,PATTERN=TYPE
  std::string frozenWeights{defaultText("frozen-weights")}; // auto, f32, bf16, f16, int8 or nf4
  /// Frozen matrices are held in codes of few bits.
  bool codesFrozen() const { return frozenWeights == "int8" || frozenWeights == "nf4"; }
  std::string lossScale{defaultText("loss-scale")};
  double clipNorm = defaultNumber("clip-norm"), clipValue = defaultNumber("clip-value"); // 0: not limited
  std::vector<std::string> entries = {"train", "eval"};
  bool fuse = defaultSwitch("fuse");
  std::string convLayout{defaultText("conv-layout")}; // auto, nchw, nhwc
  std::string kernelCache = "auto";                   // auto, off or a folder
  int64_t threadsMax = defaultWhole("threads-max");

  // memory
  std::string deviceBudget{defaultText("device-budget")}; // 8MiB, 50%; empty: no limit
  std::string hostBudget{defaultText("host-budget")};     // of other memories, where values may wait: 32GiB
  std::string diskBudget{defaultText("disk-budget")};
  std::string rematStrategy{defaultText("remat-strategy")};
  std::string withoutMethods{defaultText("without-methods")}; // names of solve::listMethods, with commas
  bool bound = defaultSwitch("bound");                        // say how much any plan recomputes at least

  // stages
  std::string from;                 // the input is this stage's text; empty: a model
  std::string emit = "artifact";    // the last stage, kernels, ptx or onnx-model
  std::string onnxStage = "fitted"; // what --emit=onnx-model writes
  std::string onnxForm = "step";    // or training-info
  std::string onnxBf16 = "cast-pairs";
  std::string onnxOptimizers = "standard";
  std::string onnxRounds = "auto"; // of loops: written out, or a Loop
  bool onnxWeights = true;
  bool weights = defaultSwitch("weights"); // the artifact holds the model's weights
  std::string emitLocations = "on";        // on or off
  std::vector<std::string> watched;        // values that become outputs of the model
};

/// What a step costs at which budget, or whether it fits one.
struct FitRequest : Request {
  /// The bytes that there are, all told; nothing: a table of budgets.
  std::optional<ByteSize> room;
  std::string roomTitle;     // whose bytes they are
  unsigned fitRows = 17;     // lines of the table
  bool baselines = false;    // other methods next to its plans
  unsigned boundRows = 5;    // of these lines, those with a bound
  unsigned roundingRows = 5; // and those with a rounded linear program of their own
};

} // namespace lowtide
