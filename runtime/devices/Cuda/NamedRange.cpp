//===- NamedRange.cpp - names in a profiler's timeline ---------------------===//

#include "runtime/devices/Cuda/NamedRange.h"

#include "runtime/devices/Cuda/Nvtx.h"

namespace lowtide::rt::cuda {

static const NvtxApi &profiler() {
  static const NvtxApi api = loadNvtx();
  return api;
}

NamedRange::NamedRange(const char *name) {
  if (profiler().nvtxRangePushA)
    profiler().nvtxRangePushA(name);
}

NamedRange::~NamedRange() {
  if (profiler().nvtxRangePop)
    profiler().nvtxRangePop();
}

} // namespace lowtide::rt::cuda
