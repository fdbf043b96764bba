//===- TrainingRun.cpp - one run of an artifact ------------------------------===//

#include "TrainingRun.h"

#include "EvaluationRun.h"
#include "Outputs.h"
#include "Profile.h"
#include "Signals.h"

#include "runtime/MappedFile.h"
#include "runtime/checkpoint/Adapters.h"
#include "runtime/checkpoint/ExportOnnx.h"
#include "runtime/checkpoint/InitialState.h"
#include "runtime/checkpoint/OutputFile.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

namespace {

/// Whether --init names a file rather than a seed.
bool isInitFile(const std::string &text) {
  const std::string ending = ".safetensors";
  return text.size() > ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

Status readInit(const std::string &text, BindOptions &bind) {
  if (text.empty() || isAdapterPath(text))
    return Status::ok();
  if (isInitFile(text)) {
    bind.randomInit = true; // the artifact may lack what the file brings
    return Status::ok();
  }
  const std::string prefix = "random:";
  const char *first = text.data() + prefix.size(), *last = text.data() + text.size();
  if (text.rfind(prefix, 0) != 0 || std::from_chars(first, last, bind.randomSeed).ptr != last || first == last)
    return {StatusCode::Usage, "--init=" + printable(text) +
                                   ": random:<seed>, a .safetensors file or a folder with PEFT's adapter is expected; "
                                   "safetensors.torch.save_model(module, 'init.safetensors') writes such a file"};
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

/// Of an entry that the compiler makes where it is asked for.
static std::string adviseEntry(const std::string &entry) {
  const bool isKnown = entry == "train" || entry == "eval" || entry == "gradient";
  return isKnown ? "; compile with --entries=" + entry : "";
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
    return {StatusCode::Usage,
            "no entry '" + printable(options_.entry) + "'; the artifact has: " + names + adviseEntry(options_.entry)};
  }
  return Status::ok();
}

Status TrainingRun::bind() {
  BindOptions &bind = bind_;
  LOWTIDE_TRY(readDevice(options_.device, session_->plan().target(), bind));
  bind.threads = options_.threads;
  bind.poison = options_.poison;
  bind.spill = options_.spill;
  Expected<FileTraffic> traffic = findFileTraffic(options_.spillIo);
  if (!traffic)
    return traffic.takeStatus();
  bind.traffic = *traffic;
  bind.schedule = options_.schedule;
  bind.randomSeed = static_cast<uint64_t>(options_.seed.value_or(0)); // of what the plan lets begin so
  LOWTIDE_TRY(readInit(options_.init, bind));
  // A checkpoint brings the weights that the artifact may lack.
  if (!options_.resume.empty() && !bind.randomInit)
    bind.randomInit = true;
  const config::Stopwatch binding;
  LOWTIDE_TRY(session_->bind(bind));
  if (std::string warning = session_->device().warning(); !warning.empty())
    notes_.push_back(std::move(warning));
  const char *ofFile = !options_.spill.empty() ? "--spill" : options_.spillIo != "auto" ? "--spill-io" : nullptr;
  if (ofFile && !session_->plannedBytes(plan::Arena::FILE))
    notes_.push_back(std::string(ofFile) + " has no use: no value of this artifact waits in a file; where some must, "
                                           "lowtide compile --device-budget=… --disk-budget=… says so");
  if (isAdapterPath(options_.init))
    LOWTIDE_TRY(loadAdapter(*session_, options_.init, notes_));
  else if (isInitFile(options_.init))
    LOWTIDE_TRY(loadInitialState(*session_, options_.init, notes_));
  log_.info("runtime", "bound " + bytesText(session_->allocatedBytes()) + " for " +
                           std::to_string(session_->threads()) + " threads in " + binding.text());
  lossName_ = findLoss(*session_, options_.entry);
  hasNorm_ = bool(session_->tensor(options_.entry, "grad_norm"));
  readsBatch_ = !session_->tensors(options_.entry, plan::Binding::BATCH).empty();
  return Status::ok();
}

/// Locks what the run saves into, before it reads there what it goes on from.
Status TrainingRun::openFolder() {
  if (options_.save.empty() || options_.entry != "train")
    return Status::ok();
  Expected<std::unique_ptr<RunFolder>> opened = RunFolder::open(options_.save, notes_);
  if (!opened)
    return opened.takeStatus();
  folder_ = std::move(*opened);
  return Status::ok();
}

Status TrainingRun::resume() {
  state_.seed = options_.seed.value_or(0);
  state_.shuffleSeed = options_.shuffle;
  state_.run = newRunName();
  if (options_.resume.empty())
    return saves() ? folder_->claim(state_, options_.overwrite) : Status::ok();
  Expected<LoadedCheckpoint> resumed = loadCheckpoint(*session_, options_.resume, options_.resumeStrict);
  if (!resumed)
    return resumed.takeStatus();
  state_ = resumed->state;
  resumedFrom_ = resumed->path;
  notes_.insert(notes_.end(), resumed->notes.begin(), resumed->notes.end());
  // Constants may be what a file for --init brings besides: of pairs a checkpoint holds no frozen weights.
  const std::vector<Tensor> tensors = session_->persistent();
  if (!options_.init.empty() && std::none_of(tensors.begin(), tensors.end(), [](const Tensor &tensor) {
        return tensor.binding->kind() == plan::Binding::CONSTANT;
      }))
    notes_.push_back("--init has no effect: " + resumed->path + " has a value for everything that it could bring");
  log_.info("checkpoint", "resumed after step " + std::to_string(state_.step) + " from " + resumed->path);
  if (saves()) {
    LOWTIDE_TRY(folder_->claim(state_, options_.overwrite));
    // Only who saves there may rename; what is damaged would stand in the way of the same step.
    std::error_code error;
    if (std::filesystem::equivalent(options_.resume, options_.save, error))
      for (const std::string &name : resumed->damaged)
        if (Expected<std::string> moved = folder_->setAside(name))
          notes_.push_back(name + " is damaged: moved to " + *moved);
  }
  if (options_.entry != "train")
    state_.step = 0; // rows, random numbers and steps that are shown are no continuation of the training
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
    Expected<Dataset> opened = Dataset::open(options_.data, options_.scale);
    if (!opened)
      return opened.takeStatus();
    dataset_ = std::move(*opened);
    if (std::string path = MappedFile::firstNotWhole(); !path.empty())
      return ioError("became shorter while it was read", path);
  }
  if (dataset_.stream && !options_.dumpGradients.empty())
    return {StatusCode::Usage, "--dump-gradients reads the first batch twice, which a program writes once: give files"};
  if (!options_.dumpGradients.empty())
    LOWTIDE_TRY(dumpGradients());
  Expected<Epochs> made = Epochs::create(dataset_, *session_, options_.entry, state_.shuffleSeed, notes_);
  if (!made)
    return made.takeStatus();
  epochs_.emplace(std::move(*made));
  return openEvaluation();
}

Status TrainingRun::openEvaluation() {
  if (options_.evalData.empty() || options_.entry != "train")
    return Status::ok();
  auto made = TrainingEvaluation::create(options_, *session_, epochs_->perEpoch(), notes_);
  if (!made)
    return made.takeStatus();
  evaluation_ = std::move(*made);
  if (state_.best && evaluation_->stopping() && !evaluation_->stopping()->resume(*state_.best))
    notes_.push_back("the run before followed " + state_.best->measure + "; the best is looked for anew");
  return Status::ok();
}

Status TrainingRun::evaluate(StepReport &report) {
  if (!evaluation_ || !underWay_.empty() || !evaluation_->isDue(report.step, lastStep_))
    return Status::ok();
  // The evaluation's outputs take the place of the step's.
  if (report.step == lastStep_ && !options_.dumpOutputs.empty())
    LOWTIDE_TRY(dumpOutputs(*session_, options_.entry, options_.dumpOutputs));
  LOWTIDE_TRY(withAverages([&] { return evaluation_->evaluate(report); }));
  if (const std::string note = evaluation_->takeNote(); !note.empty())
    progress_->line("note", note);
  if (evaluation_->stopping())
    state_.best = evaluation_->stopping()->state();
  finished_ = Clock::now(); // no part of a step's time
  return Status::ok();
}

Status TrainingRun::withAverages(const std::function<Status()> &act) {
  if (!options_.ema)
    return act();
  LOWTIDE_TRY(averages_->enter());
  Status status = act();
  LOWTIDE_TRY(averages_->leave());
  return status;
}

Status TrainingRun::dumpGradients() {
  const std::string name = options_.entry == "train" ? "gradient" : options_.entry;
  if (!session_->artifact().entry(name))
    return {StatusCode::Usage, "the artifact has no entry 'gradient', which --dump-gradients needs; compile with "
                               "--entries=train,gradient"};
  std::vector<std::string> unread;
  Expected<Feeder> feeder = Feeder::create(dataset_, *session_, name, std::nullopt, unread);
  if (!feeder)
    return feeder.takeStatus();
  LOWTIDE_TRY(session_->writeScalars(name, session_->scalarsOf(name, 0, state_.seed)));
  LOWTIDE_TRY(feeder->feed(0));
  LOWTIDE_TRY(session_->step(name));
  return run::dumpGradients(*session_, name, options_.dumpGradients);
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
  firstStep_ = state_.step;
  lastStep_ = state_.step + std::clamp<int64_t>(steps, 0, maxStep - state_.step);
  return Status::ok();
}

LogStart TrainingRun::logStart() const {
  const bool goesOn = options_.entry == "train" && !resumedFrom_.empty();
  return {options_.entry, state_.run, goesOn ? std::optional(state_.step) : std::nullopt};
}

Status TrainingRun::openProgress() {
  const char *itemName = "samples";
  double items = itemsPerStep(*session_, options_.entry, itemName);
  Expected<std::unique_ptr<Progress>> opened = Progress::create(options_, *session_, items, itemName, logStart());
  if (!opened)
    return opened.takeStatus();
  progress_ = std::move(*opened);
  log_.beforeLine = [this] { progress_->endLine(); };
  for (const std::string &note : notes_)
    progress_->line("note", note);
  return Status::ok();
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
  const bool isSkipped = lossScale_.takeSkip(report, underWay_.empty());
  if (undo_)
    LOWTIDE_TRY(undo(report, isSkipped));
  state_.step = report.step;
  lastIsFinite_ = std::isfinite(report.loss) || isSkipped || undo_;
  if (expectation_)
    expectation_->check(report.step - 1, report.loss);
  // A step that was skipped left everything as it was.
  bool isFinite = std::isfinite(report.loss) || isSkipped || options_.onNonFinite != OnNonFinite::Stop;
  if (isFinite)
    LOWTIDE_TRY(evaluate(report));
  summary_->add(report);
  const bool isBest = report.evaluation && evaluation_->isBest() && !options_.keepBest.empty();
  const bool isLast = report.step == lastStep_ || stopSignal();
  if (underWay_.empty() && saves() && isFinite && (isDue(state_.step) || isLast || isBest))
    save(report, isLast);
  if (isBest && savedStep_ == state_.step)
    if (Status status = folder_->point(bestPointer, state_.step); !status.isOk())
      progress_->line("error", "checkpoint: " + status.str());
  progress_->report(report);
  if (log_.shows(config::LogLevel::Debug, "runtime"))
    log_.debug("runtime", "step " + std::to_string(report.step) + ": entry " + *stepEntry + ", loss " +
                              std::to_string(report.loss) + ", " + std::to_string(report.seconds * 1e3) + " ms");
  if (!std::isfinite(report.loss) && !isSkipped && notFiniteStep_ < 0)
    notFiniteStep_ = report.step - 1;
  if (firstSkippedStep_ < 0 && report.skipped.value_or(0) > skippedBefore_)
    firstSkippedStep_ = report.step - 1;
  if (!isFinite && !expectation_) {
    verdict_ = {StatusCode::NonFinite, "the loss of step " + std::to_string(report.step) + " is not finite"};
    ends_ = true;
  }
  return Status::ok();
}

Status TrainingRun::writeScalars(int64_t step, const Epochs::Step &at) {
  StepScalars scalars = session_->scalarsOf(options_.entry, step, state_.seed);
  if (epochs_->hasLast())
    scalars.row = at.epoch * epochs_->rows() + at.firstRow;
  return session_->writeScalars(*at.entry, scalars);
}

Status TrainingRun::feed(int64_t step, uint8_t *slot, Share share) const {
  const Epochs::Step at = epochs_->at(step);
  if (readsBatch_)
    LOWTIDE_TRY(at.feeder->feedRows(step, at.epoch, at.firstRow, slot, share));
  if (std::string path = MappedFile::firstNotWhole(); !path.empty())
    return ioError("became shorter while the run was reading it: the run ends after step " + std::to_string(step),
                   path);
  return Status::ok();
}

Expected<Epochs::Step> TrainingRun::prepareStep(int64_t step) {
  const Epochs::Step now = epochs_->at(step);
  LOWTIDE_TRY(writeScalars(step, now));
  LOWTIDE_TRY(feed(step));
  return now;
}

void TrainingRun::feedAhead() {
  if (!readsBatch_ || options_.feeders == 0 || firstStep_ == lastStep_)
    return;
  BatchesAhead::Options options;
  options.slotBytes = epochs_->batchBytes();
  options.threads = dataset_.stream ? 1 : options_.feeders; // a program writes one batch after the other
  options.first = firstStep_, options.end = lastStep_;
  if (dataset_.stream)
    options.interrupt = [stream = dataset_.stream] { stream->interrupt(); };
  const unsigned threads = options.threads;
  auto fill = [this](int64_t step, uint8_t *slot, Share share) { return feed(step, slot, share); };
  auto made = BatchesAhead::create(fill, std::move(options));
  if (!made) {
    progress_->line("note", "batches are read between steps: " + made.status().message());
    return;
  }
  ahead_ = std::move(*made);
  log_.info("data", std::to_string(threads) + (threads == 1 ? " thread prepares" : " threads prepare") +
                        " batches in two slots, " + bytesText(ahead_->bytes()) + " of the host's memory");
}

Expected<bool> TrainingRun::beginStep(int64_t step) {
  StepReport report;
  report.step = step + 1, report.lastStep = lastStep_;
  auto start = Clock::now();
  if (ahead_ && !ahead_->await([] { return stopSignal() != 0; }))
    return false;
  if (undo_)
    LOWTIDE_TRY(undo_->keep());
  const Epochs::Step now = epochs_->at(step);
  LOWTIDE_TRY(writeScalars(step, now));
  if (ahead_) {
    Expected<const uint8_t *> slot = ahead_->current();
    if (!slot)
      return slot.takeStatus();
    now.feeder->deliver(*slot);
    ahead_->release();
    report.dataSeconds = ahead_->secondsWaited() - dataSeconds_;
    dataSeconds_ = ahead_->secondsWaited();
  } else if (readsBatch_) {
    auto reading = Clock::now();
    LOWTIDE_TRY(feed(step));
    report.dataSeconds = std::chrono::duration<double>(Clock::now() - reading).count();
  }
  if (log_.shows(config::LogLevel::Debug, "data"))
    log_.debug("data", "step " + std::to_string(step + 1) + ": epoch " + std::to_string(now.epoch) + ", from row " +
                           std::to_string(now.firstRow));
  const Transfers before = session_->device().transfers();
  LOWTIDE_TRY(session_->step(*now.entry));
  if (const Transfers moved = session_->device().transfers().since(before); !moved.isNone())
    report.transfers = moved;
  report.lr = session_->scalarsOf(options_.entry, step, state_.seed).lr;
  underWay_.push_back({std::move(report), now.entry, start});
  return true;
}

Status TrainingRun::stepThrough() {
  const size_t depth = undo_ ? 0 : session_->depth();
  for (int64_t step = firstStep_; step < lastStep_ && !ends_ && !stopSignal(); ++step) {
    if (evaluation_ && evaluation_->isOver()) {
      progress_->line("note", "stopped after step " + std::to_string(step) + ": " + evaluation_->overText());
      break;
    }
    Expected<bool> began = beginStep(step);
    if (!began)
      return began.takeStatus();
    if (!*began)
      break;
    const bool isEvaluated = evaluation_ && evaluation_->isDue(step + 1, lastStep_);
    const bool drains = isDue(step + 1) || isEvaluated || stopSignal() || step + 1 == lastStep_;
    // A checkpoint holds a step that is done, and nothing of the next.
    for (size_t most = drains ? 0 : depth; underWay_.size() > most;) {
      LOWTIDE_TRY(finishOldest());
      // What was begun after a step without a loss tells nothing.
      if (ends_)
        underWay_.clear();
    }
  }
  return Status::ok();
}

Status TrainingRun::runSteps() {
  session_->device().measure(*entry_, getMeasuring(options_.profile));
  uint64_t allocations = session_->allocations();
  feedAhead();
  finished_ = Clock::now();
  Status broken = stepThrough();
  ahead_.reset();
  while (!underWay_.empty())
    if (Status status = finishOldest(); !status.isOk()) {
      if (broken.isOk())
        broken = std::move(status);
      underWay_.clear();
    }
  // What is done and not saved yet: the run was stopped, or broke; or a run of no steps, which saves its start.
  const bool isWhole = verdict_.isOk() && state_.step > firstStep_;
  if (saves() && savedStep_ != state_.step && !ends_ && (isWhole || lastStep_ == firstStep_)) {
    StepReport done;
    done.step = state_.step, done.lastStep = lastStep_;
    save(done, /*isLast=*/true);
  }
  stoppedBy_ = state_.step < lastStep_ && !ends_ ? stopSignal() : 0;
  if (stoppedBy_) {
    const std::string where = saves() && savedStep_ == state_.step ? "saved in " + options_.save
                              : state_.step == firstStep_          ? "before the first step of this run"
                              : saves()                            ? "not saved"
                                                                   : "nothing is saved (--save=DIR was not given)";
    progress_->line("note", "stopped by " + signalName(stoppedBy_) + " after step " + std::to_string(state_.step) +
                                ", " + where);
  }
  if (!broken.isOk() && !verdict_.isOk())
    progress_->line("error", verdict_.str());
  LOWTIDE_TRY(std::move(broken));
  if (session_->allocations() != allocations)
    return {StatusCode::Internal, "memory was allocated while training"};
  return Status::ok();
}

Status TrainingRun::writeResults() {
  // Each file for itself: one that cannot be written keeps none of the others from it.
  Status failed;
  auto then = [&](Status status) {
    if (!status.isOk() && failed.isOk())
      failed = std::move(status);
    else if (!status.isOk())
      progress_->line("error", status.str());
  };
  // Before an export, which computes others.
  if (!options_.dumpOutputs.empty() && !evaluation_) {
    then(dumpOutputs(*session_, options_.entry, options_.dumpOutputs));
    if (session_->tensors(options_.entry, plan::Binding::OUTPUT).empty() &&
        session_->tensors(options_.entry, plan::Binding::GRADIENT).empty())
      progress_->line("note", "'" + options_.entry + "' computes no output of the model, " + options_.dumpOutputs +
                                  " holds metrics: lowtide compile --outputs=all (or names) keeps them");
  }
  if (!options_.exportModel.empty() && verdict_.isOk()) {
    std::vector<std::string> exportNotes;
    then(withAverages(
        [&] { return exportOnnx(*session_, options_.model, options_.exportModel, exportNotes, options_.mergeLora); }));
    for (const std::string &note : exportNotes)
      progress_->line("note", note);
  }
  if (!options_.exportEma.empty() && verdict_.isOk())
    then(averages_->write(options_.exportEma, state_.step));
  then(summary_->write(expectation_ ? &*expectation_ : nullptr));
  if (!options_.profile.empty())
    then(writeProfile(*session_, *entry_, options_.profile));
  then(progress_->failure());
  if (!options_.quiet)
    progress_->line("done", summary_->text());
  return failed;
}

Status TrainingRun::run() {
  LOWTIDE_TRY(load());
  LOWTIDE_TRY(bind());
  LOWTIDE_TRY(openFolder());
  LOWTIDE_TRY(resume());
  if (options_.ema || !options_.exportEma.empty()) {
    Expected<Averages> found = Averages::find(*session_);
    if (!found)
      return found.takeStatus().at(options_.ema ? "--ema" : "--export-ema");
    averages_ = std::move(*found);
  }
  LOWTIDE_TRY(checkResults());
  if (options_.entry == "eval") {
    if (!options_.exportEma.empty())
      LOWTIDE_TRY(averages_->write(options_.exportEma, state_.step));
    auto weigh = [this]() -> Status {
      LOWTIDE_TRY(session_->restart(bind_));
      if (isInitFile(options_.init))
        LOWTIDE_TRY(loadInitialState(*session_, options_.init, notes_));
      if (!resumedFrom_.empty())
        LOWTIDE_TRY(loadCheckpoint(*session_, resumedFrom_, /*strict=*/true).status());
      return options_.ema ? averages_->enter() : Status::ok();
    };
    if (options_.ema)
      LOWTIDE_TRY(averages_->enter());
    EvaluationRun evaluation(options_, *session_, weigh, std::move(notes_));
    Status status = evaluation.run();
    stoppedBy_ = evaluation.stoppedBy();
    return status;
  }
  LOWTIDE_TRY(openData());
  LOWTIDE_TRY(openExpectation());
  LOWTIDE_TRY(countSteps());
  LOWTIDE_TRY(openProgress());
  summary_.emplace(*session_, options_);
  lossScale_ = LossScaleState(*session_, options_.entry);
  StepReport before;
  lossScale_.read(before);
  skippedBefore_ = before.skipped.value_or(0);
  if (options_.onNonFinite == OnNonFinite::Skip && options_.entry == "train") {
    undo_.emplace(*session_);
    progress_->line("note", "--on-nonfinite=skip holds parameters and state twice: " + bytesText(undo_->bytes()) +
                                " of the host's memory, outside the plan");
  }
  LOWTIDE_TRY(runSteps());
  judge();
  Status written = writeResults();
  if (verdict_.isOk())
    verdict_ = std::move(written);
  else if (!written.isOk())
    progress_->line("error", written.str());
  explainVerdict();
  LOWTIDE_TRY(session_->close());
  if (expectation_ && verdict_.isOk()) {
    if (!expectation_->held() || expectation_->judged() == 0)
      return {StatusCode::LossMismatch, expectation_->report()};
    progress_->line("expect", expectation_->report());
  }
  return verdict_;
}
