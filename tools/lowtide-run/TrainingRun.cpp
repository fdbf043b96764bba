//===- TrainingRun.cpp - one run of an artifact ------------------------------===//

#include "TrainingRun.h"

#include "Outputs.h"
#include "Profile.h"

#include "runtime/Element.h"
#include "runtime/checkpoint/ExportOnnx.h"
#include "runtime/checkpoint/FrameworkTensor.h"

#include <charconv>
#include <cmath>
#include <csignal>

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

std::string findLoss(const Session &session, const std::string &entry) {
  std::vector<Tensor> metrics = session.tensors(entry, plan::Binding::METRIC);
  for (const Tensor &tensor : metrics)
    if (tensor.binding->name() == "loss")
      return "loss";
  return metrics.empty() ? "" : metrics[0].binding->name();
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

} // namespace

LossScaleState::LossScaleState(const Session &session, const std::string &entry) {
  for (auto [name, slot] : {std::pair("loss_scale", &scale_), std::pair("loss_scale.growth_tracker", &tracker_),
                            std::pair("loss_scale.skipped", &skipped_)})
    if (Expected<Tensor> found = session.tensor(entry, name))
      *slot = *found;
}

void LossScaleState::read(StepReport &report) const {
  auto number = [](const std::optional<Tensor> &tensor) {
    return tensor ? std::optional(loadElement(tensor->binding->dtype(), tensor->data)) : std::nullopt;
  };
  report.lossScale = number(scale_), report.growthTracker = number(tracker_), report.skipped = number(skipped_);
}

TrainingRun::TrainingRun(const Options &options) : options_(options), log_(options.log) {}

Status TrainingRun::load() {
  const config::Stopwatch loading;
  Expected<std::unique_ptr<Session>> loaded = Session::load(options_.artifact);
  if (!loaded)
    return loaded.takeStatus();
  session_ = std::move(*loaded);
  log_.info("runtime", "loaded and proved " + options_.artifact + " for " + printable(session_->plan().target()) +
                           " in " + loading.text());
  entry_ = session_->artifact().entry(options_.entry);
  if (!entry_) {
    std::string names;
    for (const plan::Entry &other : session_->plan().entries())
      names += (names.empty() ? "" : ", ") + printable(other.name());
    return {StatusCode::Usage, "no entry '" + printable(options_.entry) + "'; the artifact has: " + names};
  }
  return Status::ok();
}

Status TrainingRun::bind() {
  BindOptions bind;
  LOWTIDE_TRY(readDevice(options_.device, session_->plan().target(), bind));
  bind.threads = options_.threads;
  bind.poison = options_.poison;
  bind.schedule = options_.schedule;
  LOWTIDE_TRY(readInit(options_.init, bind));
  // A checkpoint brings the weights that the artifact may lack.
  if (!options_.resume.empty() && !bind.randomInit)
    bind.randomInit = true;
  const config::Stopwatch binding;
  LOWTIDE_TRY(session_->bind(bind));
  log_.info("runtime", "bound " + bytesText(session_->allocatedBytes()) + " for " +
                           std::to_string(session_->threads()) + " threads in " + binding.text());
  lossName_ = findLoss(*session_, options_.entry);
  hasNorm_ = bool(session_->tensor(options_.entry, "grad_norm"));
  readsBatch_ = !session_->tensors(options_.entry, plan::Binding::BATCH).empty();
  return Status::ok();
}

Status TrainingRun::resume() {
  state_.seed = options_.seed.value_or(0);
  state_.shuffleSeed = options_.shuffle;
  if (options_.resume.empty())
    return Status::ok();
  Expected<RunState> resumed = loadCheckpoint(*session_, options_.resume, options_.resumeStrict, notes_);
  if (!resumed)
    return resumed.takeStatus();
  state_ = *resumed;
  log_.info("checkpoint", "resumed behind step " + std::to_string(state_.step) + " from " + options_.resume);
  if (options_.seed && *options_.seed != state_.seed)
    return {StatusCode::Usage, "--seed=" + std::to_string(*options_.seed) + ", but the run that is resumed has seed " +
                                   std::to_string(state_.seed)};
  if (options_.shuffle && options_.shuffle != state_.shuffleSeed)
    return {StatusCode::Usage, "--shuffle differs from the run that is resumed"};
  return Status::ok();
}

Status TrainingRun::openData() {
  if (readsBatch_ && options_.data.empty())
    return {StatusCode::Usage, "the step reads batch arrays: give --data=FILE, or --data=synthetic"};
  if (!options_.data.empty()) {
    Expected<Dataset> opened = Dataset::open(options_.data);
    if (!opened)
      return opened.takeStatus();
    dataset_ = std::move(*opened);
  }
  if (!options_.dumpGradients.empty())
    LOWTIDE_TRY(dumpGradients());
  Expected<Epochs> made = Epochs::create(dataset_, *session_, options_.entry, state_.shuffleSeed, notes_);
  if (!made)
    return made.takeStatus();
  epochs_.emplace(std::move(*made));
  return Status::ok();
}

Status TrainingRun::dumpGradients() {
  const std::string name = options_.entry == "train" ? "gradient" : options_.entry;
  if (!session_->artifact().entry(name))
    return {StatusCode::Usage, "the artifact has no entry 'gradient'; --dump-gradients needs it"};
  std::vector<std::string> unread;
  Expected<Feeder> feeder = Feeder::create(dataset_, *session_, name, std::nullopt, unread);
  if (!feeder)
    return feeder.takeStatus();
  LOWTIDE_TRY(session_->writeScalars(name, session_->scalarsOf(name, 0, state_.seed)));
  feeder->feed(0);
  LOWTIDE_TRY(session_->step(name));
  return writeGradients(*session_, name, options_.dumpGradients);
}

Status TrainingRun::openExpectation() {
  if (options_.expect.empty())
    return Status::ok();
  Expected<Expectation> opened = Expectation::open(options_.expect, options_.expectKey, options_.expectTolerance);
  if (!opened)
    return opened.takeStatus();
  expectation_ = std::move(*opened);
  if (lossName_.empty())
    return {StatusCode::Usage, "--expect: the entry has no metric to compare"};
  return Status::ok();
}

Status TrainingRun::countSteps() {
  log_.info("data",
            std::to_string(epochs_->rows()) + " rows, " + std::to_string(epochs_->perEpoch()) + " steps an epoch");
  int64_t steps = options_.steps.value_or(expectation_ ? expectation_->steps() - state_.step : epochs_->perEpoch());
  if (!options_.steps && !expectation_ && steps == 0)
    return {StatusCode::Usage, "give --steps=N: the data have no end of their own"};
  lastStep_ = state_.step + std::max<int64_t>(steps, 0);
  return Status::ok();
}

Status TrainingRun::openProgress() {
  const char *itemName = "samples";
  double items = itemsPerStep(*session_, options_.entry, itemName);
  Expected<std::unique_ptr<Progress>> opened = Progress::create(options_, *session_, items, itemName);
  if (!opened)
    return opened.takeStatus();
  progress_ = std::move(*opened);
  log_.beforeLine = [this] { progress_->endLine(); };
  for (const std::string &note : notes_)
    progress_->line("note", note);
  return Status::ok();
}

void TrainingRun::save(StepReport &report) {
  const config::Stopwatch saving;
  Expected<std::string> saved = saveCheckpoint(*session_, state_, options_.save, options_.keep);
  if (saved) {
    report.checkpoint = *saved;
    log_.info("checkpoint", "wrote " + *saved + " in " + saving.text());
  } else if (report.step == lastStep_) {
    verdict_ = saved.takeStatus(); // an earlier failure must not end the run
  } else {
    progress_->line("error", "checkpoint: " + saved.status().str());
  }
}

Status TrainingRun::finishOldest() {
  auto [report, stepEntry, start] = std::move(underWay_.front());
  LOWTIDE_TRY(session_->settle(static_cast<unsigned>(underWay_.size() - 1)));
  underWay_.pop_front();
  auto now = Clock::now();
  report.seconds = std::chrono::duration<double>(now - std::max(start, finished_)).count();
  finished_ = now;
  if (!lossName_.empty())
    report.loss = *session_->metric(*stepEntry, lossName_);
  if (hasNorm_)
    report.gradNorm = *session_->metric(*stepEntry, "grad_norm");
  lossScale_.read(report);
  state_.step = report.step;
  summary_->add(report);
  if (expectation_)
    expectation_->check(report.step - 1, report.loss);
  // A step that was skipped left everything as it was.
  bool isFinite = std::isfinite(report.loss) || lossScale_.skips();
  if (underWay_.empty() && options_.entry == "train" && isFinite && !options_.save.empty() &&
      (isDue(state_.step) || report.step == lastStep_ || stopRequested))
    save(report);
  LOWTIDE_TRY(progress_->report(report));
  if (log_.shows(config::LogLevel::Debug, "runtime"))
    log_.debug("runtime", "step " + std::to_string(report.step) + ": entry " + *stepEntry + ", loss " +
                              std::to_string(report.loss) + ", " + std::to_string(report.seconds * 1e3) + " ms");
  if (!isFinite && !expectation_)
    verdict_ = {StatusCode::NonFinite, "the loss of step " + std::to_string(report.step) + " is not finite"};
  return Status::ok();
}

Status TrainingRun::beginStep(int64_t step) {
  StepReport report;
  report.step = step + 1, report.lastStep = lastStep_;
  auto start = Clock::now();
  Epochs::Step now = epochs_->at(step);
  StepScalars scalars = session_->scalarsOf(options_.entry, step, state_.seed);
  if (epochs_->hasLast())
    scalars.row = now.epoch * epochs_->rows() + now.firstRow;
  LOWTIDE_TRY(session_->writeScalars(*now.entry, scalars));
  if (log_.shows(config::LogLevel::Debug, "data"))
    log_.debug("data", "step " + std::to_string(step + 1) + ": epoch " + std::to_string(now.epoch) + ", from row " +
                           std::to_string(now.firstRow));
  if (readsBatch_)
    now.feeder->feedRows(step, now.epoch, now.firstRow);
  LOWTIDE_TRY(session_->step(*now.entry));
  report.lr = scalars.lr;
  underWay_.push_back({std::move(report), now.entry, start});
  return Status::ok();
}

Status TrainingRun::runSteps() {
  std::signal(SIGTERM, requestStop);
  std::signal(SIGINT, requestStop);
  session_->device().measure(*entry_, !options_.profile.empty());
  uint64_t allocations = session_->allocations();
  finished_ = Clock::now();
  const int64_t firstStep = state_.step;
  bool ends = false;
  for (int64_t step = state_.step; step < lastStep_ && !ends; ++step) {
    LOWTIDE_TRY(beginStep(step));
    ends = stopRequested || step + 1 == lastStep_;
    // A checkpoint holds a step that is done, and nothing of the next.
    for (size_t most = isDue(step + 1) || ends ? 0 : session_->depth(); underWay_.size() > most;) {
      LOWTIDE_TRY(finishOldest());
      // What was begun behind a step without a loss tells nothing.
      if (verdict_.code() == StatusCode::NonFinite)
        underWay_.clear();
    }
    ends = ends || verdict_.code() == StatusCode::NonFinite;
  }
  while (!underWay_.empty())
    LOWTIDE_TRY(finishOldest());
  // No step at all: what a run would start from.
  if (lastStep_ == firstStep && options_.entry == "train" && !options_.save.empty()) {
    StepReport start;
    start.step = lastStep_;
    save(start);
  }
  if (stopRequested)
    progress_->line("note", "stopped behind step " + std::to_string(state_.step));
  if (session_->allocations() != allocations)
    return {StatusCode::Internal, "memory was allocated while training"};
  return Status::ok();
}

Status TrainingRun::writeResults() {
  if (!options_.exportModel.empty() && verdict_.isOk()) {
    std::vector<std::string> exportNotes;
    LOWTIDE_TRY(exportOnnx(*session_, options_.model, options_.exportModel, exportNotes));
    for (const std::string &note : exportNotes)
      progress_->line("note", note);
  }
  if (!options_.dumpOutputs.empty())
    LOWTIDE_TRY(dumpOutputs(*session_, options_.entry, options_.dumpOutputs));
  LOWTIDE_TRY(summary_->write(expectation_ ? &*expectation_ : nullptr));
  if (!options_.profile.empty())
    LOWTIDE_TRY(writeProfile(session_->device(), *entry_, options_.profile));
  progress_->line("done", summary_->text());
  return Status::ok();
}

Status TrainingRun::run() {
  LOWTIDE_TRY(load());
  LOWTIDE_TRY(bind());
  LOWTIDE_TRY(resume());
  LOWTIDE_TRY(openData());
  LOWTIDE_TRY(openExpectation());
  LOWTIDE_TRY(countSteps());
  LOWTIDE_TRY(openProgress());
  summary_.emplace(*session_, options_);
  lossScale_ = LossScaleState(*session_, options_.entry);
  LOWTIDE_TRY(runSteps());
  LOWTIDE_TRY(writeResults());
  LOWTIDE_TRY(session_->close());
  if (expectation_ && verdict_.isOk()) {
    if (!expectation_->held() || expectation_->judged() == 0)
      return {StatusCode::LossMismatch, expectation_->report()};
    progress_->line("expect", expectation_->report());
  }
  return verdict_;
}
