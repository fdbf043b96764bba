//===- PlanProof.h - what the runtime says of a plan ------------*- C++ -*-===//
//
// The runtime's own verifier, as the compiler asks it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/Plan/Plan.h"

namespace lowtide {

/// Serializes the plan and asks the verifier that runs at every load; it shares nothing with the passes that made the
/// plan. Fails, with a diagnostic, if the plan cannot be proved or declares another peak than the verifier counts.
llvm::LogicalResult provePlan(plan::ModuleOp module);

/// Serializes the plan and lets the verifier count: the peak of live bytes of every program, in order. Fails, with a
/// diagnostic, if the plan cannot be proved.
llvm::FailureOr<llvm::SmallVector<uint64_t>> countLiveBytes(plan::ModuleOp module);

/// Parts of a launch's scratch: one for each task that may be at work at once.
uint64_t countScratchParts(int64_t extent, int64_t grain, uint32_t threadsMax);

} // namespace lowtide
