//===- Metrics.h - how good outputs are, on the host -----------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_METRICS_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_METRICS_H

#include "runtime/Session.h"

#include <string>
#include <vector>

namespace lowtide::run {

/// One of --eval-metrics, over all rows of a data set so far.
///
/// accuracy, top<K>: of integer labels (a batch array) among scores (an output with one dimension more: the last, or
/// the one after the samples). mse, mae: of an output and a batch array of as many numbers. perplexity: of the loss.
class Metric {
public:
  /// `text`: "accuracy,top5(logits, labels, ignore_index=0)". Names that are left out are found by type and shape in
  /// `entry`; says what the entry has where there is not exactly one that fits.
  static rt::Expected<std::vector<Metric>> parse(const std::string &text, const rt::Session &session,
                                                 const std::string &entry);

  /// "accuracy": as it was written up to the bracket, or with its arrays where several metrics are called so.
  const std::string &name() const { return name_; }
  bool isPerplexity() const { return kind_ == Kind::Perplexity; }
  /// Whether a larger value is a better one.
  bool growsBetter() const { return kind_ == Kind::TopK; }

  void clear() { sum_ = 0, count_ = 0; }
  /// Takes the first `rows` samples of a batch: outputs and batch arrays of `entry` as the host sees them now.
  /// Allocates nothing.
  void add(const rt::Session &session, const plan::Entry &entry, int64_t rows);
  /// The mean; NaN if nothing was counted. Of perplexity: exp(meanLoss).
  double value(double meanLoss) const;

private:
  enum class Kind { TopK, Squared, Absolute, Perplexity };
  struct Call;
  rt::Status resolve(const Call &call, const rt::Session &session, const std::string &entry);
  /// "accuracy(logits, labels, shift=1)".
  std::string str() const;
  bool fits(const plan::Binding &output, const plan::Binding &target) const;
  void addLabels(const rt::Tensor &scores, const rt::Tensor &labels, int64_t rows);
  void addErrors(const rt::Tensor &output, const rt::Tensor &target, int64_t rows);

  Kind kind_ = Kind::TopK;
  int64_t k_ = 1, shift_ = 0;
  std::optional<int64_t> ignored_;
  std::string name_, output_, target_;
  double sum_ = 0;
  int64_t count_ = 0;
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_METRICS_H
