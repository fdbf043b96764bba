//===- Schedule.h - the learning rate of a step ----------------------------===//
#ifndef LOWTIDE_RUNTIME_SCHEDULE_H
#define LOWTIDE_RUNTIME_SCHEDULE_H

#include "plan.pb.h"

#include <cstdint>

namespace lowtide::rt {

/// The learning rate of step `step` (counted from 0). During warm-up lr · (step + 1) / warmup_steps; then constant, or
/// falling to min_lr at total_steps on a line or half a cosine, and min_lr from there on.
double learningRate(const plan::Schedule &schedule, int64_t step);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_SCHEDULE_H
