//===- OptionTable.cpp - every option of a request, once --------*- C++ -*-===//
//
// One row an option. What passes have, too, is described by records (Support/DeclaredOptions.td); those of optimizers
// and schedules have rows of their own (OptimizerFlags.h), which train-optimize checks.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Compiler/OptionTable.h"
#include "DeclaredChecks.h"
#include "OptimizerFlags.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Support/DeclaredOptions.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace lowtide;

using Kind = OptionCheck::Kind;

static OptionCheck words(std::vector<std::string> words) { return {Kind::Words, std::move(words)}; }

static std::string checkChunks(const std::string &text) {
  bool isNumber = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (text == "auto" || text == "off" || (isNumber && text.size() < 10 && std::stol(text) > 0))
    return std::string();
  return "--loss-head-chunks is auto, off or a positive number, not '" + text + "'";
}

/// Rows of values that optimizers or schedules take, all of which go into `field`.
static void addValues(std::vector<OptionRow> &rows, llvm::ArrayRef<ValueFlag> flags, const char *group, OptionRole role,
                      std::map<std::string, std::string> Request::*field) {
  for (const ValueFlag &flag : flags)
    rows.push_back({flag.flag, group, "train", role, field, flag.text, {}, flag.isSwitch ? "1" : ""});
}

static std::vector<OptionRow> makeRows() {
  // What has a record is named there.
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<nn::NNDialect, train::TrainDialect>();
  const OptionCheck positive{Kind::Positive};
  std::vector<OptionRow> rows;
  auto add = [&](OptionRow row) { rows.push_back(std::move(row)); };
  // What passes have, too: name, default, help and check are the record's.
  auto declared = [&](const DeclaredOption &option, const char *group, const char *stage, OptionRole role,
                      OptionField field) {
    const std::string name(option.name);
    return OptionRow{name, group, stage, role, field, std::string(option.help), listChecks(name, context)};
  };
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
  add(declared(declaredOption("mode"), "model", "nn", OptionRole::Forward, &Request::mode));
  add(declared(declaredOption("dropout"), "model", "nn", OptionRole::Forward, &Request::dropout));
  add({"freeze-norm", "model", "nn", OptionRole::Forward, &Request::freezeNorms,
       "Batch norms that keep their running statistics, as module.eval() has it: names and globs of layers, with "
       "commas. Their scale and bias are trained unless --frozen names them"});
  add(declared(declaredOption("loss"), "model", "nn", OptionRole::Forward, &Request::loss));
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
  add(declared(declaredOption("lora"), "parameters", "nn", OptionRole::Forward, &Request::lora));
  add({"rename", "parameters", "onnx", OptionRole::None, &Request::rename, "Parameter names: NAME_IN_FILE=NAME"});
  add(declared(declaredOption("optimizer"), "optimizer", "train", OptionRole::Update, &Request::optimizer));
  add(declared(declaredOption("fallback"), "optimizer", "train", OptionRole::Update, &Request::fallback));
  add(declared(declaredOption("convention"), "optimizer", "train", OptionRole::Update, &Request::convention));
  add(declared(declaredOption("lr"), "optimizer", "train", OptionRole::Rate, &Request::lr));
  addValues(rows, optimizerFlags, "optimizer", OptionRole::Update, &Request::optimizerOptions);
  add(declared(declaredOption("group"), "optimizer", "train", OptionRole::Update, &Request::groups));
  add(declared(declaredOption("sparse-updates"), "optimizer", "train", OptionRole::Update, &Request::sparseUpdates));
  rows.back().implicitValue = "lazy";
  add(declared(declaredOption("moments"), "optimizer", "train", OptionRole::Update, &Request::moments));
  add(declared(declaredOption("master"), "optimizer", "train", OptionRole::Update, &Request::master));
  add(declared(declaredOption("ema"), "optimizer", "train", OptionRole::Update, &Request::ema));
  add(declared(declaredOption("schedule"), "schedule", "train", OptionRole::Rate, &Request::schedule));
  add(declared(declaredOption("warmup-steps"), "schedule", "train", OptionRole::Rate, &Request::warmupSteps));
  add(declared(declaredOption("total-steps"), "schedule", "train", OptionRole::Rate, &Request::totalSteps));
  add(declared(declaredOption("min-lr"), "schedule", "train", OptionRole::Rate, &Request::minLr));
  addValues(rows, scheduleFlags, "schedule", OptionRole::Rate, &Request::scheduleOptions);
  add(declared(declaredOption("micro-batches"), "memory", "train", OptionRole::None, &Request::microBatches));
  add({"loss-head-chunks",
       "memory",
       "fitted",
       OptionRole::None,
       &Request::lossHeadChunks,
       "Pieces of the logits of a loss head: auto (where they are large), a number, off",
       {{Kind::Custom, {}, 0, 0, checkChunks}}});
  add(declared(declaredOption("target"), "target", "plan", OptionRole::None, &Request::target));
  add({"target-file", "target", "plan", OptionRole::None, &Request::targetFile,
       "JSON of a machine that has no name here: kind, chip, and figures where they differ from the chip's"});
  add(declared(declaredOption("precision"), "target", "train", OptionRole::None, &Request::precision));
  add(declared(declaredOption("precision-override"), "target", "train", OptionRole::None,
               &Request::precisionOverrides));
  add(declared(declaredOption("frozen-weights"), "target", "train", OptionRole::None, &Request::frozenWeights));
  add(declared(declaredOption("loss-scale"), "optimizer", "train", OptionRole::None, &Request::lossScale));
  add(declared(declaredOption("clip-norm"), "optimizer", "train", OptionRole::None, &Request::clipNorm));
  add(declared(declaredOption("clip-value"), "optimizer", "train", OptionRole::None, &Request::clipValue));
  add({"entries", "target", "train", OptionRole::None, &Request::entries,
       "Programs in the artifact: train, eval, gradient"});
  add(declared(declaredOption("fuse"), "target", "plan", OptionRole::None, &Request::fuse));
  add(declared(declaredOption("conv-layout"), "target", "fitted", OptionRole::None, &Request::convLayout));
  add({"kernel-cache", "target", "", OptionRole::None, &Request::kernelCache,
       "Folder that keeps machine code of the CPU's kernels from compile to compile; off; auto: lowtide/kernels "
       "in $XDG_CACHE_HOME or ~/.cache, at most 512 MiB"});
  add(declared(declaredOption("threads-max"), "target", "plan", OptionRole::None, &Request::threadsMax));
  add(declared(declaredOption("device-budget"), "memory", "fitted", OptionRole::None, &Request::deviceBudget));
  add(declared(declaredOption("host-budget"), "memory", "fitted", OptionRole::None, &Request::hostBudget));
  add(declared(declaredOption("disk-budget"), "memory", "fitted", OptionRole::None, &Request::diskBudget));
  add(declared(declaredOption("remat-strategy"), "memory", "fitted", OptionRole::None, &Request::rematStrategy));
  add(declared(declaredOption("without-methods"), "memory", "fitted", OptionRole::None, &Request::withoutMethods));
  add(declared(declaredOption("bound"), "memory", "fitted", OptionRole::None, &Request::bound));
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
  add(declared(declaredOption("weights"), "stages", "plan", OptionRole::None, &Request::weights));
  return rows;
}

const std::vector<OptionRow> &lowtide::listOptions() {
  static const std::vector<OptionRow> rows = makeRows();
  return rows;
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
    request.*field = isOn(value);
    return request.*field || isOff(value);
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
