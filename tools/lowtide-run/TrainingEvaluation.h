//===- TrainingEvaluation.h - validation while a run trains ----------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_TRAININGEVALUATION_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_TRAININGEVALUATION_H

#include "EarlyStopping.h"
#include "Options.h"
#include "Progress.h"

namespace lowtide::run {

/// --eval-data: evaluates after every --eval-every steps and after the last; follows the best; knows when patience is
/// over. Nothing of it changes the training.
class TrainingEvaluation {
public:
  /// `stepsPerEpoch` of the training: how often is evaluated where --eval-every is not given.
  static rt::Expected<std::unique_ptr<TrainingEvaluation>>
  create(const Options &options, rt::Session &session, int64_t stepsPerEpoch, std::vector<std::string> &notes);

  bool isDue(int64_t step, int64_t lastStep) const { return step == lastStep || (every_ && step % every_ == 0); }
  /// Evaluates after a step and puts the means into its report.
  rt::Status evaluate(StepReport &report);

  /// Whether the last evaluation was the best so far, and is to be kept.
  bool isBest() const { return isBest_; }
  /// Whether the run ends for want of a better evaluation.
  bool isOver() const { return stopping_ && stopping_->isOver(); }
  std::optional<EarlyStopping> &stopping() { return stopping_; }
  /// What to say of the last evaluation: once, of the first loss that is not finite, which rows had it.
  std::string takeNote() { return std::exchange(note_, {}); }
  /// "no better loss in 3 evaluations; the best: loss 0.43 after step 500".
  std::string overText() const;

private:
  std::unique_ptr<Validation> validation_;
  std::optional<EarlyStopping> stopping_;
  int64_t every_ = 0, patience_ = 0;
  bool isBest_ = false;
  std::string command_, note_; ///< `command_`: evaluates the same data alone; empty once it was said
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_TRAININGEVALUATION_H
