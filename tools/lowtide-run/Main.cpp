//===- Main.cpp - lowtide-run: executes an artifact ------------------------===//
//
// load → bind → (resume) → for each step: scalars, batch, step, loss → (save, export) → a summary. Links no LLVM.
//
//===----------------------------------------------------------------------===//

#include "Expectation.h"
#include "Options.h"
#include "Outputs.h"
#include "Profile.h"
#include "Progress.h"
#include "Summary.h"

#include "runtime/Element.h"
#include "runtime/ExitCode.h"
#include "runtime/Session.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/ExportOnnx.h"
#include "runtime/checkpoint/FrameworkTensor.h"
#include "runtime/data/Dataset.h"

#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <deque>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

namespace {

volatile std::sig_atomic_t stopRequested = 0;
void requestStop(int) {
  if (stopRequested)
    std::_Exit(128 + SIGTERM); // the second request is obeyed at once
  stopRequested = 1;
}

Status readInit(const std::string &text, BindOptions &bind) {
  if (text.empty())
    return Status::ok();
  const std::string prefix = "random:";
  const char *first = text.data() + prefix.size(), *last = text.data() + text.size();
  if (text.rfind(prefix, 0) != 0 || std::from_chars(first, last, bind.randomSeed).ptr != last || first == last)
    return {StatusCode::Usage, "--init=" + printable(text) + ": only random:<seed> is known"};
  bind.randomInit = bind.randomInitAll = true;
  return Status::ok();
}

/// The state of loss scaling, where a step has it.
struct LossScaleState {
  std::optional<Tensor> scale, tracker, skipped;

  LossScaleState(const Session &session, const std::string &entry) {
    for (auto [name, slot] : {std::pair("loss_scale", &scale), std::pair("loss_scale.growth_tracker", &tracker),
                              std::pair("loss_scale.skipped", &skipped)})
      if (Expected<Tensor> found = session.tensor(entry, name))
        *slot = *found;
  }
  /// Whether a step that is not finite makes no update.
  bool skips() const { return skipped.has_value(); }
  void read(StepReport &report) const {
    auto number = [](const std::optional<Tensor> &tensor) {
      return tensor ? std::optional(loadElement(tensor->binding->dtype(), tensor->data)) : std::nullopt;
    };
    report.lossScale = number(scale), report.growthTracker = number(tracker), report.skipped = number(skipped);
  }
};

/// What the rate of the progress line counts: tokens where the batch arrays are integers [batch, time], else samples.
double itemsPerStep(const Session &session, const std::string &entry, const char *&name) {
  name = "samples";
  double items = static_cast<double>(session.artifact().entry(entry)->batch());
  for (const Tensor &tensor : session.tensors(entry, plan::Binding::BATCH)) {
    const plan::Binding &binding = *tensor.binding;
    if (binding.dtype() != plan::I64 || binding.dims_size() != 2)
      return items;
    name = "tok";
    return static_cast<double>(binding.dims(0) * binding.dims(1));
  }
  return items;
}

std::string lossName(const Session &session, const std::string &entry) {
  std::vector<Tensor> metrics = session.tensors(entry, plan::Binding::METRIC);
  for (const Tensor &tensor : metrics)
    if (tensor.binding->name() == "loss")
      return "loss";
  return metrics.empty() ? "" : metrics[0].binding->name();
}

/// A step whose numbers have not come back yet.
struct UnderWay {
  StepReport report;
  const std::string *entry;
  std::chrono::steady_clock::time_point start;
};

/// Which entry a step runs, on which rows: whole batches, and behind the last of an epoch what is left, if the artifact
/// has an entry `<entry>_last` of just so many samples.
struct Epochs {
  std::string entry;
  const Feeder *feeder = nullptr;
  const Feeder *lastFeeder = nullptr; ///< null: what is left of the data is left out
  int64_t wholeBatches = 0, batch = 1;

  struct Step {
    const std::string *entry;
    const Feeder *feeder;
    int64_t epoch, firstRow;
  };
  int64_t perEpoch() const { return wholeBatches + (lastFeeder ? 1 : 0); }
  Step at(int64_t step, const std::string &lastEntry) const {
    if (!perEpoch())
      return {&entry, feeder, 0, 0};
    int64_t epoch = step / perEpoch(), position = step % perEpoch();
    bool last = position == wholeBatches;
    return {last ? &lastEntry : &entry, last ? lastFeeder : feeder, epoch, position * batch};
  }
};

Status dumpGradients(Session &session, const Dataset &dataset, const Options &options, int64_t seed) {
  const std::string entry = options.entry == "train" ? "gradient" : options.entry;
  if (!session.artifact().entry(entry))
    return {StatusCode::Usage, "the artifact has no entry 'gradient'; --dump-gradients needs it"};
  std::vector<std::string> notes;
  Expected<Feeder> feeder = Feeder::create(dataset, session, entry, std::nullopt, notes);
  if (!feeder)
    return feeder.takeStatus();
  LOWTIDE_TRY(session.writeScalars(entry, session.scalarsOf(entry, 0, seed)));
  feeder->feed(0);
  LOWTIDE_TRY(session.step(entry));
  return writeGradients(session, entry, options.dumpGradients);
}

/// An artifact is for one device; the flag only says which one is expected, or which of several GPUs.
Status readDevice(const std::string &device, const std::string &target, BindOptions &bind) {
  std::string family = target == "reference" ? "cpu" : target.substr(0, target.find(':'));
  if (device.empty() || device == family)
    return Status::ok();
  auto [end, error] = std::from_chars(device.data(), device.data() + device.size(), bind.gpu);
  if (error == std::errc() && end == device.data() + device.size()) {
    if (family != "cpu")
      return Status::ok();
    return {StatusCode::Usage, "--device=" + device + " is a GPU, but the artifact was compiled for " +
                                   printable(target) + "; compile with --target=cuda"};
  }
  return {StatusCode::Usage, "--device=" + device + ", but the artifact was compiled for " + printable(target) +
                                 "; compile with --target=" + device};
}

Status train(const Options &options) {
  config::Log log = options.log;
  const config::Stopwatch loading;
  Expected<std::unique_ptr<Session>> loaded = Session::load(options.artifact);
  if (!loaded)
    return loaded.takeStatus();
  Session &session = **loaded;
  log.info("runtime", "loaded and proved " + options.artifact + " for " + printable(session.plan().target()) + " in " +
                          loading.text());
  const plan::Entry *entry = session.artifact().entry(options.entry);
  if (!entry) {
    std::string names;
    for (const plan::Entry &other : session.plan().entries())
      names += (names.empty() ? "" : ", ") + printable(other.name());
    return {StatusCode::Usage, "no entry '" + printable(options.entry) + "'; the artifact has: " + names};
  }
  BindOptions bind;
  LOWTIDE_TRY(readDevice(options.device, session.plan().target(), bind));
  bind.threads = options.threads;
  bind.poison = options.poison;
  bind.schedule = options.schedule;
  LOWTIDE_TRY(readInit(options.init, bind));
  // A checkpoint brings the weights that the artifact may lack.
  if (!options.resume.empty() && !bind.randomInit)
    bind.randomInit = true;
  const config::Stopwatch binding;
  LOWTIDE_TRY(session.bind(bind));
  log.info("runtime", "bound " + bytesText(session.allocatedBytes()) + " for " + std::to_string(session.threads()) +
                          " threads in " + binding.text());
  std::string loss = lossName(session, options.entry);

  std::vector<std::string> notes;
  RunState state;
  state.seed = options.seed.value_or(0);
  state.shuffleSeed = options.shuffle;
  if (!options.resume.empty()) {
    Expected<RunState> resumed = loadCheckpoint(session, options.resume, options.resumeStrict, notes);
    if (!resumed)
      return resumed.takeStatus();
    state = *resumed;
    log.info("checkpoint", "resumed behind step " + std::to_string(state.step) + " from " + options.resume);
    if (options.seed && *options.seed != state.seed)
      return {StatusCode::Usage, "--seed=" + std::to_string(*options.seed) + ", but the run that is resumed has seed " +
                                     std::to_string(state.seed)};
    if (options.shuffle && options.shuffle != state.shuffleSeed)
      return {StatusCode::Usage, "--shuffle differs from the run that is resumed"};
  }

  bool readsBatch = !session.tensors(options.entry, plan::Binding::BATCH).empty();
  if (readsBatch && options.data.empty())
    return {StatusCode::Usage, "the step reads batch arrays: give --data=FILE, or --data=synthetic"};
  Dataset dataset;
  if (!options.data.empty()) {
    Expected<Dataset> opened = Dataset::open(options.data);
    if (!opened)
      return opened.takeStatus();
    dataset = std::move(*opened);
  }
  if (!options.dumpGradients.empty())
    LOWTIDE_TRY(dumpGradients(session, dataset, options, state.seed));
  Expected<Feeder> feeder = Feeder::create(dataset, session, options.entry, state.shuffleSeed, notes);
  if (!feeder)
    return feeder.takeStatus();

  Epochs epochs{options.entry, &*feeder, nullptr, feeder->stepsPerEpoch(), std::max<int64_t>(entry->batch(), 1)};
  const std::string lastEntry = options.entry + "_last";
  std::optional<Feeder> lastFeeder;
  if (const plan::Entry *last = session.artifact().entry(lastEntry); last && readsBatch) {
    int64_t left = feeder->rows() % epochs.batch;
    if (left == last->batch()) {
      Expected<Feeder> made = Feeder::create(dataset, session, lastEntry, state.shuffleSeed, notes);
      if (!made)
        return made.takeStatus();
      lastFeeder.emplace(std::move(*made));
      epochs.lastFeeder = &*lastFeeder;
    } else {
      notes.push_back("entry '" + printable(lastEntry) + "' takes " + std::to_string(last->batch()) +
                      " samples; the data leave " + std::to_string(left) + ", which are left out");
    }
  }

  std::optional<Expectation> expectation;
  if (!options.expect.empty()) {
    Expected<Expectation> opened = Expectation::open(options.expect, options.expectKey, options.expectTolerance);
    if (!opened)
      return opened.takeStatus();
    expectation = std::move(*opened);
    if (loss.empty())
      return {StatusCode::Usage, "--expect: the entry has no metric to compare"};
  }
  log.info("data", std::to_string(feeder->rows()) + " rows, " + std::to_string(epochs.perEpoch()) + " steps an epoch");
  int64_t steps = options.steps.value_or(expectation ? expectation->steps() - state.step : epochs.perEpoch());
  if (!options.steps && !expectation && steps == 0)
    return {StatusCode::Usage, "give --steps=N: the data have no end of their own"};
  const char *itemName = "samples";
  double items = itemsPerStep(session, options.entry, itemName);
  Expected<std::unique_ptr<Progress>> progress = Progress::create(options, session, items, itemName);
  if (!progress)
    return progress.takeStatus();
  const bool logsSteps = log.shows(config::LogLevel::Debug, "runtime");
  const bool logsRows = log.shows(config::LogLevel::Debug, "data");
  log.beforeLine = [&] { (*progress)->endLine(); };
  for (const std::string &note : notes)
    (*progress)->line("note", note);
  bool hasNorm = bool(session.tensor(options.entry, "grad_norm"));
  session.device().measure(*entry, !options.profile.empty());

  std::signal(SIGTERM, requestStop);
  std::signal(SIGINT, requestStop);
  uint64_t allocations = session.allocations();
  Summary summary(session, options);
  Status verdict;
  int64_t first = state.step, last = state.step + std::max<int64_t>(steps, 0);
  bool trains = options.entry == "train";
  LossScaleState lossScale(session, options.entry);
  // Steps that a device may still be at; their numbers come back in order.
  std::deque<UnderWay> underWay;
  auto finished = std::chrono::steady_clock::now();
  auto finishOldest = [&]() -> Status {
    auto [report, stepEntry, start] = std::move(underWay.front());
    LOWTIDE_TRY(session.settle(static_cast<unsigned>(underWay.size() - 1)));
    underWay.pop_front();
    auto now = std::chrono::steady_clock::now();
    report.seconds = std::chrono::duration<double>(now - std::max(start, finished)).count();
    finished = now;
    if (!loss.empty())
      report.loss = *session.metric(*stepEntry, loss);
    if (hasNorm)
      report.gradNorm = *session.metric(*stepEntry, "grad_norm");
    lossScale.read(report);
    state.step = report.step;
    summary.add(report);
    int64_t step = report.step - 1;
    if (expectation)
      expectation->check(step, report.loss);
    // A step that was skipped left everything as it was.
    bool finite = std::isfinite(report.loss) || lossScale.skips();
    bool due = options.checkpointEvery && state.step % options.checkpointEvery == 0;
    if (underWay.empty() && trains && finite && !options.save.empty() && (due || step + 1 == last || stopRequested)) {
      const config::Stopwatch saving;
      Expected<std::string> saved = saveCheckpoint(session, state, options.save, options.keep);
      if (saved) {
        report.checkpoint = *saved;
        log.info("checkpoint", "wrote " + *saved + " in " + saving.text());
      } else if (step + 1 == last) {
        verdict = saved.takeStatus(); // an earlier failure must not end the run
      } else {
        (*progress)->line("error", "checkpoint: " + saved.status().str());
      }
    }
    LOWTIDE_TRY((*progress)->report(report));
    if (logsSteps)
      log.debug("runtime", "step " + std::to_string(report.step) + ": entry " + *stepEntry + ", loss " +
                               std::to_string(report.loss) + ", " + std::to_string(report.seconds * 1e3) + " ms");
    if (!finite && !expectation)
      verdict = {StatusCode::NonFinite, "the loss of step " + std::to_string(step + 1) + " is not finite"};
    return Status::ok();
  };
  bool ends = false;
  for (int64_t step = first; step < last && !ends; ++step) {
    StepReport report;
    report.step = step + 1, report.lastStep = last;
    auto start = std::chrono::steady_clock::now();
    Epochs::Step now = epochs.at(step, lastEntry);
    StepScalars scalars = session.scalarsOf(options.entry, step, state.seed);
    if (epochs.lastFeeder)
      scalars.row = now.epoch * feeder->rows() + now.firstRow;
    LOWTIDE_TRY(session.writeScalars(*now.entry, scalars));
    if (logsRows)
      log.debug("data", "step " + std::to_string(step + 1) + ": epoch " + std::to_string(now.epoch) + ", from row " +
                            std::to_string(now.firstRow));
    if (readsBatch)
      now.feeder->feedRows(step, now.epoch, now.firstRow);
    LOWTIDE_TRY(session.step(*now.entry));
    report.lr = scalars.lr;
    underWay.push_back({std::move(report), now.entry, start});
    // A checkpoint holds a step that is done, and nothing of the next.
    bool due = options.checkpointEvery && (step + 1) % options.checkpointEvery == 0;
    ends = stopRequested || step + 1 == last;
    for (size_t most = due || ends ? 0 : session.depth(); underWay.size() > most;) {
      LOWTIDE_TRY(finishOldest());
      // What was begun behind a step without a loss tells nothing.
      if (verdict.code() == StatusCode::NonFinite)
        underWay.clear();
    }
    ends = ends || verdict.code() == StatusCode::NonFinite;
  }
  while (!underWay.empty())
    LOWTIDE_TRY(finishOldest());
  if (stopRequested)
    (*progress)->line("note", "stopped behind step " + std::to_string(state.step));
  if (session.allocations() != allocations)
    return {StatusCode::Internal, "memory was allocated while training"};

  if (!options.exportModel.empty() && verdict.isOk()) {
    std::vector<std::string> exportNotes;
    LOWTIDE_TRY(exportOnnx(session, options.model, options.exportModel, exportNotes));
    for (const std::string &note : exportNotes)
      (*progress)->line("note", note);
  }
  if (!options.dumpOutputs.empty())
    LOWTIDE_TRY(dumpOutputs(session, options.entry, options.dumpOutputs));
  LOWTIDE_TRY(summary.write(expectation ? &*expectation : nullptr));
  if (!options.profile.empty())
    LOWTIDE_TRY(writeProfile(session.device(), *entry, options.profile));
  (*progress)->line("done", summary.text());
  LOWTIDE_TRY(session.close());
  if (expectation && verdict.isOk()) {
    if (!expectation->held() || expectation->judged() == 0)
      return {StatusCode::LossMismatch, expectation->report()};
    (*progress)->line("expect", expectation->report());
  }
  return verdict;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (std::optional<int> code = parseOptions(argc, argv, options))
    return *code;
  return exitCodeOf([&] { return train(options); });
}
