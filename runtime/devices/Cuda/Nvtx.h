//===- Nvtx.h - names of ranges, as NVIDIA's profilers take them -----------===//
//
// NVTX 3 is no library: a profiler names one of its own in NVTX_INJECTION64_PATH, which whoever has names to give
// loads. Its entry asks for tables of slots, by module, and writes its functions into them. Declared here as
// nvtx3/nvToolsExt.h of CUDA 13.0 has it, as far as it is needed; CudaTests compares it with that header where it is
// installed.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_NVTX_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_NVTX_H

#include <cstddef>
#include <cstdint>

namespace lowtide::rt::cuda {

namespace nvtx {

using Function = void (*)();
/// The exported table of that number; null for others.
using GetExportTable = const void *(*)(uint32_t table);
/// "InitializeInjectionNvtx2" of a profiler's library; not 0: it is there.
using Initialize = int (*)(GetExportTable get);

enum Table : uint32_t { tableCallbacks = 1, tableVersion = 3 };
enum Module : int { moduleCore = 1, moduleCuda, moduleOpenCl, moduleCudaRuntime, moduleCore2, moduleSync, moduleEnd };
/// Slots of a module, slot 0 being none.
inline constexpr unsigned slotCounts[moduleEnd] = {0, 16, 9, 15, 7, 16, 7};
enum Slot : int { slotRangePushA = 9, slotRangePop = 11 };

struct Callbacks {
  size_t bytes;
  /// Pointers to a module's slots, and how many; 0 for a module that is not known.
  int (*getModuleFunctionTable)(int module, Function ***table, unsigned *count);
};

struct Version {
  size_t bytes;
  uint32_t version, reserved;
  void (*setInjectionVersion)(uint32_t version);
};

} // namespace nvtx

/// The two functions that name ranges; null where no one wants names.
struct NvtxApi {
  int (*nvtxRangePushA)(const char *name) = nullptr;
  int (*nvtxRangePop)() = nullptr;
};

/// Those of the profiler that NVTX_INJECTION64_PATH names, else of NVTX 2. To be called once: a profiler's library is
/// set up, and stays until the process ends.
NvtxApi loadNvtx();
/// Those of NVTX 2's libnvToolsExt.so.1, which CUDA 12 and older have.
NvtxApi loadNvtx2();

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_NVTX_H
