//===- LossScaleState.h - what loss scaling does to steps ------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_LOSSSCALESTATE_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_LOSSSCALESTATE_H

#include "Progress.h"

namespace lowtide::run {

/// The state of loss scaling, where a step has it.
class LossScaleState {
public:
  LossScaleState() = default;
  LossScaleState(const rt::Session &session, const std::string &entry);
  void read(StepReport &report) const;

  /// Whether the scale skipped the step of a report that was read: its gradients were not finite, and it made no
  /// update. A loss that is not finite may come with gradients that are. `isNewest`: no later step was begun, whose
  /// skips the state would count, too.
  bool takeSkip(const StepReport &report, bool isNewest);

private:
  std::optional<rt::Tensor> scale_, tracker_, skipped_;
  double seen_ = 0, unclaimed_ = 0; ///< skips that were counted so far, and of these what no step has claimed
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_LOSSSCALESTATE_H
