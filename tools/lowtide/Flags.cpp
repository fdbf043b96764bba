//===- Flags.cpp - the flags of compile, check, fit and verify --*- C++ -*-===//
//
// Name, variable, help and check of each; the configuration file has keys of the same names.
//
//===----------------------------------------------------------------------===//

#include "Flags.h"
#include "Choices.h"
#include "NumberChecks.h"
#include "OptimizerFlags.h"
#include "lowtide/Support/OptionChoices.h"
#include <CLI/CLI.hpp>

using namespace lowtide;
using namespace lowtide::driver;
using config::addList;
using config::choice;
using config::nonNegative;
using config::positive;
using config::rate;

/// Words that a pass declares.
static std::vector<std::string> list(llvm::ArrayRef<llvm::StringLiteral> words) { return {words.begin(), words.end()}; }

static void addModelFlags(CLI::App &app, Options &o) {
  addList(app, "--dim", o.dims,
          "Binds symbolic dimensions: NAME=VALUE[,NAME=VALUE]; a name as the exporter writes it (2*h) binds its symbol")
      ->group("model");
  addList(app, "--shape", o.shapes, "Shapes of inputs: INPUT=8x64[,INPUT=scalar]")->group("model");
  app.add_option("--batch", o.batch, "Samples per step: binds the symbol in dimension 0 of every input")
      ->check(positive())
      ->group("model");
  app.add_option("--last-batch", o.lastBatch,
                 "Further entries for a batch of so many samples: what no whole batch holds")
      ->check(positive())
      ->group("model");
  app.add_option("--mode", o.mode, "train: batch norm and dropout in training form; as-is: as the file says")
      ->check(choice(list(trainingModes)))
      ->group("model");
  app.add_option("--dropout", o.dropout, "Overrides every dropout rate")->check(rate())->group("model");
  addList(app, "--freeze-norm", o.freezeNorms,
          "Batch norms that keep their running statistics, as module.eval() has it: names and globs of layers, with "
          "commas. Their scale and bias are trained unless --frozen names them")
      ->group("model");
  app.add_option(
         "--loss", o.loss,
         "Adds a loss: \"cross_entropy(LOGITS, LABELS, label_smoothing=0.1) + 0.3*mse(OUTPUT, TARGET)\", or names "
         "an output that is one. Kinds and options are PyTorch's: cross_entropy (weight, ignore_index, reduction, "
         "label_smoothing); nll of PROBABILITIES and nll_loss of LOG_PROBABILITIES (weight, ignore_index, "
         "reduction); mse, l1 (weight, reduction); smooth_l1 (beta, reduction); huber (delta, weight, reduction); "
         "bce of PROBABILITIES (weight, reduction); bce_with_logits (weight, pos_weight, reduction); kl_div of "
         "LOG_PROBABILITIES (log_target, reduction). A weight is a number, a list [0.5, 1] or an array. Names "
         "with spaces, commas or brackets are put into quotes")
      ->group("model");
  app.add_option("--outputs", o.outputs,
                 "Outputs of the file that train and gradient compute too, by name, or all; eval has them unless none. "
                 "Without it a training step computes its loss and no other output")
      ->delimiter(',')
      ->group("model");
  addList(app, "--set", o.set, "Makes inputs constants: INPUT=VALUE[,INPUT=VALUE], a number, true or false")
      ->group("model");
  addList(app, "--params", o.params,
          "Trains only these: names and globs, with commas. --frozen and --params are applied in their order, and the "
          "last one that matches counts; +GLOB trains it besides what the file says")
      ->group("parameters");
  addList(app, "--frozen", o.frozen, "Keeps these as they are: names and globs, with commas")->group("parameters");
  addList(app, "--lora", o.lora,
          "Trains low-rank pairs instead of weights: LAYER[,LAYER]:r=16[,alpha=32][,dropout=0.05][,rslora], names and "
          "globs of layers; several rules with ; or by repeating, the first that matches counts. Everything else is "
          "frozen but what --params names. Without alpha it is r, a scale of 1")
      ->group("parameters");
  addList(app, "--rename", o.rename, "Parameter names: NAME_IN_FILE=NAME")->group("parameters");
}

static void addTrainingFlags(CLI::App &app, Options &o) {
  auto addValues = [&](llvm::ArrayRef<ValueFlag> rows, std::map<std::string, std::string> &values, const char *group) {
    for (const ValueFlag &row : rows) {
      std::string key = row.flag;
      std::replace(key.begin(), key.end(), '-', '_');
      CLI::Option *option = row.isSwitch
                                ? app.add_flag_callback(
                                      std::string("--") + row.flag, [&values, key] { values[key] = "1"; }, row.text)
                                : app.add_option_function<std::string>(
                                      std::string("--") + row.flag,
                                      [&values, key](const std::string &value) { values[key] = value; }, row.text);
      option->group(group);
    }
  };
  app.add_option("--optimizer", o.optimizer,
                 "Update rule: sgd, momentum, adagrad, adam, adamw, rmsprop, nadam, radam, adamax, adadelta, asgd, "
                 "rprop, lion, "
                 "lamb, adafactor, muon")
      ->group("optimizer");
  app.add_option(
         "--fallback", o.fallback,
         "muon: optimizer of all but hidden matrices, with its options (adamw): adamw:lr=3e-4,weight_decay=0.01")
      ->group("optimizer");
  app.add_option("--convention", o.convention, "Whose formula: PyTorch's, or ONNX's ai.onnx.preview.training")
      ->check(choice(list(conventions)))
      ->group("optimizer");
  app.add_option("--lr", o.lr, "Learning rate")->group("optimizer");
  addValues(optimizerFlags, o.optimizerOptions, "optimizer");
  addList(app, "--group", o.groups, "Parameter group: PATTERN[,PATTERN]:lr=X,weight_decay=Y,optimizer=NAME; may repeat")
      ->group("optimizer");
  app.add_flag(
         "--sparse-updates{lazy}", o.sparseUpdates,
         "Tables without weight decay in the rows that a batch names: exact (where no bit changes: sgd and adagrad), "
         "lazy (also momentum, adam and adamw: state of other rows waits, as in PyTorch's SparseAdam), off")
      ->check(choice(list(sparseUpdateRules)))
      ->group("optimizer");
  app.add_option("--moments", o.moments,
                 "How optimizer state is stored: f32; bf16 (rounded); int8, fp8 (a byte for an element and a scale for "
                 "256; lossy). Updates compute in f32")
      ->check(choice({"f32", "bf16", "int8", "fp8"}))
      ->group("optimizer");
  app.add_option(
         "--master", o.master,
         "How parameters are stored: f32 (as --precision has them), sr (bf16, rounded up or down by chance; with "
         "--precision=bf16)")
      ->check(choice({"f32", "sr"}))
      ->group("optimizer");
  app.add_option("--schedule", o.schedule, "Learning-rate schedule")->check(choice(listSchedules()))->group("schedule");
  app.add_option("--warmup-steps", o.warmupSteps, "Steps of linear warm-up")->group("schedule");
  app.add_option("--total-steps", o.totalSteps, "Step at which a decay ends")->group("schedule");
  app.add_option("--min-lr", o.minLr, "Where a decay ends")->group("schedule");
  addValues(scheduleFlags, o.scheduleOptions, "schedule");
}

static void addTargetFlags(CLI::App &app, Options &o) {
  app.add_option("--micro-batches", o.microBatches, "Computes a step in so many equal parts of the batch")
      ->check(positive())
      ->check(CLI::Range(int64_t(1), int64_t(1) << 30))
      ->group("memory");
  app.add_option("--loss-head-chunks", o.lossHeadChunks,
                 "Pieces of the logits of a loss head: auto (where they are large), a number, off")
      ->check([](const std::string &text) {
        bool isNumber = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        if (text == "auto" || text == "off" || (isNumber && text.size() < 10 && std::stol(text) > 0))
          return std::string();
        return "--loss-head-chunks is auto, off or a positive number, not '" + text + "'";
      })
      ->group("memory");
  app.add_option(
         "--target", o.target,
         "cpu[:x86-64-v3|:x86-64-v4], cuda[:sm_90], and cuda: with sm_80, sm_86, sm_87, sm_88, sm_89, sm_90a, sm_100, "
         "sm_103, sm_110, sm_120, sm_121; cuda-emulated, reference")
      ->group("target");
  std::vector<std::string> precisions = list(narrowPrecisions);
  precisions.insert(precisions.begin(), "f32");
  precisions.push_back("f64");
  app.add_option("--precision", o.precision,
                 "f32; mixed-bf16, mixed-f16: 16-bit activations, f32 parameters; bf16, f16: parameters too; f64 with "
                 "--target=reference")
      ->check(choice(precisions))
      ->group("target");
  addList(app, "--precision-override", o.precisionOverrides,
          "Layers by name that differ: PATTERN[,PATTERN]=f32, or =bf16 (f16); may repeat")
      ->group("target");
  app.add_option(
         "--frozen-weights", o.frozenWeights,
         "Type of weights that are not trained and that products read: f32, or --precision's bf16 or f16; auto: "
         "the type of the trained ones")
      ->check(choice({"auto", "f32", "bf16", "f16"}))
      ->group("target");
  app.add_option("--loss-scale", o.lossScale,
                 "none, a number, or dynamic[,init=65536][,growth=2][,backoff=0.5][,interval=2000]")
      ->group("optimizer");
  app.add_option("--clip-norm", o.clipNorm, "Largest global norm of the gradients")
      ->check(nonNegative())
      ->group("optimizer");
  app.add_option("--clip-value", o.clipValue, "Largest size of a gradient's element")
      ->check(nonNegative())
      ->group("optimizer");
  addList(app, "--entries", o.entries, "Programs in the artifact: train, eval, gradient")->group("target");
  app.add_flag("--fuse,!--no-fuse", o.fuse, "Fuse elementwise and reduction ops into kernels")->group("target");
  app.add_option("--conv-layout", o.convLayout,
                 "How a GPU stores what convolutions read and write: auto (channels last where that is estimated to be "
                 "faster), nchw, nhwc")
      ->check(choice(list(convLayouts)))
      ->group("target");
  app.add_option(
         "--kernel-cache", o.kernelCache,
         "Folder that keeps machine code of the CPU's kernels from compile to compile; off; auto: lowtide/kernels "
         "in $XDG_CACHE_HOME or ~/.cache, at most 512 MiB")
      ->group("target");
  app.add_option("--threads-max", o.threadsMax, "Threads for which scratch memory is planned")
      ->check(CLI::Range(1u, mostThreads))
      ->group("target");
}

static void addMemoryFlags(CLI::App &app, Options &o) {
  app.add_option("--device-budget", o.deviceBudget,
                 "Bytes that the step may take, all told: 8MiB, 1.5GiB, 800MB, or 50% of what it takes without")
      ->group("memory");
  app.add_option("--remat-strategy", o.rematStrategy,
                 "How recomputations are chosen: fit; the others are published methods, to compare")
      ->check(choice(list(rematStrategies)))
      ->group("memory");
  app.add_flag(
         "--bound", [&o](int64_t) { o.bound = true, o.verbosity = std::max(o.verbosity, 1); },
         "Say how much any plan in this order recomputes at least, by linear programming (HiGHS; minutes)")
      ->group("memory");
}

static void addOutputFlags(CLI::App &app, Options &o, std::string &levels) {
  app.add_option("-o,--output", o.output, "Output file; - is standard output")->group("stages");
  app.add_option("--emit", o.emit, "Last stage")
      ->check(choice({"onnx", "nn", "train", "fitted", "plan", "kernels", "ptx", "artifact", "onnx-model"}))
      ->group("stages");
  app.add_option("--from", o.from, "First stage: the input is that stage's text")
      ->check(choice({"onnx", "nn", "train", "fitted", "plan"}))
      ->group("stages");
  app.add_option(
         "--emit-locations", o.emitLocations,
         "on: a stage's text says of every operation which layer it belongs to, and --from reads that back; off: "
         "shorter lines")
      ->check(choice({"on", "off"}))
      ->group("stages");
  app.add_option("--weights-from", o.weightsFrom,
                 "With --from: the ONNX file that the text was made of, whose weights go into the artifact")
      ->group("stages");
  app.add_flag("--dump-pass-pipeline", o.dumpPassPipeline,
               "Prints on standard error which passes have made what was asked for, as lowtide-opt "
               "--pass-pipeline=… takes them")
      ->group("stages");
  app.add_option("--onnx-stage", o.onnxStage, "--emit=onnx-model: the stage that is written as a model")
      ->check(choice({"nn", "train", "fitted"}))
      ->group("stages");
  app.add_option("--onnx-form", o.onnxForm,
                 "--emit=onnx-model: step, one graph whose inputs and outputs are all that is kept; training-info, an "
                 "inference graph with a TrainingInfoProto")
      ->check(choice({"step", "training-info"}))
      ->group("stages");
  app.add_option("--onnx-bf16", o.onnxBf16, "--emit=onnx-model: bf16 as f32 between casts, or as it is")
      ->check(choice({"cast-pairs", "native"}))
      ->group("stages");
  app.add_option("--onnx-optimizers", o.onnxOptimizers,
                 "--emit=onnx-model: updates written out, or with --convention=onnx as ai.onnx.preview.training")
      ->check(choice({"standard", "preview"}))
      ->group("stages");
  app.add_option(
         "--onnx-rounds", o.onnxRounds,
         "--emit=onnx-model: micro-batches and pieces of a loss head written out one after the other, as a Loop, "
         "or as a Loop where there are more than 8")
      ->check(choice({"auto", "unrolled", "loop"}))
      ->group("stages");
  app.add_flag("--onnx-weights,!--no-onnx-weights", o.onnxWeights, "--emit=onnx-model: weights as default inputs")
      ->group("stages");
  app.add_flag("--weights,!--no-weights", o.weights,
               "Weights in the artifact; without them a run starts from --init=random:SEED or from a checkpoint")
      ->group("stages");
  app.add_option("--config", o.config, "JSON file with the same keys as flags")->group("other");
  app.add_flag("--print-config", o.printConfig, "Prints the merged configuration with its origins, and exits")
      ->group("other");
  app.add_flag("--print-schema", o.printSchema, "Prints the JSON schema of the configuration file, and exits")
      ->group("other");
  app.add_flag("-v,--verbose", [&o](int64_t) { o.verbosity = 1; }, "More remarks")->group("other");
  app.add_flag("-q,--quiet", [&o](int64_t) { o.verbosity = -1; }, "Errors only")->group("other");
  app.add_option("--log", levels,
                 "Log lines `time level area message` (plan=debug,fitted=info; or one level for all areas): off, info, "
                 "debug; areas: import, nn, train, fitted, plan, artifact, and lowtide-run's")
      ->group("other");
}

void lowtide::driver::addModelCommandFlags(CLI::App &command, Options &options, std::string &logLevels) {
  command.add_option("model", options.input, "ONNX file (or a stage's text with --from); or in the configuration file");
  addModelFlags(command, options);
  addTrainingFlags(command, options);
  addTargetFlags(command, options);
  addMemoryFlags(command, options);
  addOutputFlags(command, options, logLevels);
}

void lowtide::driver::addCompileFlags(CLI::App &compile, Options &options) {
  compile
      .add_option(
          "--figures", options.figures,
          "Writes bytes, recomputation and estimated time of every entry to this file as JSON; of a budget that "
          "is refused, the smallest that is not")
      ->group("stages");
}

void lowtide::driver::addFitFlags(CLI::App &fit, Options &options) {
  fit.add_flag("--json", options.json, "The same figures as JSON on standard output");
  fit.add_option("--rows", options.fitRows, "Lines of the table")->check(CLI::Range(2, 1000));
  fit.add_option("--card", options.card,
                 "Whether the step fits a card: its memory, less what the driver's context and the libraries take; "
                 "instead of --device-budget (--card=list: all that are known)");
  fit.add_flag("--baselines", options.baselines, "Also what the other strategies cost at the same peak");
  fit.add_option("--bound-rows", options.boundRows, "Lines with a bound: each takes up to four minutes; 0: none")
      ->check(CLI::Range(0, 1000));
  fit.add_option(
         "--rounding-rows", options.roundingRows,
         "Lines for which lp-rounding solves two linear programs, each of up to a minute; lines above them take "
         "the cheapest of its plans that fits; 0: none")
      ->check(CLI::Range(0, 1000));
}

void lowtide::driver::addVerifyFlags(CLI::App &verify, Options &options) {
  verify
      .add_option(
          "--against", options.against,
          "What the training step of a model is compared with: a record.npz (docs/verify.md), or "
          "module.py:make, a function that returns module, loss and batch; onnxruntime: forward values, node by node")
      ->group("proof");
  verify.add_option("--data", options.data, "What ONNX Runtime computes: the first batch of an .npz file")
      ->group("proof");
  verify
      .add_option(
          "--python", options.python,
          "The Python that runs module.py; it needs torch and numpy (for onnxruntime: onnx, onnxruntime, numpy)")
      ->group("proof");
  verify.add_option("--record", options.record, "Keeps the record that is made of module.py in this file")
      ->group("proof");
  verify.add_option("--proof-steps", options.proofSteps, "Losses in that record")
      ->check(CLI::Range(1, 1000))
      ->group("proof");
  verify
      .add_option("--tolerance", options.tolerance,
                  "Largest difference of an entry, in units of the largest entry of its array")
      ->check(positive())
      ->group("proof");
  verify.add_flag("--json", options.json, "The same facts as JSON on standard output")->group("proof");
}
