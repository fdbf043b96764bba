//===- Schedule.cpp - the learning rate of a step --------------------------===//

#include "runtime/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

double lowtide::rt::learningRate(const plan::Schedule &schedule, int64_t step) {
  if (step < schedule.warmup_steps())
    return schedule.lr() * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps());
  if (schedule.kind() == plan::Schedule::CONSTANT)
    return schedule.lr();
  double span = static_cast<double>(std::max<int64_t>(schedule.total_steps() - schedule.warmup_steps(), 1));
  double done = std::min(1.0, static_cast<double>(step - schedule.warmup_steps()) / span);
  double left = schedule.kind() == plan::Schedule::LINEAR ? 1 - done : (1 + std::cos(std::numbers::pi * done)) / 2;
  return schedule.min_lr() + (schedule.lr() - schedule.min_lr()) * left;
}
