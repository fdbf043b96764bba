//===- PlanRemarks.h - what remarks say of a plan ---------------*- C++ -*-===//
#pragma once

#include "Offload.h"

namespace lowtide {

/// Figures of a plan next to those of another one.
std::string compareFigures(const solve::FittedSchedule &before, const solve::FittedSchedule &after);
/// Adds what moves to another memory and back.
void noteMoves(mlir::InFlightDiagnostic &remark, const PosedEntry &entry, const solve::FittedSchedule &plan);
/// Adds a note for each loop in which something runs again.
void noteLoops(mlir::InFlightDiagnostic &remark, const StepProblem &problem, const solve::FittedSchedule &before,
               const solve::FittedSchedule &after);

} // namespace lowtide
