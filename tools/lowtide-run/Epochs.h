//===- Epochs.h - which rows and which entry a step takes --------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_EPOCHS_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_EPOCHS_H

#include "runtime/data/Feeder.h"

#include <algorithm>
#include <optional>
#include <string>

namespace lowtide::run {

/// Which entry a step runs, on which rows: whole batches, and after the last of an epoch what is left, if the artifact
/// has an entry `<entry>_last` of just so many samples.
class Epochs {
public:
  /// Matches the entry's batch arrays with the data; `notes` gets what is converted or left out.
  static rt::Expected<Epochs> create(const rt::Dataset &dataset, const rt::Session &session, const std::string &entry,
                                     std::optional<uint64_t> shuffleSeed, std::vector<std::string> &notes);

  struct Step {
    const std::string *entry;
    const rt::Feeder *feeder;
    int64_t epoch, firstRow; ///< of the epoch's rows
  };
  Step at(int64_t step) const;

  /// Steps until the data repeat; 0: they have no end.
  int64_t perEpoch() const { return whole_->stepsPerEpoch() + (last_ ? 1 : 0); }
  /// Samples in the data; 0: they have no end.
  int64_t rows() const { return whole_->rows(); }
  bool hasLast() const { return last_.has_value(); }
  /// Bytes of a slot that holds any batch.
  uint64_t batchBytes() const { return std::max(whole_->batchBytes(), last_ ? last_->batchBytes() : 0); }

private:
  std::string entry_, lastEntry_;
  int64_t batch_ = 1;
  std::optional<rt::Feeder> whole_;
  std::optional<rt::Feeder> last_; ///< none: what is left of the data is left out
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_EPOCHS_H
