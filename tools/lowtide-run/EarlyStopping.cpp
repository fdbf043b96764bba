//===- EarlyStopping.cpp - which evaluation was the best -------------------===//

#include "EarlyStopping.h"

#include <cmath>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

Expected<EarlyStopping> EarlyStopping::create(const std::string &measure, int64_t patience,
                                              const Validation &validation) {
  EarlyStopping made;
  const size_t bracket = measure.rfind(')'); // names of arrays may hold colons
  const size_t colon = measure.find(':', bracket == std::string::npos ? 0 : bracket);
  made.name_ = measure.substr(0, colon);
  made.measure_ = made.name_;
  made.patience_ = patience;
  std::string names = "loss";
  bool isKnown = made.name_ == "loss";
  for (const Metric &metric : validation.metrics()) {
    names += ", " + metric.name();
    if (metric.name() == made.name_)
      isKnown = true, made.grows_ = metric.growsBetter();
  }
  if (!isKnown)
    return Status(StatusCode::Usage, "--keep-best=" + printable(measure) + ": the evaluation has " + names +
                                         "; --eval-metrics adds others");
  if (made.name_ == "loss" && !validation.hasLoss())
    return Status(StatusCode::Usage, "--keep-best=loss: the entry that is evaluated has no loss");
  if (colon != std::string::npos) {
    const std::string way = measure.substr(colon + 1);
    if (way != "max" && way != "min")
      return Status(StatusCode::Usage, "--keep-best=" + printable(measure) + ": after ':' stands max or min");
    // Whose best is another evaluation.
    if (made.grows_ != (way == "max"))
      made.measure_ = made.name_ + ":" + way;
    made.grows_ = way == "max";
  }
  return made;
}

bool EarlyStopping::resume(const BestEvaluation &state) {
  if (state.measure != measure_)
    return false;
  state_ = state;
  return true;
}

bool EarlyStopping::add(int64_t step, const EvaluationReport &report) {
  const double value = report.find(name_).value_or(NAN);
  if (!std::isnan(value) &&
      (!state_ || std::isnan(state_->value) || (grows_ ? value > state_->value : value < state_->value))) {
    state_ = BestEvaluation{measure_, step, value, 0};
    return true;
  }
  if (!state_)
    state_ = BestEvaluation{measure_, step, NAN, 0};
  ++state_->waited;
  return false;
}

std::string EarlyStopping::text() const {
  char value[48];
  std::snprintf(value, sizeof value, " %.6g", std::isnan(state_->value) ? std::fabs(state_->value) : state_->value);
  return name_ + value + " after step " + std::to_string(state_->step);
}
