//===- Advice.h - what would make a measured step faster -------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_BENCH_ADVICE_H
#define LOWTIDE_TOOLS_LOWTIDE_BENCH_ADVICE_H

#include "Ceilings.h"

#include "runtime/devices/InstructionCosts.h"

#include <optional>

namespace lowtide::bench {

/// A measured step.
struct MeasuredStep {
  double milliseconds = 0;                   ///< from one step's end to the next one's
  std::vector<rt::InstructionCosts> kernels; ///< as sumByKernel
  Ceilings ceilings;
  int64_t batch = 0;                 ///< samples of a step
  uint64_t transientBytes = 0;       ///< what grows with the batch
  std::optional<uint64_t> freeBytes; ///< of the device, beside the plan; where it is known
};

/// What instructions would take at their ceilings: each byte at a copy's speed, or, for library calls, each operation
/// at a large product's, whichever takes longer. Milliseconds a step.
double floorMilliseconds(const rt::InstructionCosts &costs, const Ceilings &ceilings);

/// What to do, the most rewarding first; one sentence each, never empty.
std::vector<std::string> advise(const MeasuredStep &step);

} // namespace lowtide::bench

#endif // LOWTIDE_TOOLS_LOWTIDE_BENCH_ADVICE_H
