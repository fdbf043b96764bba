//===- Schedule.cpp - the learning rate of a step --------------------------===//

#include "runtime/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace lowtide;
using plan::Schedule;

namespace {

/// 1 at the start (`done` = 0), 0 at the end (1).
double left(Schedule::Curve curve, double done) {
  if (curve == Schedule::LINEAR_CURVE)
    return 1 - done;
  if (curve == Schedule::ONE_MINUS_SQRT_CURVE)
    return 1 - std::sqrt(done);
  return (1 + std::cos(std::numbers::pi * done)) / 2;
}

double real(int64_t steps) { return static_cast<double>(steps); }

double inverseSqrt(const Schedule &schedule, int64_t step) {
  if (step < schedule.warmup_steps())
    return schedule.lr() * (real(step) / real(schedule.warmup_steps()));
  const double scale = real(std::max<int64_t>(schedule.timescale(), 1));
  return schedule.lr() * (1 / std::sqrt((real(step) + (scale - real(schedule.warmup_steps()))) / scale));
}

double warmUpStableDecay(const Schedule &schedule, int64_t step) {
  const double least = schedule.lr() == 0 ? 0 : schedule.min_lr() / schedule.lr();
  const int64_t decay = schedule.total_steps() - schedule.decay_steps();
  double factor = 1;
  if (step < schedule.warmup_steps())
    factor = real(step) / real(schedule.warmup_steps()) * (1 - least) + least;
  else if (step >= schedule.total_steps())
    factor = least;
  else if (step >= decay)
    factor = left(schedule.curve(), real(step - decay) / real(schedule.decay_steps())) * (1 - least) + least;
  return schedule.lr() * factor;
}

double oneCycle(const Schedule &schedule, int64_t step) {
  const double first = schedule.lr() / schedule.div_factor(), last = first / schedule.final_div_factor();
  const double top = schedule.pct_start() * real(schedule.total_steps()) - 1, end = real(schedule.total_steps() - 1);
  const double at = std::min(real(step), end);
  const bool rises = at <= top;
  const double from = rises ? first : schedule.lr(), to = rises ? schedule.lr() : last;
  const double done = rises ? at / top : (at - top) / (end - top);
  if (schedule.curve() == Schedule::LINEAR_CURVE)
    return (to - from) * done + from;
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * done) + 1);
}

double cosineRestarts(const Schedule &schedule, int64_t step) {
  double length = real(std::max<int64_t>(schedule.restart_steps(), 1)), done = real(step);
  const double factor = real(std::max<int64_t>(schedule.restart_mult(), 1));
  if (factor == 1)
    done = std::fmod(done, length);
  // Each is at least twice as long as the one before, so that this ends soon.
  for (; done >= length; length *= factor)
    done -= length;
  return schedule.min_lr() + (schedule.lr() - schedule.min_lr()) * left(Schedule::COSINE_CURVE, done / length);
}

/// The kinds that count from the end of the warm-up.
double afterWarmUp(const Schedule &schedule, int64_t step) {
  switch (schedule.kind()) {
  case Schedule::STEP:
    return schedule.lr() * std::pow(schedule.gamma(), real(step / std::max<int64_t>(schedule.step_size(), 1)));
  case Schedule::MULTISTEP:
    return schedule.lr() *
           std::pow(schedule.gamma(), real(std::count_if(schedule.milestones().begin(), schedule.milestones().end(),
                                                         [&](int64_t milestone) { return milestone <= step; })));
  case Schedule::EXPONENTIAL:
    return schedule.lr() * std::pow(schedule.gamma(), real(step));
  case Schedule::COSINE_RESTARTS:
    return cosineRestarts(schedule, step);
  case Schedule::LINEAR:
  case Schedule::COSINE:
  case Schedule::POLYNOMIAL:
    break;
  default:
    return schedule.lr();
  }
  const double span = real(std::max<int64_t>(schedule.total_steps() - schedule.warmup_steps(), 1));
  const double done = std::min(1.0, real(step) / span);
  const double part = schedule.kind() == Schedule::COSINE   ? left(Schedule::COSINE_CURVE, done)
                      : schedule.kind() == Schedule::LINEAR ? 1 - done
                                                            : std::pow(1 - done, schedule.power());
  return schedule.min_lr() + (schedule.lr() - schedule.min_lr()) * part;
}

} // namespace

double lowtide::rt::learningRate(const Schedule &schedule, int64_t step) {
  if (schedule.kind() == Schedule::INVERSE_SQRT)
    return inverseSqrt(schedule, step);
  if (schedule.kind() == Schedule::WSD)
    return warmUpStableDecay(schedule, step);
  if (schedule.kind() == Schedule::ONE_CYCLE)
    return oneCycle(schedule, step);
  if (step < schedule.warmup_steps())
    return schedule.lr() * real(step + 1) / real(schedule.warmup_steps());
  return afterWarmUp(schedule, step - schedule.warmup_steps());
}
