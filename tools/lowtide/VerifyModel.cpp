//===- VerifyModel.cpp - a model's training step next to PyTorch's -*- C++ -*-===//
//
// record.npz, or module.py run in the user's Python → the step compiled in f64 → both next to one another.
//
//===----------------------------------------------------------------------===//

#include "VerifyModel.h"
#include "Commands.h"
#include "Diagnostics.h"
#include "Inspect.h"
#include "ProofReport.h"
#include "lowtide/Compiler/ModelFile.h"
#include "runtime/Session.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace lowtide;
using namespace lowtide::driver;
using llvm::StringRef;

namespace {

/// A folder of its own that is gone with it.
class Scratch {
public:
  Scratch() { error = llvm::sys::fs::createUniqueDirectory("lowtide-verify", folder); }
  ~Scratch() {
    if (!error)
      llvm::sys::fs::remove_directories(folder);
  }
  std::string path(StringRef name) const {
    llvm::SmallString<128> file(folder);
    llvm::sys::path::append(file, name);
    return file.str().str();
  }
  std::error_code error;

private:
  llvm::SmallString<128> folder;
};

void noteLeftOut(const Options &options) {
  std::vector<std::string> left;
  auto note = [&](bool isGiven, const char *flag) {
    if (isGiven)
      left.push_back(flag);
  };
  note(options.schedule != "constant", "--schedule");
  note(!options.groups.empty(), "--group");
  note(options.lossScale != "none", "--loss-scale");
  note(options.microBatches != 1, "--micro-batches");
  note(options.precision != "f32" && options.precision != "f64", "--precision");
  if (!left.empty() && options.verbosity >= 0)
    printNote("left out of the proof: " + llvm::Twine(llvm::join(left, ", ")) +
              "; it computes in f64 and updates every parameter at one constant rate");
}

/// The record says how it was made; flags that say otherwise would compare two different runs.
int applySettings(const verify::Record &record, bool isOwn, Options &step) {
  if (record.optimizer.empty())
    return exitOk;
  if (!isOwn && (!step.updateFlags.empty() || step.rateFlags.count("lr"))) {
    const std::string flag = step.updateFlags.empty() ? step.rateFlags.at("lr") : step.updateFlags.begin()->second;
    printError(flag + " has no effect: '" + step.against + "' says how its steps were updated");
    printNote("leave it out, or make the record with it");
    return exitUsage;
  }
  step.optimizer = record.optimizer;
  step.optimizerOptions.clear();
  for (const auto &[key, value] : record.options)
    if (key == "lr")
      step.lr = value;
    else if (value != "0" || key == "weight_decay" || key == "nesterov") // what is off by itself need not have a flag
      step.optimizerOptions[key] = value;
  step.clipNorm = record.clipNorm, step.clipValue = record.clipValue;
  return exitOk;
}

std::string describeUpdates(const Options &step) {
  std::string text = step.optimizer + " lr=" + step.lr;
  for (const auto &[key, value] : step.optimizerOptions)
    text += " " + key + "=" + value;
  return text;
}

int report(const verify::ProofReport &proof, bool asJson) {
  llvm::outs() << (asJson ? verify::writeJson(proof) : verify::writeTable(proof));
  llvm::outs().flush();
  for (const std::string &advice : verify::adviseOn(proof))
    printNote(advice);
  return proof.comparison.agrees() ? exitOk : exitExpectation;
}

} // namespace

int driver::readNames(const Options &options, FileNames &names) {
  // Warnings come when the step is compiled.
  DiagnosticPrinter printer(/*verbosity=*/-1, options.log);
  ModelNames found = readModelNames(options.input, &printer);
  names = {std::move(found.inputs), std::move(found.outputs)};
  return getExitCode(found.failure.kind);
}

Options driver::proofOptions(const Options &options, const std::string &artifact) {
  Options step = options;
  step.emit = "artifact";
  step.output = artifact;
  step.from.clear();
  step.target = "cpu";
  step.precision = "f64";
  step.precisionOverrides.clear();
  step.frozenWeights = "auto";
  step.entries = {"train", "gradient"};
  step.outputs.clear();
  step.dropout = 0;
  step.convention = "torch";
  step.schedule = "constant";
  step.scheduleOptions.clear();
  step.warmupSteps = step.totalSteps = step.minLr = "0";
  step.groups.clear();
  step.lossScale = "none";
  step.microBatches = 1;
  step.lastBatch = 0;
  step.deviceBudget.clear();
  step.rematStrategy = "fit";
  step.weights = true;
  return step;
}

void driver::bindShapes(const verify::Record &record, const FileNames &names, Options &step) {
  for (const std::string &input : names.inputs) {
    auto array = record.batch.arrays.find(input);
    const bool isGiven =
        llvm::any_of(step.shapes, [&](const std::string &text) { return StringRef(text).contains(input + "="); });
    if (array == record.batch.arrays.end() || isGiven || array->second.dims().empty())
      continue;
    step.shapes.push_back(
        input + "=" +
        llvm::join(llvm::map_range(array->second.dims(), [](int64_t dim) { return std::to_string(dim); }), "x"));
  }
}

int driver::verifyModel(const Options &options) {
  Scratch scratch;
  if (scratch.error) {
    printError("cannot make a folder for temporary files: " + scratch.error.message());
    return exitIo;
  }
  if (options.against == "onnxruntime")
    return verifyNodes(options, scratch.path("values"));
  FileNames names;
  if (int code = readNames(options, names))
    return code;
  const bool isOwn = !StringRef(options.against).ends_with(".npz");
  std::string path = options.against;
  if (isOwn) {
    path = options.record.empty() ? scratch.path("record.npz") : options.record;
    if (int code = makeRecord(options, names, path))
      return code;
  }
  rt::Expected<verify::Record> record = verify::Record::open(path);
  if (!record)
    return fail(record.status());
  Options step = proofOptions(options, scratch.path("step.tide"));
  noteLeftOut(options);
  if (int code = applySettings(*record, isOwn, step))
    return code;
  bindShapes(*record, names, step);
  if (int code = compileQuietly(step))
    return code;
  rt::Expected<std::unique_ptr<rt::Session>> session = rt::Session::load(step.output);
  if (!session)
    return fail(session.status());
  rt::Expected<verify::Comparison> comparison = verify::compare(**session, *record, {options.tolerance, /*threads=*/0});
  if (!comparison)
    return fail(comparison.status());
  verify::ProofReport proof;
  proof.model = options.input, proof.against = options.against;
  proof.updates = describeUpdates(step);
  proof.tolerance = options.tolerance;
  proof.comparison = std::move(*comparison);
  if (!proof.comparison.agrees())
    proof.outputs = compareModules(step, *record);
  return report(proof, options.json);
}
