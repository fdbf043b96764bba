//===- NamedRange.cpp - names in a profiler's timeline ---------------------===//

#include "runtime/devices/Cuda/NamedRange.h"

#include "runtime/devices/Cuda/Api.h"

namespace lowtide::rt::cuda {

static const NvtxApi &nvtx() {
  static const NvtxApi api = loadNvtx();
  return api;
}

NamedRange::NamedRange(const char *name) {
  if (nvtx().nvtxRangePushA)
    nvtx().nvtxRangePushA(name);
}

NamedRange::~NamedRange() {
  if (nvtx().nvtxRangePop)
    nvtx().nvtxRangePop();
}

} // namespace lowtide::rt::cuda
