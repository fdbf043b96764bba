//===- EvaluationRun.cpp - a run that trains nothing -----------------------===//

#include "EvaluationRun.h"

#include "Diagnosis.h"
#include "Outputs.h"
#include "Predict.h"
#include "Profile.h"
#include "Signals.h"

#include <algorithm>
#include <cmath>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

/// Whether the data have every array that the entry reads.
static bool isWhole(const Dataset &dataset, const Session &session, const std::string &entry) {
  const std::vector<Tensor> tensors = session.tensors(entry, plan::Binding::BATCH);
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const Tensor &tensor) { return dataset.arrays.count(tensor.binding->name()) != 0; });
}

Status EvaluationRun::open() {
  const std::string &files = options_.data.empty() ? options_.evalData : options_.data;
  if (files.empty() && !session_.tensors(entry_, plan::Binding::BATCH).empty())
    return {StatusCode::Usage, "the evaluation reads batch arrays: give --data=FILE"};
  Dataset dataset;
  if (!files.empty()) {
    Expected<Dataset> opened = Dataset::open(files, options_.scale);
    if (!opened)
      return opened.takeStatus();
    dataset = std::move(*opened);
  }
  const bool hasAll = files.empty() || isWhole(dataset, session_, entry_);
  auto made = Validation::create(std::move(dataset), session_, entry_, options_.evalMetrics, notes_);
  if (!made && !hasAll && !options_.predict.empty()) {
    const Status status = made.takeStatus();
    return {status.code(),
            status.message() + "; of rows without labels: 'lowtide compile MODEL --entries=eval', without "
                               "--loss, makes a step that reads none",
            status.where()};
  }
  if (!made)
    return made.takeStatus();
  validation_ = std::move(*made);
  if (!options_.expect.empty()) {
    Expected<Expectation> opened = Expectation::open(options_.expect, options_.expectKey, options_.expectTolerance);
    if (!opened)
      return opened.takeStatus();
    expectation_ = std::move(*opened);
    if (!validation_->hasLoss())
      return {StatusCode::Usage, "--expect: the entry has no loss to compare"};
  }
  const LogStart start{options_.entry, {}, std::nullopt};
  auto progress = Progress::create(options_, session_, static_cast<double>(validation_->batch()), "samples", start);
  if (!progress)
    return progress.takeStatus();
  progress_ = std::move(*progress);
  for (const std::string &note : notes_)
    progress_->line("note", note);
  summary_.emplace(session_, options_);
  return Status::ok();
}

Status EvaluationRun::evaluate() {
  int64_t batches = validation_->batches();
  if (batches == 0 && !options_.steps && !expectation_)
    return {StatusCode::Usage, "give --steps=N: the data have no end of their own"};
  const int64_t asked = options_.steps.value_or(expectation_ ? expectation_->steps() : batches);
  batches = batches ? std::min(asked, batches) : asked;
  session_.device().measure(*session_.artifact().entry(entry_), getMeasuring(options_.profile));
  const uint64_t allocations = session_.allocations();
  validation_->begin();
  double before = 0;
  for (int64_t i = 0; i < batches; ++i) {
    if ((isCut_ = stopSignal() != 0))
      break;
    const Transfers moved = session_.device().transfers();
    Expected<double> loss = validation_->evaluate(i);
    if (!loss)
      return loss.takeStatus();
    StepReport report;
    if (const Transfers more = session_.device().transfers().since(moved); !more.isNone())
      report.transfers = more;
    report.step = i + 1, report.lastStep = batches;
    report.loss = *loss;
    report.hasLoss = validation_->hasLoss();
    const double now = validation_->report().seconds;
    report.seconds = now - std::exchange(before, now);
    report.isEvaluation = true;
    summary_->add(report);
    if (expectation_)
      expectation_->check(i, *loss);
    progress_->report(report);
    if (validation_->hasLoss() && !std::isfinite(*loss) && !expectation_ && validation_->countsLast())
      return explain(i);
  }
  if (session_.allocations() != allocations)
    return {StatusCode::Internal, "memory was allocated while evaluating"};
  means_ = validation_->report();
  return Status::ok();
}

Status EvaluationRun::explain(int64_t batch) {
  Diagnosis::Run run{session_, validation_->lossName()};
  run.firstStep = std::max<int64_t>(batch - 1, 0);
  run.prepare = [this](int64_t index) -> Expected<Epochs::Step> {
    Expected<Validation::Window> now = validation_->prepare(index);
    if (!now)
      return now.takeStatus();
    return Epochs::Step{now->entry, now->feeder, 0, now->first};
  };
  run.startAnew = run.goBack = weigh_;
  run.secondsPerStep = summary_->medianSeconds();
  const std::string cause = Diagnosis(std::move(run)).causeOf(batch);
  return {StatusCode::NonFinite,
          "the loss of batch " + std::to_string(batch + 1) + " is not finite" + (cause.empty() ? "" : ": " + cause)};
}

Status EvaluationRun::writeResults() {
  if (!options_.dumpOutputs.empty())
    LOWTIDE_TRY(dumpOutputs(session_, entry_, options_.dumpOutputs));
  summary_->setEvaluation(means_);
  LOWTIDE_TRY(summary_->write(expectation_ ? &*expectation_ : nullptr));
  if (!options_.profile.empty())
    LOWTIDE_TRY(writeProfile(session_, *session_.artifact().entry(entry_), options_.profile));
  progress_->reportEvaluation(means_);
  return progress_->failure();
}

Status EvaluationRun::run() {
  LOWTIDE_TRY(open());
  if (options_.predict.empty()) {
    LOWTIDE_TRY(evaluate());
  } else {
    Expected<EvaluationReport> means = predict(*validation_, session_, entry_, options_.predict);
    if (!means)
      return means.takeStatus();
    means_ = std::move(*means);
  }
  stoppedBy_ = isCut_ || (!options_.predict.empty() && means_.leftOut) ? stopSignal() : 0;
  if (stoppedBy_)
    progress_->line("note", "stopped by " + signalName(stoppedBy_) + " after " + std::to_string(means_.rows) + " rows" +
                                (options_.predict.empty() ? "" : ": '" + options_.predict + "' was not written"));
  else if (!options_.predict.empty())
    progress_->line("wrote", options_.predict + ": the outputs of " + std::to_string(means_.rows) + " rows");
  LOWTIDE_TRY(writeResults());
  const Status cause = means_.notFinite && !expectation_ ? explain(*means_.notFinite) : Status::ok();
  LOWTIDE_TRY(session_.close());
  LOWTIDE_TRY(cause);
  if (expectation_) {
    if (!expectation_->held() || expectation_->judged() == 0)
      return {StatusCode::LossMismatch, expectation_->report()};
    progress_->line("expect", expectation_->report());
    return Status::ok();
  }
  if (means_.loss && !std::isfinite(*means_.loss))
    return {StatusCode::NonFinite, "the mean of the losses is not finite"};
  return Status::ok();
}
