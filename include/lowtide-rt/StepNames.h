//===- StepNames.h - names that compiler and runtime agree on ---*- C++ -*-===//
//
// What the numbers that the runtime writes before each step are called. Knows neither plans nor IR: the compiler includes
// it by lowtide/Interfaces/BindingNames.h.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RT_STEPNAMES_H
#define LOWTIDE_RT_STEPNAMES_H

#include <string_view>

namespace lowtide {

/// Step scalars: the learning rate of this step, a real number, and the integers: its number from 0, the seed of the
/// run, the number of the batch's first sample since the start of the run.
inline constexpr std::string_view rateScalar = "lr";
inline constexpr std::string_view stepScalar = "step";
inline constexpr std::string_view seedScalar = "seed";
inline constexpr std::string_view rowScalar = "row";
/// All of them, for messages.
inline constexpr std::string_view listOfStepScalars = "lr, step, seed, row";

constexpr bool isRealScalar(std::string_view name) { return name == rateScalar; }
constexpr bool isStepScalar(std::string_view name) {
  return name == rateScalar || name == stepScalar || name == seedScalar || name == rowScalar;
}

} // namespace lowtide

#endif // LOWTIDE_RT_STEPNAMES_H
