//===- EarlyStopping.h - which evaluation was the best ---------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_EARLYSTOPPING_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_EARLYSTOPPING_H

#include "Validation.h"

#include "runtime/checkpoint/RunState.h"

namespace lowtide::run {

/// Follows one number of the evaluations of a run: --keep-best=loss, accuracy:max, mse:min; --patience=N.
class EarlyStopping {
public:
  /// `measure`: the loss, or one of the evaluation's metrics, and which way is better where that is to be said.
  /// `patience`: evaluations without a better one after which the run ends; 0: it goes on.
  static rt::Expected<EarlyStopping> create(const std::string &measure, int64_t patience, const Validation &validation);

  /// Goes on from a saved state; one of another measure is left aside, and false returned.
  bool resume(const rt::BestEvaluation &state);
  const std::optional<rt::BestEvaluation> &state() const { return state_; }

  /// Takes the evaluation after `step` steps; whether it is the best so far. A value that is not a number is not
  /// better.
  bool add(int64_t step, const EvaluationReport &report);
  /// Whether there were as many evaluations without a better one as patience lasts.
  bool isOver() const { return patience_ && state_ && state_->waited >= patience_; }
  /// "loss 0.4312 after step 500".
  std::string text() const;

private:
  std::string name_;
  std::string measure_; ///< with the way, where it is not the usual one
  bool grows_ = false;  ///< larger is better
  int64_t patience_ = 0;
  std::optional<rt::BestEvaluation> state_;
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_EARLYSTOPPING_H
