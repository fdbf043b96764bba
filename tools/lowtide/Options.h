//===- Options.h - what the user asked the compiler for ---------*- C++ -*-===//
//
// The driver's options as plain data, merged from command line, environment, configuration file and defaults.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Log.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lowtide::driver {

/// The program, and the plans that it writes.
inline constexpr const char *versionText = LOWTIDE_VERSION ", plan format 1";

/// Documented exit codes of every tool.
enum ExitCode : int {
  exitOk = 0,
  exitUsage = 1,
  exitBadInput = 2,
  exitUnsupported = 3,
  exitBudget = 4,
  exitVerification = 5,
  exitDevice = 6,
  exitNonFinite = 7,
  exitIo = 8,
  exitExpectation = 9,
  exitInternal = 70,
};

enum class Command { Compile, Check, Fit, Report, Explain, Diff, Verify, Doctor };

/// Everything that `lowtide` can be told.
struct Options {
  Command command = Command::Compile;
  std::string input;
  std::string output;
  std::string config;

  // model
  std::vector<std::string> dims;   // NAME=V
  std::vector<std::string> shapes; // INPUT=8x64
  int64_t batch = 0;
  int64_t lastBatch = 0; // samples behind the last whole batch; 0: no entry for them
  std::string mode = "train";
  double dropout = -1;                  // negative: as the file says
  std::vector<std::string> freezeNorms; // names and globs of batch norms
  std::vector<std::string> params, frozen, rename, set;
  /// One --params or --frozen, as written.
  struct Selection {
    bool trains;
    std::string text;
  };
  std::vector<Selection> selections; // the same in order: a later one wins
  std::vector<std::string> lora;     // LAYER[,LAYER]:r=16,alpha=32
  std::string loss;
  std::vector<std::string> outputs; // of the file, that train computes too; all, none: not in eval either

  // optimizer and schedule: as written; train-optimize parses and checks them
  std::string optimizer = "adamw";
  std::string convention = "torch";
  std::string lr = "0.001";
  std::map<std::string, std::string> optimizerOptions; // betas, eps, weight_decay, …: OptimizerFlags.h
  std::map<std::string, std::string> scheduleOptions;  // power, step_size, …
  std::string fallback;
  std::vector<std::string> groups;
  std::string sparseUpdates = "exact"; // exact, lazy or off
  std::string moments = "f32";         // f32, bf16, int8 or fp8
  std::string master = "f32";          // f32 (as --precision has parameters) or sr
  std::string schedule = "constant";
  std::string warmupSteps = "0", totalSteps = "0", minLr = "0";
  // flags of the forward pass, of updates and of the rate that were given → how a message names them: "eps" → "--eps",
  // "--eps (LOWTIDE_EPS)"
  std::map<std::string, std::string> forwardFlags, updateFlags, rateFlags;

  int64_t microBatches = 1;
  std::string lossHeadChunks = "auto"; // auto, off or a number

  // target
  std::string target = "cpu";
  std::string precision = "f32";
  std::vector<std::string> precisionOverrides; // PATTERN,PATTERN=TYPE
  std::string frozenWeights = "auto";          // auto, f32, bf16 or f16
  std::string lossScale = "none";
  double clipNorm = 0, clipValue = 0; // 0: not limited
  std::vector<std::string> entries = {"train", "eval"};
  bool fuse = true;
  std::string convLayout = "auto";  // auto, nchw, nhwc
  std::string kernelCache = "auto"; // auto, off or a folder
  int64_t threadsMax = 64;

  // memory
  std::string deviceBudget; // 8MiB, 50%; empty: no limit
  std::string card;         // of `lowtide fit`: a GPU's name, instead of a budget
  // `lowtide fit` is given a budget, and not by a file, which serves `lowtide compile`, too
  bool asksWhetherFits = false;
  std::string rematStrategy = "fit";
  bool bound = false;        // say how much any plan recomputes at least
  unsigned fitRows = 17;     // lines of the table of `lowtide fit`
  bool baselines = false;    // other methods beside it
  unsigned boundRows = 5;    // of these lines, those with a bound
  unsigned roundingRows = 5; // and those with a rounded linear program of their own

  // stages and output
  std::string emit = "artifact";
  std::string onnxStage = "fitted"; // what --emit=onnx-model writes
  std::string onnxForm = "step";    // or training-info
  std::string onnxBf16 = "cast-pairs";
  std::string onnxOptimizers = "standard";
  std::string onnxRounds = "auto"; // of loops: written out, or a Loop
  bool onnxWeights = true;
  bool weights = true; // the artifact holds the model's weights
  std::string from;
  std::string emitLocations = "on"; // on or off
  std::string weightsFrom;          // with --from: the model whose weights the artifact holds
  bool dumpPassPipeline = false;
  bool printConfig = false, printSchema = false;
  bool json = false;
  bool strict = false; // of `lowtide check`: a guess is an error
  std::string format;  // of a report; empty: by the output's extension
  std::string run;     // what a run recorded, for a report
  std::string tensor;  // explain: a tensor (#12), layer or bound name, as a glob; empty: all decisions
  std::string other;   // diff: the second file
  bool diffIr = false; // diff: the files are IR, not artifacts

  // verify, of a model
  std::string against;              // record.npz, module.py:make, onnxruntime; empty: an artifact's plan is proved
  std::string python = "python3";   // runs module.py
  std::string record;               // where the record of module.py is kept; empty: nowhere
  int64_t proofSteps = 10;          // of that record
  double tolerance = 1e-5;          // of an entry, in units of the largest entry of its array
  std::string data;                 // a batch for ONNX Runtime
  std::vector<std::string> watched; // values that become outputs of the model

  int verbosity = 0; // -1 quiet, 1 verbose
  config::Log log;   // what --log and LOWTIDE_LOG ask for
};

/// Parses; prints help, configuration or usage errors itself and then returns the exit code to leave with.
std::optional<int> parseOptions(int argc, char **argv, Options &options);

} // namespace lowtide::driver
