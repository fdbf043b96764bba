//===- Summary.h - a run in figures ----------------------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_SUMMARY_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_SUMMARY_H

#include "Expectation.h"
#include "Options.h"
#include "Progress.h"

#include "runtime/Session.h"

#include <vector>

namespace lowtide::run {

/// Collects losses and times; writes --summary=FILE.
class Summary {
public:
  Summary(const rt::Session &session, const Options &options) : session_(session), options_(options) {}

  void add(const StepReport &step);
  /// The means of a run that trains nothing.
  void setEvaluation(const EvaluationReport &means) { evaluations_ = {{0, means}}; }
  /// Nothing without --summary. `expectation` may be null.
  rt::Status write(const Expectation *expectation) const;
  /// The last line of a run.
  std::string text() const;

  /// Of a step; 0 before the first.
  double medianSeconds() const;

private:
  std::string describeMoves() const;
  const rt::Session &session_;
  const Options &options_;
  std::vector<double> losses_, gradNorms_, seconds_;
  std::optional<double> dataSeconds_;                             ///< spent on waiting for batches, in all steps
  std::vector<std::pair<int64_t, EvaluationReport>> evaluations_; ///< and the step after which each was made
  rt::Transfers transfers_;                                       ///< of these steps, not of evaluations between them
  std::optional<double> skipped_;                                 ///< steps without an update, after the last step
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_SUMMARY_H
