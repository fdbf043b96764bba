//===- OptionTable.cpp - every option of a request, once --------*- C++ -*-===//
//
// One row an option; those of optimizers and schedules have rows of their own (OptimizerFlags.h), which train-optimize
// checks.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Compiler/OptionTable.h"
#include "OptimizerFlags.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/IR/MLIRContext.h"
#include <algorithm>
#include <cmath>

using namespace lowtide;

using Kind = OptionCheck::Kind;

static OptionCheck range(int64_t low, int64_t high, const char *typeName = "INT") {
  return {Kind::Range, {}, low, high, typeName};
}
static OptionCheck words(std::vector<std::string> words) { return {Kind::Words, std::move(words)}; }
/// Words that a pass declares.
static OptionCheck declared(llvm::ArrayRef<llvm::StringLiteral> list) {
  return words(std::vector<std::string>(list.begin(), list.end()));
}
static OptionCheck custom(std::string (*check)(const std::string &)) { return {Kind::Custom, {}, 0, 0, "", check}; }

static std::string checkChunks(const std::string &text) {
  bool isNumber = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (text == "auto" || text == "off" || (isNumber && text.size() < 10 && std::stol(text) > 0))
    return std::string();
  return "--loss-head-chunks is auto, off or a positive number, not '" + text + "'";
}

static std::string checkDecay(const std::string &text) {
  double decay = 0;
  const bool isDecay = !llvm::StringRef(text).getAsDouble(decay) && decay > 0 && decay < 1;
  return isDecay ? std::string() : "must lie between 0 and 1, as 0.999 does, not '" + text + "'";
}

static std::vector<std::string> listPrecisions() {
  std::vector<std::string> precisions(std::begin(narrowPrecisions), std::end(narrowPrecisions));
  precisions.insert(precisions.begin(), "f32");
  precisions.push_back("f64");
  return precisions;
}

/// Rows of values that optimizers or schedules take, all of which go into `field`.
static void addValues(std::vector<OptionRow> &rows, llvm::ArrayRef<ValueFlag> flags, const char *group, OptionRole role,
                      std::map<std::string, std::string> Request::*field) {
  for (const ValueFlag &flag : flags)
    rows.push_back({flag.flag, group, "train", role, field, flag.text, {}, flag.isSwitch ? "1" : ""});
}

/// "f32" and the codecs with a record (Layouts.td).
static OptionCheck codecs(mlir::MLIRContext &context, train::CodecUse use) {
  std::vector<std::string> names = {"f32"};
  for (llvm::StringRef name : train::listCodecs(&context, use))
    names.push_back(name.str());
  return words(std::move(names));
}

static std::vector<OptionRow> makeRows() {
  // What has a record is named there.
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<nn::NNDialect, train::TrainDialect>();
  const OptionCheck positive{Kind::Positive}, nonNegative{Kind::NonNegative}, rate{Kind::Rate};
  std::vector<OptionRow> rows;
  auto add = [&](OptionRow row) { rows.push_back(std::move(row)); };
  add({"dim", "model", "onnx", OptionRole::None, &Request::dims,
       "Binds symbolic dimensions: NAME=VALUE[,NAME=VALUE]; a name as the exporter writes it (2*h) binds its symbol"});
  add({"shape", "model", "onnx", OptionRole::None, &Request::shapes, "Shapes of inputs: INPUT=8x64[,INPUT=scalar]"});
  add({"batch",
       "model",
       "onnx",
       OptionRole::None,
       &Request::batch,
       "Samples per step: binds the symbol in dimension 0 of every input",
       {positive}});
  add({"last-batch",
       "model",
       "train",
       OptionRole::None,
       {},
       "Further entries for a batch of so many samples: what no whole batch holds",
       {positive}});
  add({"mode",
       "model",
       "nn",
       OptionRole::Forward,
       &Request::mode,
       "train: batch norm and dropout in training form; as-is: as the file says",
       {declared(trainingModes)}});
  add({"dropout", "model", "nn", OptionRole::Forward, &Request::dropout, "Overrides every dropout rate", {rate}});
  add({"freeze-norm", "model", "nn", OptionRole::Forward, &Request::freezeNorms,
       "Batch norms that keep their running statistics, as module.eval() has it: names and globs of layers, with "
       "commas. Their scale and bias are trained unless --frozen names them"});
  add({"loss", "model", "nn", OptionRole::Forward, &Request::loss,
       "Adds a loss: \"cross_entropy(LOGITS, LABELS, label_smoothing=0.1) + 0.3*mse(OUTPUT, TARGET)\", or names "
       "an output that is one. Kinds and options are PyTorch's: cross_entropy (weight, ignore_index, reduction, "
       "label_smoothing); nll of PROBABILITIES and nll_loss of LOG_PROBABILITIES (weight, ignore_index, "
       "reduction); mse, l1 (weight, reduction); smooth_l1 (beta, reduction); huber (delta, weight, reduction); "
       "bce of PROBABILITIES (weight, reduction); bce_with_logits (weight, pos_weight, reduction); kl_div of "
       "LOG_PROBABILITIES (log_target, reduction). A weight is a number, a list [0.5, 1] or an array. Names "
       "with spaces, commas or brackets are put into quotes"});
  add({"outputs",
       "model",
       "nn",
       OptionRole::None,
       &Request::outputs,
       "Outputs of the file that train and gradient compute too, by name, or all; eval has them unless none. "
       "Without it a training step computes its loss and no other output",
       {},
       "",
       "",
       /*isSplit=*/true});
  add({"set", "model", "onnx", OptionRole::None, &Request::set,
       "Makes inputs constants: INPUT=VALUE[,INPUT=VALUE], a number, true or false"});
  add({"params",
       "parameters",
       "onnx",
       OptionRole::Forward,
       {},
       "Trains only these: names and globs, with commas. --frozen and --params are applied in their order, and the "
       "last one that matches counts; +GLOB trains it besides what the file says"});
  add({"frozen",
       "parameters",
       "onnx",
       OptionRole::Forward,
       {},
       "Keeps these as they are: names and globs, with commas"});
  add({"lora", "parameters", "nn", OptionRole::Forward, &Request::lora,
       "Trains low-rank pairs instead of weights: LAYER[,LAYER]:r=16[,alpha=32][,dropout=0.05][,rslora], names and "
       "globs of layers; several rules with ; or by repeating, the first that matches counts. Everything else is "
       "frozen but what --params names. Without alpha it is r, a scale of 1"});
  add({"rename", "parameters", "onnx", OptionRole::None, &Request::rename, "Parameter names: NAME_IN_FILE=NAME"});
  add({"optimizer", "optimizer", "train", OptionRole::Update, &Request::optimizer,
       "Update rule: " + llvm::join(train::listOptimizers(&context), ", ")});
  add({"fallback", "optimizer", "train", OptionRole::Update, &Request::fallback,
       "muon: optimizer of all but hidden matrices, with its options (adamw): adamw:lr=3e-4,weight_decay=0.01"});
  add({"convention",
       "optimizer",
       "train",
       OptionRole::Update,
       &Request::convention,
       "Whose formula: PyTorch's, or ONNX's ai.onnx.preview.training",
       {declared(conventions)}});
  add({"lr", "optimizer", "train", OptionRole::Rate, &Request::lr, "Learning rate"});
  addValues(rows, optimizerFlags, "optimizer", OptionRole::Update, &Request::optimizerOptions);
  add({"group", "optimizer", "train", OptionRole::Update, &Request::groups,
       "Parameter group: PATTERN[,PATTERN]:lr=X,weight_decay=Y,optimizer=NAME; may repeat"});
  add({"sparse-updates",
       "optimizer",
       "train",
       OptionRole::Update,
       &Request::sparseUpdates,
       "Tables without weight decay in the rows that a batch names: exact (where no bit changes: sgd and adagrad), "
       "lazy (also momentum, adam and adamw: state of other rows waits, as in PyTorch's SparseAdam), off",
       {declared(sparseUpdateRules)},
       "",
       "lazy"});
  add({"moments",
       "optimizer",
       "train",
       OptionRole::Update,
       &Request::moments,
       "How optimizer state is stored: f32; bf16 (rounded); int8, fp8 (a byte for an element and a scale for "
       "256; lossy). Updates compute in f32",
       {codecs(context, train::CodecUse::Moments)}});
  add({"master",
       "optimizer",
       "train",
       OptionRole::Update,
       &Request::master,
       "How parameters are stored: f32 (as --precision has them); split (with --precision=bf16 or mixed-bf16: an f32 "
       "master as a bf16 half, which products read, and 16 bits more; exact); whole (the same in f32, with the same "
       "bits); sr (with --precision=bf16: bf16, rounded up or down by chance)",
       {codecs(context, train::CodecUse::Master)}});
  add({"ema",
       "optimizer",
       "train",
       OptionRole::Update,
       &Request::ema,
       "Keeps an exponential moving average of the trained weights, with this decay: 0.999 (PyTorch's "
       "AveragedModel with get_ema_multi_avg_fn); lowtide-run --ema evaluates it",
       {custom(checkDecay)}});
  add({"schedule",
       "schedule",
       "train",
       OptionRole::Rate,
       &Request::schedule,
       "Learning-rate schedule",
       {words(listSchedules())}});
  add({"warmup-steps", "schedule", "train", OptionRole::Rate, &Request::warmupSteps, "Steps of linear warm-up"});
  add({"total-steps", "schedule", "train", OptionRole::Rate, &Request::totalSteps, "Step at which a decay ends"});
  add({"min-lr", "schedule", "train", OptionRole::Rate, &Request::minLr, "Where a decay ends"});
  addValues(rows, scheduleFlags, "schedule", OptionRole::Rate, &Request::scheduleOptions);
  add({"micro-batches",
       "memory",
       "train",
       OptionRole::None,
       &Request::microBatches,
       "Computes a step in so many equal parts of the batch",
       {positive, range(1, int64_t(1) << 30)}});
  add({"loss-head-chunks",
       "memory",
       "fitted",
       OptionRole::None,
       &Request::lossHeadChunks,
       "Pieces of the logits of a loss head: auto (where they are large), a number, off",
       {custom(checkChunks)}});
  add({"target", "target", "plan", OptionRole::None, &Request::target,
       "cpu[:x86-64-v3|:x86-64-v4|:native], cuda[:sm_90], and cuda: with sm_80, sm_86, sm_87, sm_88, sm_89, sm_90a, "
       "sm_100, sm_103, sm_110, sm_120, sm_121, or with a card of 'lowtide fit --card=list': cuda:h200; "
       "cuda-emulated, reference"});
  add({"target-file", "target", "plan", OptionRole::None, &Request::targetFile,
       "JSON of a machine that has no name here: kind, chip, and figures where they differ from the chip's"});
  add({"precision",
       "target",
       "train",
       OptionRole::None,
       &Request::precision,
       "f32; mixed-bf16, mixed-f16: 16-bit activations, f32 parameters; bf16, f16: parameters too; f64 with "
       "--target=reference",
       {words(listPrecisions())}});
  add({"precision-override", "target", "train", OptionRole::None, &Request::precisionOverrides,
       "Layers by name that differ: PATTERN[,PATTERN]=f32, or =bf16 (f16); may repeat"});
  add({"frozen-weights",
       "target",
       "train",
       OptionRole::None,
       &Request::frozenWeights,
       "How weights are held that are not trained and that products read: f32, --precision's bf16 or f16, or matrices "
       "in "
       "codes of int8 or nf4; auto: as the trained ones",
       {words({"auto", "f32", "bf16", "f16", "int8", "nf4"})}});
  add({"loss-scale", "optimizer", "train", OptionRole::None, &Request::lossScale,
       "none, a number, or dynamic[,init=65536][,growth=2][,backoff=0.5][,interval=2000]"});
  add({"clip-norm",
       "optimizer",
       "train",
       OptionRole::None,
       &Request::clipNorm,
       "Largest global norm of the gradients",
       {nonNegative}});
  add({"clip-value",
       "optimizer",
       "train",
       OptionRole::None,
       &Request::clipValue,
       "Largest size of a gradient's element",
       {nonNegative}});
  add({"entries", "target", "train", OptionRole::None, &Request::entries,
       "Programs in the artifact: train, eval, gradient"});
  add({"fuse", "target", "plan", OptionRole::None, &Request::fuse, "Fuse elementwise and reduction ops into kernels"});
  add({"conv-layout",
       "target",
       "fitted",
       OptionRole::None,
       &Request::convLayout,
       "How a GPU stores what convolutions read and write: auto (channels last where that is estimated to be "
       "faster), nchw, nhwc",
       {declared(convLayouts)}});
  add({"kernel-cache", "target", "", OptionRole::None, &Request::kernelCache,
       "Folder that keeps machine code of the CPU's kernels from compile to compile; off; auto: lowtide/kernels "
       "in $XDG_CACHE_HOME or ~/.cache, at most 512 MiB"});
  add({"threads-max",
       "target",
       "plan",
       OptionRole::None,
       &Request::threadsMax,
       "Threads for which scratch memory is planned",
       {range(1, mostThreads, "UINT")}});
  add({"device-budget", "memory", "fitted", OptionRole::None, &Request::deviceBudget,
       "Bytes that the step may take, all told: 8MiB, 1.5GiB, 800MB, or 50% of what it takes without"});
  add({"remat-strategy",
       "memory",
       "fitted",
       OptionRole::None,
       &Request::rematStrategy,
       "How recomputations are chosen: fit; the others are published methods, to compare",
       {declared(rematStrategies)}});
  add({"bound", "memory", "fitted", OptionRole::None, &Request::bound,
       "Say how much any plan in this order recomputes at least, by linear programming (HiGHS; minutes)"});
  add({"emit",
       "stages",
       "",
       OptionRole::None,
       &Request::emit,
       "Last stage",
       {words({"onnx", "nn", "train", "fitted", "plan", "kernels", "ptx", "artifact", "onnx-model"})}});
  add({"from",
       "stages",
       "",
       OptionRole::None,
       &Request::from,
       "First stage: the input is that stage's text",
       {words({"onnx", "nn", "train", "fitted", "plan"})}});
  add({"emit-locations",
       "stages",
       "",
       OptionRole::None,
       &Request::emitLocations,
       "on: a stage's text says of every operation which layer it belongs to, and --from reads that back; off: "
       "shorter lines",
       {words({"on", "off"})}});
  add({"onnx-stage",
       "stages",
       "",
       OptionRole::None,
       &Request::onnxStage,
       "--emit=onnx-model: the stage that is written as a model",
       {words({"nn", "train", "fitted"})}});
  add({"onnx-form",
       "stages",
       "",
       OptionRole::None,
       &Request::onnxForm,
       "--emit=onnx-model: step, one graph whose inputs and outputs are all that is kept; training-info, an "
       "inference graph with a TrainingInfoProto",
       {words({"step", "training-info"})}});
  add({"onnx-bf16",
       "stages",
       "",
       OptionRole::None,
       &Request::onnxBf16,
       "--emit=onnx-model: bf16 as f32 between casts, or as it is",
       {words({"cast-pairs", "native"})}});
  add({"onnx-optimizers",
       "stages",
       "",
       OptionRole::None,
       &Request::onnxOptimizers,
       "--emit=onnx-model: updates written out, or with --convention=onnx as ai.onnx.preview.training",
       {words({"standard", "preview"})}});
  add({"onnx-rounds",
       "stages",
       "",
       OptionRole::None,
       &Request::onnxRounds,
       "--emit=onnx-model: micro-batches and pieces of a loss head written out one after the other, as a Loop, "
       "or as a Loop where there are more than 8",
       {words({"auto", "unrolled", "loop"})}});
  add({"onnx-weights", "stages", "", OptionRole::None, &Request::onnxWeights,
       "--emit=onnx-model: weights as default inputs"});
  add({"weights", "stages", "plan", OptionRole::None, &Request::weights,
       "Weights in the artifact; without them a run starts from --init=random:SEED or from a checkpoint"});
  return rows;
}

const std::vector<OptionRow> &lowtide::listOptions() {
  static const std::vector<OptionRow> rows = makeRows();
  return rows;
}

std::string OptionCheck::findFault(const std::string &text) const {
  double value = 0;
  const bool isNumber = !llvm::StringRef(text).getAsDouble(value) && std::isfinite(value);
  auto fault = [&](bool isGood, const std::string &what) {
    return isGood ? std::string() : "must be " + what + ", not '" + text + "'";
  };
  switch (kind) {
  case Kind::Positive:
    return fault(isNumber && value > 0, "a number above 0");
  case Kind::NonNegative:
    return fault(isNumber && value >= 0, "a number of at least 0");
  case Kind::Rate:
    return fault(isNumber && value >= 0 && value <= 1, "a rate from 0 to 1");
  case Kind::Range:
    return fault(isNumber && value == std::floor(value) && value >= double(low) && value <= double(high),
                 "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  case Kind::Words:
    return fault(llvm::is_contained(words, text), "one of " + llvm::join(words, ", "));
  case Kind::Custom:
    return custom(text);
  }
  return "";
}

namespace {

/// Puts a text that was checked into a field; whether it is of the field's type.
struct FieldWriter {
  Request &request;
  const OptionRow &row;
  const std::string &value;

  bool operator()(std::monostate) const {
    if (row.name == "last-batch") {
      EntryVariant last{"last"};
      if (llvm::StringRef(value).getAsInteger(10, last.batch))
        return false;
      request.variants.push_back(std::move(last));
      return true;
    }
    request.selections.push_back({row.name == "params", value});
    return true;
  }
  bool operator()(std::string Request::*field) const {
    request.*field = value;
    return true;
  }
  bool operator()(int64_t Request::*field) const { return !llvm::StringRef(value).getAsInteger(10, request.*field); }
  bool operator()(double Request::*field) const { return !llvm::StringRef(value).getAsDouble(request.*field); }
  bool operator()(bool Request::*field) const {
    request.*field = value == "true" || value == "1";
    return request.*field || value == "false" || value == "0";
  }
  bool operator()(std::vector<std::string> Request::*field) const {
    // The default is no beginning of a list.
    if (request.*field == Request().*field)
      (request.*field).clear();
    if (!row.isSplit && row.name != "entries") {
      (request.*field).push_back(value);
      return true;
    }
    for (llvm::StringRef item : llvm::split(value, ','))
      (request.*field).push_back(item.str());
    return true;
  }
  bool operator()(std::map<std::string, std::string> Request::*field) const {
    std::string key = row.name;
    std::replace(key.begin(), key.end(), '-', '_');
    (request.*field)[key] = value;
    return true;
  }
};

} // namespace

std::string lowtide::setOption(Request &request, const std::string &name, const std::string &value) {
  const auto row = llvm::find_if(listOptions(), [&](const OptionRow &row) { return row.name == name; });
  if (row == listOptions().end())
    return "there is no option '" + name + "'";
  for (const OptionCheck &check : row->checks)
    if (std::string fault = check.findFault(value); !fault.empty())
      return name + ": " + fault;
  if (!std::visit(FieldWriter{request, *row, value}, row->field))
    return name + ": '" + value + "' is not of its type";
  request.givesTarget |= name == "target" || name == "target-file";
  request.givesThreads |= name == "threads-max";
  if (row->role == OptionRole::Forward)
    request.forwardFlags[name] = "--" + name;
  if (row->role == OptionRole::Update)
    request.updateFlags[name] = "--" + name;
  if (row->role == OptionRole::Rate)
    request.rateFlags[name] = "--" + name;
  return "";
}
