//===- TrainingEvaluation.cpp - validation while a run trains --------------===//

#include "TrainingEvaluation.h"

#include "Signals.h"

#include "runtime/ShellQuote.h"

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

/// What an evaluation writes would be there after it.
static Status checkChangesNothing(const Session &session, const std::string &entry) {
  const plan::Entry *found = session.artifact().entry(entry);
  for (int i = 0; found && i < found->bindings_size(); ++i) {
    const plan::Binding &binding = found->bindings(i);
    if ((binding.kind() == plan::Binding::PARAM || binding.kind() == plan::Binding::STATE) &&
        binding.final_value() != binding.slice().value())
      return {StatusCode::Usage, "entry '" + printable(entry) + "' changes '" + printable(binding.name()) +
                                     "': an evaluation would change the training; compile without --mode=as-is"};
  }
  return Status::ok();
}

Expected<std::unique_ptr<TrainingEvaluation>> TrainingEvaluation::create(const Options &options, Session &session,
                                                                         int64_t stepsPerEpoch,
                                                                         std::vector<std::string> &notes) {
  std::unique_ptr<TrainingEvaluation> made(new TrainingEvaluation);
  LOWTIDE_TRY(checkChangesNothing(session, "eval"));
  Expected<Dataset> data = Dataset::open(options.evalData, options.scale);
  if (!data)
    return data.takeStatus();
  std::vector<std::string> said;
  auto validation = Validation::create(std::move(*data), session, "eval", options.evalMetrics, said);
  if (!validation)
    return validation.takeStatus().at("--eval-data");
  for (const std::string &note : said)
    notes.push_back("--eval-data: " + note);
  if ((*validation)->batches() == 0)
    return Status(StatusCode::Usage, "--eval-data=" + options.evalData + " has no end; evaluate on files");
  made->validation_ = std::move(*validation);
  made->every_ = options.evalEvery ? options.evalEvery : stepsPerEpoch;
  made->patience_ = options.patience;
  made->command_ = "lowtide-run " + quoteForShell(options.artifact) +
                   " --entry=eval --data=" + quoteForShell(options.evalData) +
                   (options.scale.empty() ? "" : " --scale=" + quoteForShell(options.scale));
  if (!options.keepBest.empty() || options.patience) {
    Expected<EarlyStopping> stopping = EarlyStopping::create(options.keepBest.empty() ? "loss" : options.keepBest,
                                                             options.patience, *made->validation_);
    if (!stopping)
      return stopping.takeStatus();
    made->stopping_ = std::move(*stopping);
  }
  return made;
}

Status TrainingEvaluation::evaluate(StepReport &report) {
  isBest_ = false;
  // Who asks a run to stop waits for its checkpoint, and a data set may take minutes.
  Expected<std::optional<EvaluationReport>> all = validation_->evaluateAll([] { return stopSignal() != 0; });
  if (!all)
    return all.takeStatus().at("--eval-data");
  if (!*all) {
    note_ = "the evaluation after step " + std::to_string(report.step) + " was stopped: it has no means";
    return Status::ok();
  }
  std::optional<EvaluationReport> &means = *all;
  if (means->notFinite && !command_.empty()) {
    const Validation::Window rows = validation_->window(*means->notFinite);
    note_ = "--eval-data: the loss of rows " + std::to_string(rows.first) + " to " +
            std::to_string(rows.first + rows.rows - 1) + " is not finite; " + std::exchange(command_, {}) +
            " looks for the cause, with --resume=DIR at the weights of a checkpoint";
  }
  isBest_ = stopping_ && stopping_->add(report.step, *means);
  report.evaluation = std::move(*means);
  return Status::ok();
}

std::string TrainingEvaluation::overText() const {
  return "nothing better in " + std::to_string(patience_) + (patience_ == 1 ? " evaluation" : " evaluations") +
         " (--patience); the best: " + stopping_->text();
}
