//===- Ceilings.h - what the device can do at best, measured in this run ---===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_BENCH_CEILINGS_H
#define LOWTIDE_TOOLS_LOWTIDE_BENCH_CEILINGS_H

#include "runtime/Session.h"

namespace lowtide::bench {

struct Ceilings {
  double copyGBPerSecond = 0; ///< read and written
  double gemmGFlops = 0;      ///< of a square product in the type that the step multiplies in
  plan::DType gemmType = plan::F32;
};

/// Runs a copy and a product, as plans of two instructions, on the device of `target`.
rt::Expected<Ceilings> measureCeilings(const std::string &target, plan::DType gemmType, const rt::BindOptions &options);

/// The type in which the step of `entry` multiplies most.
plan::DType multiplicationType(const plan::Entry &entry);

} // namespace lowtide::bench

#endif // LOWTIDE_TOOLS_LOWTIDE_BENCH_CEILINGS_H
