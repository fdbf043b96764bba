//===- NvtxProfiler.cpp - what a profiler's library does with NVTX 3 -------===//
//
// Takes the names of ranges and how deep they nest; LOWTIDE_TEST_REFUSE makes it unwilling.
//
//===----------------------------------------------------------------------===//
#include "runtime/devices/Cuda/Nvtx.h"

#include <cstdlib>
#include <string>

using namespace lowtide::rt::cuda::nvtx;

static std::string &names() {
  static std::string names;
  return names;
}

static int depth = 0;

static int push(const char *name) {
  names() += std::string(static_cast<size_t>(depth), '>') + name + "\n";
  return depth++;
}

static int pop() { return --depth; }

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(GetExportTable get) {
  auto version = static_cast<const Version *>(get(tableVersion));
  auto callbacks = static_cast<const Callbacks *>(get(tableCallbacks));
  if (std::getenv("LOWTIDE_TEST_REFUSE") || !version || version->bytes < sizeof(Version) || version->version < 3 ||
      !callbacks || get(2))
    return 0;
  version->setInjectionVersion(3);
  Function **table = nullptr;
  unsigned count = 0;
  for (int module : {moduleCuda, moduleOpenCl, moduleCudaRuntime, moduleCore2, moduleSync, moduleCore})
    if (!callbacks->getModuleFunctionTable(module, &table, &count) || count != slotCounts[module] || table[0])
      return 0;
  if (callbacks->getModuleFunctionTable(moduleEnd, &table, &count))
    return 0;
  callbacks->getModuleFunctionTable(moduleCore, &table, &count);
  *table[slotRangePushA] = reinterpret_cast<Function>(push);
  *table[slotRangePop] = reinterpret_cast<Function>(pop);
  return 1;
}

/// One line per range, indented by '>'.
extern "C" __attribute__((visibility("default"))) const char *namesOfRanges() { return names().c_str(); }
extern "C" __attribute__((visibility("default"))) int depthOfRanges() { return depth; }
