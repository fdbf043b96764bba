//===- Progress.h - what a run shows and writes while it goes --------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_PROGRESS_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_PROGRESS_H

#include "Options.h"
#include "StepLog.h"
#include "TensorBoard.h"
#include "Validation.h"

#include "runtime/Session.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace lowtide::run {

/// One finished step.
struct StepReport {
  int64_t step = 0, lastStep = 0; ///< counted from 1; the last one of this run
  double loss = 0, lr = 0;
  bool hasLoss = true; ///< an entry may compute outputs alone
  std::optional<double> gradNorm;
  /// After this step: loss scale, finite steps since it last changed, steps without an update so far.
  std::optional<double> lossScale, growthTracker, skipped;
  double seconds = 0;
  /// Of these, spent on waiting for the batch; nullopt: the step reads none.
  std::optional<double> dataSeconds;
  /// By copies to other memories and back; nothing where the step has none.
  std::optional<rt::Transfers> transfers;
  std::string checkpoint;                     ///< written after this step, or empty
  std::optional<EvaluationReport> evaluation; ///< made after this step
  bool isEvaluation = false;                  ///< a batch that was evaluated: there is no learning rate
};

/// "23.9 MiB".
std::string bytesText(uint64_t bytes);

/// The progress line (rewritten in place on a terminal, at most ten times a second), --log-jsonl, TensorBoard.
class Progress {
public:
  /// Opens the log files. `itemsPerStep`: samples or tokens, named by `itemName`.
  static rt::Expected<std::unique_ptr<Progress>> create(const Options &options, const rt::Session &session,
                                                        double itemsPerStep, const char *itemName,
                                                        const LogStart &start);
  ~Progress();

  /// A log that cannot grow is given up with an error line; `failure` tells it.
  void report(const StepReport &step);
  /// The means over a data set, at the end of a run that trains nothing.
  void reportEvaluation(const EvaluationReport &means);
  /// What became of the logs.
  const rt::Status &failure() const { return failure_; }
  /// A line that stays: notes, results.
  void line(const char *kind, const std::string &text);
  /// Ends a line that is being rewritten.
  void endLine();

private:
  Progress(const Options &options, const rt::Session &session, double itemsPerStep, const char *itemName);
  void show(const StepReport &step);
  rt::Status openJsonl(const LogStart &start);
  void writeJsonl(const StepLog::Json &line);
  StepLog::Json lineOf(const StepReport &step) const;
  rt::Status logBoard(const StepReport &step);
  rt::Status logMeans(int64_t step, const EvaluationReport &means);
  /// Notes the failure of a log, which gets nothing more.
  void giveUp(rt::Status failure);

  const Options &options_;
  const rt::Session &session_;
  double itemsPerStep_;
  const char *itemName_;
  bool terminal_, open_ = false;
  std::chrono::steady_clock::time_point lastShown_{};
  std::unique_ptr<StepLog> jsonl_;
  std::unique_ptr<TensorBoard> board_;
  rt::Status failure_;
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_PROGRESS_H
