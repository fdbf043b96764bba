//===- RandomInit.h - a start for parameters whose weights are absent ------===//
#ifndef LOWTIDE_RUNTIME_RANDOMINIT_H
#define LOWTIDE_RUNTIME_RANDOMINIT_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <span>

namespace lowtide::rt {

/// Uniform 64-bit numbers by counter: a hash of (seed, counter), the same on every machine and in any order.
uint64_t counterRandom(uint64_t seed, uint64_t counter);

/// Whether the plan says from which random numbers a parameter starts: it is in no file of the model.
bool startsRandomly(const plan::Plan &plan, const plan::Binding &binding);
/// Whether a tensor starts as the norms of a weight (initializeNorms).
bool startsAsNorm(const plan::Plan &plan, const plan::Binding &binding);

/// Fills a part of a parameter, from byte `begin` on, as ParameterSource.random_init says ("zeros", "ones",
/// "normal:<std>", "uniform:<bound>"; absent: normal with 0.02). Element i depends on seed, name and i alone. A part
/// is of whole elements.
Status initializeRandomly(const plan::Plan &plan, const plan::Binding &binding, uint64_t seed, uint64_t begin,
                          std::span<uint8_t> part);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_RANDOMINIT_H
