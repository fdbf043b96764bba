//===- EvaluationRun.h - a run that trains nothing -------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_EVALUATIONRUN_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_EVALUATIONRUN_H

#include "Expectation.h"
#include "Options.h"
#include "Progress.h"
#include "Summary.h"
#include "Validation.h"

#include <functional>

namespace lowtide::run {

/// --entry=eval, --predict: every row of --data once, from row 0 on, whatever step the weights are of.
class EvaluationRun {
public:
  /// The session is bound, and holds the weights, which `weigh` puts there again; `notes`: what is to be said of that.
  EvaluationRun(const Options &options, rt::Session &session, std::function<rt::Status()> weigh,
                std::vector<std::string> notes)
      : options_(options), session_(session), weigh_(std::move(weigh)), notes_(std::move(notes)) {}
  rt::Status run();
  /// The signal that ended it before the last row; 0: none did.
  int stoppedBy() const { return stoppedBy_; }

private:
  rt::Status open();
  rt::Status evaluate();
  /// Why a batch's loss is not finite.
  rt::Status explain(int64_t batch);
  rt::Status writeResults();

  const Options &options_;
  rt::Session &session_;
  std::function<rt::Status()> weigh_;
  std::vector<std::string> notes_;
  const std::string entry_ = "eval";
  std::unique_ptr<Validation> validation_;
  std::optional<Expectation> expectation_;
  std::unique_ptr<Progress> progress_;
  std::optional<Summary> summary_;
  EvaluationReport means_;
  bool isCut_ = false; ///< a signal came before the last batch
  int stoppedBy_ = 0;
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_EVALUATIONRUN_H
