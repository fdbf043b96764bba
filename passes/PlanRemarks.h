//===- PlanRemarks.h - what remarks say of a plan ---------------*- C++ -*-===//
#pragma once

#include "Offload.h"

namespace lowtide {

/// Figures of a plan next to those of another one.
std::string compareFigures(const solve::FittedSchedule &before, const solve::FittedSchedule &after);
/// Adds what moves to another memory and back.
void noteMoves(mlir::InFlightDiagnostic &remark, const PosedEntry &entry, const solve::FittedSchedule &plan,
               uint64_t transientBytes);
/// Adds a note for each loop in which something runs again.
void noteLoops(mlir::InFlightDiagnostic &remark, const StepProblem &problem, const solve::FittedSchedule &before,
               const solve::FittedSchedule &after);
/// Remarks how much less any other plan could recompute in `transientBytes` of the arena, which are `bytes` all told.
void remarkBound(PosedEntry &entry, const solve::FittedSchedule &chosen, uint64_t transientBytes, uint64_t bytes);
/// The same of what any other plan takes where values may wait in another memory: seconds that it takes at least.
double remarkLaneBound(PosedEntry &entry, const solve::FittedSchedule &chosen, uint64_t transientBytes, uint64_t bytes);

} // namespace lowtide
