//===- Diagnosis.h - why the loss of a step is not finite ------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_DIAGNOSIS_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_DIAGNOSIS_H

#include "Epochs.h"

#include "runtime/Session.h"

#include <functional>
#include <string>

namespace lowtide::run {

/// Looks for the cause: a label or index that is out of range, then an input that is not finite, then the first
/// instruction with a value that is not finite. It tries steps: parameters and state are others afterwards.
class Diagnosis {
public:
  struct Run {
    rt::Session &session;
    std::string loss; ///< name of the metric
    int64_t firstStep = 0;
    /// Fills the batch arrays and scalars of a step.
    std::function<rt::Expected<Epochs::Step>(int64_t step)> prepare;
    /// Any parameters that are finite: for what is wrong with the data.
    std::function<rt::Status()> startAnew;
    /// Parameters and state before `firstStep`.
    std::function<rt::Status()> goBack;
    double secondsPerStep = 0;
  };
  explicit Diagnosis(Run run) : run_(std::move(run)) {}

  /// What made step `step` fail, as a clause or two; empty if nothing was found.
  std::string causeOf(int64_t step);

private:
  using Bytes = std::vector<uint8_t>;

  rt::Expected<Epochs::Step> feed(int64_t step);
  rt::Expected<double> lossOf(const std::string &entry);
  bool gives(const std::string &entry, const std::vector<Bytes> &values, bool &isFinite);
  std::string place(const Epochs::Step &at, const rt::Tensor &tensor, uint64_t element) const;
  std::string findInput(int64_t step);
  std::string findIndex(int64_t step);
  std::string explainIndex(const Epochs::Step &at, size_t number, std::vector<Bytes> neutral, const Bytes &given);
  std::string findInstruction(int64_t step);

  Run run_;
  std::vector<rt::Tensor> batch_; ///< arrays of the step that is looked at
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_DIAGNOSIS_H
