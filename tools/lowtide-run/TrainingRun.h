//===- TrainingRun.h - one run of an artifact --------------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_TRAININGRUN_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_TRAININGRUN_H

#include "Epochs.h"
#include "Expectation.h"
#include "LossScaleState.h"
#include "Options.h"
#include "Progress.h"
#include "Summary.h"
#include "TrainingEvaluation.h"
#include "Undo.h"

#include "runtime/Session.h"
#include "runtime/checkpoint/Averages.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/RunFolder.h"
#include "runtime/data/BatchesAhead.h"

#include <deque>
#include <functional>

namespace lowtide::run {

/// load → bind → (resume) → for each step: scalars, batch, step, loss → (save, export) → a summary.
class TrainingRun {
public:
  explicit TrainingRun(const Options &options);
  rt::Status run();
  /// The signal that ended the run before its last step; 0: none did.
  int stoppedBy() const { return stoppedBy_; }

private:
  using Clock = std::chrono::steady_clock;
  /// A step whose numbers have not come back yet.
  struct UnderWay {
    StepReport report;
    const std::string *entry;
    Clock::time_point start;
  };

  rt::Status load();
  rt::Status bind();
  rt::Status openFolder();
  rt::Status resume();
  rt::Status openData();
  rt::Status dumpGradients();
  rt::Status openEvaluation();
  /// Evaluates after a step, if that is due.
  rt::Status evaluate(StepReport &report);
  /// With --ema, with averages in the place of the weights.
  rt::Status withAverages(const std::function<rt::Status()> &act);
  rt::Status openExpectation();
  rt::Status countSteps();
  LogStart logStart() const;
  rt::Status openProgress();

  rt::Status runSteps();
  rt::Status stepThrough();
  /// Starts the threads that prepare batches, if there are batches and the machine gives threads.
  void feedAhead();
  /// False: a signal came while the batch was waited for, and nothing was begun.
  rt::Expected<bool> beginStep(int64_t step);
  /// Fills the batch arrays and scalars of a step.
  rt::Expected<Epochs::Step> prepareStep(int64_t step);
  /// Writes the numbers of a step.
  rt::Status writeScalars(int64_t step, const Epochs::Step &at);
  /// Writes the batch of a step, or a share of it: into a slot, or (null) where the step reads it.
  rt::Status feed(int64_t step, uint8_t *slot = nullptr, rt::Share share = {}) const;
  /// Waits for the oldest step under way, and says how it went.
  rt::Status finishOldest();
  /// Saves the steps that are done. A failure ends no run: `isLast` makes it the run's verdict.
  void save(StepReport &report, bool isLast);
  bool saves() const { return folder_ != nullptr; }
  /// Takes back a step that is not finite, where --on-nonfinite asks for that.
  rt::Status undo(StepReport &report, bool isSkipped);
  /// What is wrong with the run as a whole, once its steps are done.
  void judge();
  /// Puts the cause of what is not finite into the verdict; parameters and state are others afterwards.
  void explainVerdict();
  std::string findCause();
  /// Whether a checkpoint is due after `step` steps.
  bool isDue(int64_t step) const { return options_.checkpointEvery && step % options_.checkpointEvery == 0; }
  rt::Status checkResults() const;
  rt::Status writeResults();

  const Options &options_;
  config::Log log_;
  std::unique_ptr<rt::Session> session_;
  const plan::Entry *entry_ = nullptr;
  std::unique_ptr<rt::RunFolder> folder_; ///< locked until the run ends; null: nothing is saved
  std::string lossName_;                  ///< empty: the entry has no metric
  bool hasNorm_ = false, readsBatch_ = false;

  /// About the run as it was opened, for its first lines.
  std::vector<std::string> notes_;
  rt::RunState state_;
  rt::Dataset dataset_;
  std::optional<Epochs> epochs_;
  std::unique_ptr<rt::BatchesAhead> ahead_;        ///< null: batches are read between steps
  std::unique_ptr<TrainingEvaluation> evaluation_; ///< null: --eval-data was not given
  std::optional<Expectation> expectation_;
  std::unique_ptr<Progress> progress_;
  std::optional<Summary> summary_;
  LossScaleState lossScale_;
  double skippedBefore_ = 0;             ///< by the state of loss scaling, before this run
  std::optional<rt::Averages> averages_; ///< for --ema and --export-ema
  std::optional<Undo> undo_;             ///< for --on-nonfinite=skip
  int64_t undone_ = 0;                   ///< steps that were

  int64_t firstStep_ = 0, lastStep_ = 0;
  double dataSeconds_ = 0; ///< that `ahead_` had waited after the last step
  /// Steps of the run when it was saved last; -1: it was not.
  int64_t savedStep_ = -1;
  bool ends_ = false; ///< before its last step: it is not finite
  bool lastIsFinite_ = true;
  int64_t notFiniteStep_ = -1;    ///< the first with such a loss, from 0; -1: there is none
  int64_t firstSkippedStep_ = -1; ///< the first that was undone, or that loss scaling skipped
  rt::BindOptions bind_;
  std::string resumedFrom_;
  int stoppedBy_ = 0;
  /// Steps that a device may still be at; their numbers come back in order.
  std::deque<UnderWay> underWay_;
  Clock::time_point finished_;
  /// What is wrong with a run that goes on to its end.
  rt::Status verdict_;
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_TRAININGRUN_H
