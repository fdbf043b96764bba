//===- StepNames.h - names that compiler and runtime agree on ---*- C++ -*-===//
//
// What the numbers that the runtime writes before each step are called, and the outputs that hold gradients. Knows
// neither plans nor IR: the compiler includes it by lowtide/Interfaces/BindingNames.h.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RT_STEPNAMES_H
#define LOWTIDE_RT_STEPNAMES_H

#include <string>
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

/// The entry that makes the updates which a step has left for the next one, and what the names of all that it left for
/// them begin with; the flag among it that says whether there are any.
inline constexpr std::string_view flushEntry = "flush";
inline constexpr std::string_view pendingPrefix = "pending/";
inline constexpr std::string_view pendingFlag = "pending";

/// What users read before the name of a parameter, for its gradient. Kinds say what is a gradient, never this.
inline constexpr std::string_view gradientPrefix = "grad/";

/// The name of the gradient of `parameter`: "grad/fc.weight" of "fc.weight".
inline std::string gradientName(std::string_view parameter) { return std::string(gradientPrefix).append(parameter); }
/// The parameter in the name of a gradient; empty: no gradient is called so.
constexpr std::string_view gradientParameter(std::string_view name) {
  return name.starts_with(gradientPrefix) ? name.substr(gradientPrefix.size()) : std::string_view();
}

} // namespace lowtide

#endif // LOWTIDE_RT_STEPNAMES_H
