//===- Lanes.h - what a schedule with loads does over time ------*- C++ -*-===//
#pragma once

#include "lowtide/Solve/Portfolio/Offload.h"

namespace lowtide::solve {

/// When values that are loaded leave, come back and are last needed there: positions in a schedule.
struct Stay {
  uint32_t value, begin, end, memory;
};

/// Values that a schedule loads, from where they are made to their last load.
std::vector<Stay> listStays(const StepGraph &graph, const Schedule &schedule);

/// What those of the stays take that are in a memory.
uint64_t countRoom(const StepGraph &graph, std::span<const Stay> stays, uint32_t memory);

/// Seconds of every operation of the schedule; a loop's are those of its rounds as planned.
std::vector<double> listSeconds(const StepGraph &graph, const FittedSchedule &plan);

/// As `simulateLanes` counts them.
double countLaneSeconds(const StepGraph &graph, const FittedSchedule &plan, uint64_t deviceBytes);

} // namespace lowtide::solve
