//===- Validation.cpp - the mean over a data set ---------------------------===//

#include "Validation.h"

#include "runtime/MappedFile.h"

#include <algorithm>
#include <chrono>
#include <cmath>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

static const char *const weightName = "loss_weight";

std::optional<double> EvaluationReport::find(const std::string &name) const {
  if (name == "loss")
    return loss;
  for (const auto &[metric, value] : metrics)
    if (metric == name)
      return value;
  return std::nullopt;
}

std::string EvaluationReport::text(const std::string &prefix) const {
  std::string all;
  auto add = [&](const std::string &name, double value) {
    char number[48];
    std::snprintf(number, sizeof number, " %.6g", std::isnan(value) ? std::fabs(value) : value);
    all += (all.empty() ? "" : "  ") + prefix + name + number;
  };
  if (loss)
    add("loss", *loss);
  for (const auto &[name, value] : metrics)
    add(name, value);
  return all;
}

Expected<std::unique_ptr<Validation>> Validation::create(Dataset dataset, Session &session, const std::string &entry,
                                                         const std::string &metrics, std::vector<std::string> &notes) {
  std::unique_ptr<Validation> made(new Validation(session, entry));
  made->dataset_ = std::move(dataset);
  if (!session.artifact().entry(entry)) {
    std::string names;
    for (const plan::Entry &other : session.plan().entries())
      names += (names.empty() ? "" : ", ") + printable(other.name());
    return Status(StatusCode::Usage, "no entry '" + printable(entry) + "' to evaluate with; the artifact has: " +
                                         names + "; compile with --entries=train,eval");
  }
  for (const Tensor &tensor : session.tensors(entry, plan::Binding::METRIC)) {
    made->hasWeight_ |= tensor.binding->name() == weightName;
    if (made->lossName_.empty() && tensor.binding->name() != weightName)
      made->lossName_ = tensor.binding->name();
  }
  // An output of that name may be losses of samples.
  if (session.metric(entry, "loss"))
    made->lossName_ = "loss";
  Expected<std::vector<Metric>> parsed = Metric::parse(metrics, session, entry);
  if (!parsed)
    return parsed.takeStatus();
  made->metrics_ = std::move(*parsed);
  if (made->dataset_.stream)
    return Status(StatusCode::Usage, "an evaluation counts rows, and a program (pipe:) writes batches: give files");
  Expected<Feeder> feeder = Feeder::create(made->dataset_, session, entry, std::nullopt, notes,
                                           made->hasWeight_ ? Feeder::Least::OneRow : Feeder::Least::OneBatch);
  if (!feeder)
    return feeder.takeStatus();
  made->whole_.emplace(std::move(*feeder));
  LOWTIDE_TRY(made->addRest(notes));
  return made;
}

Status Validation::addRest(std::vector<std::string> &notes) {
  const int64_t left = whole_->rows() % whole_->batch();
  if (left == 0)
    return Status::ok();
  const int64_t first = whole_->rows() - left;
  for (const plan::Entry &other : session_.plan().entries())
    if (other.name().rfind(entry_ + "_last", 0) == 0 && other.batch() == left) {
      std::vector<std::string> known; // the whole batch's feeder has said it
      lastEntry_ = other.name();
      Expected<Feeder> feeder = Feeder::create(dataset_, session_, lastEntry_, std::nullopt, known);
      if (!feeder)
        return feeder.takeStatus();
      last_.emplace(std::move(*feeder));
      rest_ = {{&lastEntry_, &*last_, first, left, /*again=*/false}};
      return Status::ok();
    }
  if (!hasWeight_) {
    leftOut_ = left;
    notes.push_back("the last " + std::to_string(left) + " of " + std::to_string(whole_->rows()) +
                    " rows fill no batch of " + std::to_string(whole_->batch()) + " and are left out: entry '" +
                    printable(entry_) + "' is not known to evaluate samples apart; compile with --last-batch=" +
                    std::to_string(left) + " to have them evaluated");
    return Status::ok();
  }
  for (int64_t done = 0; done < left;) {
    int64_t piece = left - done;
    while (whole_->batch() % piece)
      --piece;
    rest_.push_back({&entry_, &*whole_, first + done, piece, /*again=*/true});
    done += piece;
  }
  return Status::ok();
}

Validation::Window Validation::window(int64_t index) const {
  const int64_t whole = whole_->stepsPerEpoch();
  if (whole_->rows() == 0)
    return {&entry_, &*whole_, index, whole_->batch(), false};
  return index < whole ? Window{&entry_, &*whole_, index * whole_->batch(), whole_->batch(), false}
                       : rest_[static_cast<size_t>(index - whole)];
}

Expected<Validation::Window> Validation::prepare(int64_t index) const {
  if (batches() && index >= batches())
    return Status(StatusCode::Internal, "there is no batch " + std::to_string(index));
  const Window now = window(index);
  // No number of the training's: an evaluation is the same after any step.
  LOWTIDE_TRY(session_.writeScalars(*now.entry, {.lr = 0, .step = 0, .seed = 0, .row = now.first}));
  LOWTIDE_TRY(now.again ? now.feeder->feedAgain(now.first, now.rows) : now.feeder->feedRows(index, 0, now.first));
  if (std::string path = MappedFile::firstNotWhole(); !path.empty())
    return ioError("became shorter while it was read", path);
  return now;
}

void Validation::begin() {
  lossSum_ = weightSum_ = seconds_ = 0;
  evaluated_ = 0;
  notFinite_.reset();
  for (Metric &metric : metrics_)
    metric.clear();
}

Expected<double> Validation::evaluate(int64_t index, bool wantsOutputs) {
  const auto start = std::chrono::steady_clock::now();
  Expected<Window> prepared = prepare(index);
  if (!prepared)
    return prepared.takeStatus();
  const Window now = *prepared;
  LOWTIDE_TRY(session_.step(*now.entry));
  LOWTIDE_TRY(session_.settle());
  double loss = NAN, weight = static_cast<double>(now.rows);
  if (!lossName_.empty()) {
    Expected<double> found = session_.metric(*now.entry, lossName_);
    if (!found)
      return found.takeStatus();
    loss = *found;
    // Of a batch that holds its rows several times, what is theirs.
    if (Expected<double> stated = session_.metric(*now.entry, weightName))
      weight = *stated * static_cast<double>(now.rows) / static_cast<double>(now.feeder->batch());
  }
  countsLast_ = weight != 0;
  // A batch without a label that counts has no mean, and no part in one.
  if (weight != 0) {
    lossSum_ += loss * weight;
    weightSum_ += weight;
    if (!lossName_.empty() && !std::isfinite(loss) && !notFinite_)
      notFinite_ = index;
  }
  const bool reads =
      wantsOutputs || std::any_of(metrics_.begin(), metrics_.end(), [](const Metric &m) { return !m.isPerplexity(); });
  if (reads) {
    LOWTIDE_TRY(session_.download(*now.entry));
    const plan::Entry &entry = *session_.artifact().entry(*now.entry);
    for (Metric &metric : metrics_)
      metric.add(session_, entry, now.rows);
  }
  evaluated_ += now.rows;
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return loss;
}

EvaluationReport Validation::report() const {
  EvaluationReport report;
  report.rows = evaluated_;
  report.leftOut = whole_->rows() ? whole_->rows() - evaluated_ : 0;
  report.seconds = seconds_;
  report.notFinite = notFinite_;
  const double mean = weightSum_ != 0 ? lossSum_ / weightSum_ : NAN;
  if (!lossName_.empty() && evaluated_)
    report.loss = mean;
  for (const Metric &metric : metrics_)
    report.metrics.emplace_back(metric.name(), metric.value(mean));
  return report;
}

Expected<std::optional<EvaluationReport>> Validation::evaluateAll(const std::function<bool()> &isStopped) {
  begin();
  for (int64_t i = 0; i < batches(); ++i) {
    if (isStopped())
      return std::optional<EvaluationReport>();
    if (Expected<double> loss = evaluate(i); !loss)
      return loss.takeStatus();
  }
  return std::optional(report());
}
