//===- StepForm.h - a form that a step may have -----------------*- C++ -*-===//
#pragma once

#include "lowtide/Pipeline.h"

namespace lowtide {

/// A form that a step may have under a budget, with the same bits. The default is its form without one.
struct StepForm {
  int64_t headChunks = 0;             ///< as `FitStageOptions` has it
  std::optional<int64_t> chunks = {}; ///< of the loss head with the most; nothing: as its rule parts it
  RecomputedSteps recomputedSteps = RecomputedSteps::None;
  unsigned loopBlocks = 0; ///< as `FitStageOptions` has it

  /// Sets these.
  void take(FitStageOptions &stage) const {
    stage.headChunks = headChunks;
    stage.recomputedSteps = recomputedSteps;
    stage.loopBlocks = loopBlocks;
  }
};

} // namespace lowtide
