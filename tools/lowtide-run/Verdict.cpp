//===- Verdict.cpp - what a run saves, and what is wrong with it ------------===//

#include "Diagnosis.h"
#include "Signals.h"
#include "TrainingRun.h"

#include "runtime/checkpoint/ExportOnnx.h"
#include "runtime/checkpoint/Finite.h"
#include "runtime/checkpoint/OutputFile.h"

#include <cmath>
#include <filesystem>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

/// Nothing is written over what is read: data are not to be had again.
static Status checkInputs(const Options &options) {
  std::vector<std::string> inputs = {options.artifact, options.init, options.expect, options.model};
  for (const std::string &spec : {options.data, options.evalData})
    for (std::string &path : Dataset::listFiles(spec))
      inputs.push_back(std::move(path));
  const std::string profile = options.profile == "-" ? "" : options.profile;
  std::error_code error;
  for (auto [flag, output] :
       {std::pair("--predict", options.predict), std::pair("--summary", options.summary),
        std::pair("--profile", profile), std::pair("--log-jsonl", options.logJsonl),
        std::pair("--dump-outputs", options.dumpOutputs), std::pair("--dump-gradients", options.dumpGradients),
        std::pair("--export-ema", options.exportEma), std::pair("--export", options.exportModel)})
    for (const std::string &input : inputs)
      // A model may get its trained weights where it is.
      if (!output.empty() && !input.empty() && std::filesystem::is_regular_file(output, error) &&
          std::filesystem::equivalent(output, input, error) &&
          !(input == options.model && output == options.exportModel))
        return {StatusCode::Usage, std::string(flag) + " would be written over what the run reads: give another file",
                output};
  return Status::ok();
}

/// What the end of the run writes; a refusal then would come after the work.
Status TrainingRun::checkResults() const {
  LOWTIDE_TRY(checkInputs(options_));
  const std::string profile = options_.profile == "-" ? "" : options_.profile;
  for (const std::string &path : {options_.exportEma, options_.dumpOutputs, options_.summary, profile})
    if (!path.empty())
      LOWTIDE_TRY(checkWritable(path));
  return options_.exportModel.empty()
             ? Status::ok()
             : checkExport(*session_, options_.model, options_.exportModel, options_.mergeLora);
}

void TrainingRun::save(StepReport &report, bool isLast) {
  const config::Stopwatch saving;
  Expected<std::string> saved = folder_->save(*session_, state_, options_.keep);
  if (const std::string note = folder_->takeNote(); !note.empty())
    progress_->line("note", note);
  if (saved) {
    report.checkpoint = *saved;
    savedStep_ = state_.step;
    log_.info("checkpoint", "wrote " + *saved + " in " + saving.text());
    return;
  }
  const bool isNotFinite = saved.status().code() == StatusCode::NonFinite;
  if (isNotFinite && notFiniteStep_ < 0)
    notFiniteStep_ = state_.step;
  ends_ = ends_ || (isNotFinite && options_.onNonFinite == OnNonFinite::Stop);
  if (isLast || ends_)
    verdict_ = saved.takeStatus(); // an earlier failure must not end the run
  else
    progress_->line("error", "checkpoint: " + saved.status().str());
}

Status TrainingRun::undo(StepReport &report, bool isSkipped) {
  LOWTIDE_TRY(session_->download());
  // Loss scaling takes its own steps back, and has to lower its scale with that.
  const bool isFinite = std::isfinite(report.loss) && std::isfinite(report.gradNorm.value_or(0));
  Expected<std::optional<NotFinite>> found = findNotFinite(*session_);
  if (!found)
    return found.takeStatus();
  if ((!isFinite && !isSkipped) || *found) {
    LOWTIDE_TRY(undo_->restore());
    ++undone_;
  }
  report.skipped = report.skipped.value_or(0) + static_cast<double>(undone_);
  return Status::ok();
}

void TrainingRun::judge() {
  const int64_t steps = state_.step - firstStep_;
  if (!verdict_.isOk() || expectation_ || options_.entry != "train" || !steps || stoppedBy_)
    return;
  StepReport last;
  lossScale_.read(last);
  const int64_t skipped = undone_ + static_cast<int64_t>(last.skipped.value_or(0) - skippedBefore_);
  if (skipped >= steps) {
    verdict_ = {StatusCode::NonFinite,
                "every step was skipped (" + std::to_string(steps) + "): none was finite, and nothing was trained"};
    notFiniteStep_ = notFiniteStep_ < 0 ? firstSkippedStep_ : notFiniteStep_;
    return;
  }
  if (Status status = session_->download(); !status.isOk())
    verdict_ = std::move(status);
  else if (!lastIsFinite_)
    verdict_ = {StatusCode::NonFinite, "the loss of the last step, " + std::to_string(state_.step) + ", is not finite"};
  else if (Expected<std::optional<NotFinite>> found = findNotFinite(*session_); !found)
    verdict_ = found.takeStatus();
  else if (*found) {
    verdict_ = {StatusCode::NonFinite, "after step " + std::to_string(state_.step) + " " + (*found)->str()};
    notFiniteStep_ = notFiniteStep_ < 0 ? state_.step : notFiniteStep_;
  }
}

std::string TrainingRun::findCause() {
  // The newest parameters on disk that are from before it: what is between is done once more.
  const bool isSaved = savedStep_ >= 0 && savedStep_ <= notFiniteStep_;
  const std::string from = isSaved ? options_.save + "/" + stepName(savedStep_) : resumedFrom_;
  Diagnosis::Run run{*session_, lossName_};
  run.firstStep = isSaved ? savedStep_ : firstStep_;
  run.prepare = [this](int64_t step) { return prepareStep(step); };
  run.startAnew = [this] { return session_->restart(bind_); };
  run.goBack = [this, from]() -> Status {
    LOWTIDE_TRY(session_->restart(bind_));
    return from.empty() ? Status::ok() : loadCheckpoint(*session_, from, /*strict=*/true).status();
  };
  run.secondsPerStep = summary_->medianSeconds();
  return Diagnosis(std::move(run)).causeOf(notFiniteStep_);
}

void TrainingRun::explainVerdict() {
  const bool isWrong = verdict_.code() == StatusCode::NonFinite, isUndone = verdict_.isOk() && undone_ > 0;
  if ((!isWrong && !isUndone) || notFiniteStep_ < 0 || lossName_.empty() || stoppedBy_)
    return;
  const std::string cause = findCause(), step = std::to_string(notFiniteStep_ + 1);
  if (cause.empty())
    return;
  if (isUndone)
    progress_->line("note", "of the steps that were undone, the first is step " + step + ": " + cause);
  else
    verdict_ = {StatusCode::NonFinite,
                verdict_.message() +
                    (ends_ || notFiniteStep_ == state_.step ? ": " : "; first at step " + step + ": ") + cause,
                verdict_.where()};
}
