//===- Schedule.h - the learning rate of a step ----------------------------===//
#ifndef LOWTIDE_RUNTIME_SCHEDULE_H
#define LOWTIDE_RUNTIME_SCHEDULE_H

#include "plan.pb.h"

#include <cstdint>

namespace lowtide::rt {

/// The learning rate of step `step` (counted from 0), as torch.optim.lr_scheduler has it in closed form, and for
/// INVERSE_SQRT and WSD as transformers' get_inverse_sqrt_schedule and get_wsd_schedule have it. Other kinds may start
/// with a warm-up, lr · (step + 1) / warmup_steps. After its end a schedule keeps its last rate. A file that was not
/// written by the compiler may hold anything: the result is then some number, maybe not a finite one.
double learningRate(const plan::Schedule &schedule, int64_t step);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_SCHEDULE_H
