//===- TrainRematerialize.h - makes a step fit a budget ---------*- C++ -*-===//
//
// The pass `train-rematerialize` for who asks for many budgets of one step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Passes.h"
#include "lowtide/Solve/Portfolio/SolvedSteps.h"

namespace lowtide {

/// How `train-rematerialize` looks for schedules, without some methods: names with commas.
solve::FitOptions getPlanSearch(llvm::StringRef withoutMethods);
/// Schedules as it looks for them.
std::shared_ptr<solve::SolvedSteps> makeSolvedSteps(llvm::StringRef withoutMethods = {});
/// `train-rematerialize` that finds in `solved` what was searched before, and adds what it searches. Where nothing
/// reads a refusal, it has no figures, and a step whose lower bound is above the budget is not searched.
std::unique_ptr<mlir::Pass> createTrainRematerialize(const TrainRematerializeOptions &options,
                                                     std::shared_ptr<solve::SolvedSteps> solved,
                                                     bool isRefusalRead = true);

} // namespace lowtide
