//===- LossScaleState.cpp - what loss scaling does to steps ----------------===//

#include "LossScaleState.h"

#include "runtime/Element.h"

#include <cmath>
#include <utility>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

LossScaleState::LossScaleState(const Session &session, const std::string &entry) {
  for (auto [name, slot] : {std::pair("loss_scale", &scale_), std::pair("loss_scale.growth_tracker", &tracker_),
                            std::pair("loss_scale.skipped", &skipped_)})
    if (Expected<Tensor> found = session.tensor(entry, name))
      *slot = *found;
  StepReport before;
  read(before);
  seen_ = before.skipped.value_or(0);
}

void LossScaleState::read(StepReport &report) const {
  auto number = [](const std::optional<Tensor> &tensor) {
    return tensor && tensor->bring(HostAccess::Read).isOk()
               ? std::optional(loadElement(tensor->binding->dtype(), tensor->data))
               : std::nullopt;
  };
  report.lossScale = number(scale_), report.growthTracker = number(tracker_), report.skipped = number(skipped_);
}

bool LossScaleState::takeSkip(const StepReport &report, bool isNewest) {
  const double now = report.skipped.value_or(0);
  unclaimed_ += now - std::exchange(seen_, now);
  const bool isSkipped = unclaimed_ > 0;
  if (isSkipped && !std::isfinite(report.loss))
    --unclaimed_;
  if (isNewest)
    unclaimed_ = 0;
  return isSkipped;
}
