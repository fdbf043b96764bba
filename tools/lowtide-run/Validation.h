//===- Validation.h - the mean over a data set -----------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_VALIDATION_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_VALIDATION_H

#include "Metrics.h"

#include "runtime/data/Feeder.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lowtide::run {

/// Means over the rows of a data set.
struct EvaluationReport {
  int64_t rows = 0;    ///< that were evaluated
  int64_t leftOut = 0; ///< that fill no batch
  std::optional<double> loss;
  std::vector<std::pair<std::string, double>> metrics;
  double seconds = 0;
  std::optional<int64_t> notFinite; ///< the first batch whose loss counts and is not finite

  /// "loss 0.4312  accuracy 0.91", with `prefix` before each name.
  std::string text(const std::string &prefix = {}) const;
  /// The loss, or a metric by name.
  std::optional<double> find(const std::string &name) const;
};

/// Evaluates an entry on every row of a data set, from row 0 on, in order, independent of any training step.
///
/// Rows beyond the last whole batch take the entry `<entry>_last…` of just so many samples, if there is one. Else,
/// where samples do not meet (the entry has the metric `loss_weight`), they are evaluated in batches that hold them
/// several times: pieces whose sizes divide a batch. Else they are left out.
///
/// The loss is the mean of the batches' losses by `loss_weight` (labels that count), else by rows.
class Validation {
public:
  /// A batch: `rows` rows from row `first`; `again`: repeated until the batch is full.
  struct Window {
    const std::string *entry;
    const rt::Feeder *feeder;
    int64_t first, rows;
    bool again;
  };

  /// Matches data, entry and metrics. `notes` gets what is converted, and which rows are left out. The session must
  /// outlive it.
  static rt::Expected<std::unique_ptr<Validation>> create(rt::Dataset dataset, rt::Session &session,
                                                          const std::string &entry, const std::string &metrics,
                                                          std::vector<std::string> &notes);

  /// Batches of the whole set; 0: synthetic data have no end.
  int64_t batches() const { return whole_->stepsPerEpoch() + static_cast<int64_t>(rest_.size()); }
  int64_t rows() const { return whole_->rows(); }
  int64_t batch() const { return whole_->batch(); }
  int64_t leftOut() const { return leftOut_; }
  bool hasLoss() const { return !lossName_.empty(); }
  const std::string &lossName() const { return lossName_; }
  const std::vector<Metric> &metrics() const { return metrics_; }
  Window window(int64_t index) const;

  /// Fills batch arrays and scalars for a batch.
  rt::Expected<Window> prepare(int64_t index) const;
  /// Forgets what was evaluated.
  void begin();
  /// Evaluates batch `index` and waits for it; returns its loss (NaN without one). `wantsOutputs`: the host sees them
  /// then.
  rt::Expected<double> evaluate(int64_t index, bool wantsOutputs = false);
  /// Whether the batch that was evaluated last had anything that counts; its loss is no number otherwise.
  bool countsLast() const { return countsLast_; }
  /// Of what was evaluated since `begin`.
  EvaluationReport report() const;
  /// All batches; nothing: `isStopped` was true before the last.
  rt::Expected<std::optional<EvaluationReport>> evaluateAll(const std::function<bool()> &isStopped);

private:
  Validation(rt::Session &session, std::string entry) : session_(session), entry_(std::move(entry)) {}
  rt::Status addRest(std::vector<std::string> &notes);

  rt::Session &session_;
  const std::string entry_;
  std::string lastEntry_;
  rt::Dataset dataset_;
  std::vector<Metric> metrics_;
  std::string lossName_; ///< empty: the entry has no loss
  bool hasWeight_ = false;
  std::optional<rt::Feeder> whole_, last_;
  std::vector<Window> rest_;
  int64_t leftOut_ = 0;

  double lossSum_ = 0, weightSum_ = 0, seconds_ = 0;
  int64_t evaluated_ = 0;
  std::optional<int64_t> notFinite_;
  bool countsLast_ = false;
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_VALIDATION_H
