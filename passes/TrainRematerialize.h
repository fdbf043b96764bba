//===- TrainRematerialize.h - makes a step fit a budget ---------*- C++ -*-===//
//
// The pass `train-rematerialize` for who asks for many budgets of one step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Passes.h"
#include "lowtide/Solve/SolvedSteps.h"

namespace lowtide {

/// Schedules as `train-rematerialize` looks for them.
std::shared_ptr<solve::SolvedSteps> makeSolvedSteps();
/// `train-rematerialize` that finds in `solved` what was searched before, and adds what it searches.
std::unique_ptr<mlir::Pass> createTrainRematerialize(const TrainRematerializeOptions &options,
                                                     std::shared_ptr<solve::SolvedSteps> solved);

} // namespace lowtide
