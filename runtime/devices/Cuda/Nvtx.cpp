//===- Nvtx.cpp - names of ranges, as NVIDIA's profilers take them ---------===//

#include "runtime/devices/Cuda/Nvtx.h"

#include <cstdlib>
#include <dlfcn.h>

namespace lowtide::rt::cuda {
namespace {

using namespace nvtx;

constexpr unsigned mostSlots = 16;
/// What a profiler writes its functions into, and the pointers to it that it is given.
Function slots[moduleEnd][mostSlots];
Function *slotPointers[moduleEnd][mostSlots];

int getModuleFunctionTable(int module, Function ***table, unsigned *count) {
  if (module <= 0 || module >= moduleEnd)
    return 0;
  // Slot 0 is none.
  for (unsigned i = 1; i < slotCounts[module]; ++i)
    slotPointers[module][i] = &slots[module][i];
  if (count)
    *count = slotCounts[module];
  if (table)
    *table = slotPointers[module];
  return 1;
}

const void *getExportTable(uint32_t table) {
  static const Callbacks callbacks = {sizeof(Callbacks), getModuleFunctionTable};
  static const Version version = {sizeof(Version), 3, 0, [](uint32_t) {}};
  return table == tableCallbacks ? static_cast<const void *>(&callbacks) : table == tableVersion ? &version : nullptr;
}

} // namespace

// A profiler's names are no reason for a failure: one that does not answer gets none.
NvtxApi loadNvtx() {
  const char *path = std::getenv("NVTX_INJECTION64_PATH");
  if (!path)
    return loadNvtx2();
  void *library = dlopen(path, RTLD_LAZY);
  auto initialize = library ? reinterpret_cast<Initialize>(dlsym(library, "InitializeInjectionNvtx2")) : nullptr;
  if (!initialize || !initialize(getExportTable))
    return {};
  NvtxApi api;
  api.nvtxRangePushA = reinterpret_cast<int (*)(const char *)>(slots[moduleCore][slotRangePushA]);
  api.nvtxRangePop = reinterpret_cast<int (*)()>(slots[moduleCore][slotRangePop]);
  // A range that begins must end.
  return api.nvtxRangePushA && api.nvtxRangePop ? api : NvtxApi();
}

} // namespace lowtide::rt::cuda
