//===- EmulatedThread.h - what a GPU thread on the host is called with -----===//
//
// The contract between kernels generated for `cuda-emulated` and whoever runs their threads. A kernel is
//
//   void symbol(void *const *args, struct lt_gpu_thread *thread, void *shared)
//
// and is called once per thread of the grid, each call on a stack of its own: `barrier` and `shuffle` come back when
// the threads that they wait for have arrived. What a kernel does not import from here it imports from the C and math
// libraries only.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_FAKECUDA_EMULATEDTHREAD_H
#define LOWTIDE_RUNTIME_DEVICES_FAKECUDA_EMULATEDTHREAD_H

#include <cstdint>

extern "C" {

/// Generated code knows these fields by their offsets: 0, 4, 8, 12, 16, 24.
struct lt_gpu_thread {
  uint32_t thread;  ///< threadIdx.x
  uint32_t block;   ///< blockIdx.x
  uint32_t blocks;  ///< gridDim.x = Launch.extent
  uint32_t threads; ///< blockDim.x = Kernel.threads_per_block
  /// Returns when all threads of the block have called it (bar.sync 0).
  void (*barrier)(lt_gpu_thread *self);
  /// Returns the `value` of another lane of the warp when all lanes have called it with their own (shfl.sync, full
  /// mask, width 32). `mode`: 0 lane ^ operand, 1 lane + operand, 2 lane - operand, 3 lane operand; the own value where
  /// that lane does not exist. All lanes pass the same mode.
  uint32_t (*shuffle)(lt_gpu_thread *self, uint32_t value, uint32_t mode, uint32_t operand);
};

/// `shared`: Kernel.shared_bytes bytes at a multiple of 64, one range per block, undefined when the block starts
/// (filled with NaN patterns by whoever looks for bugs). `args`: as on the device, with pointers of the host.
using lt_gpu_kernel = void (*)(void *const *args, lt_gpu_thread *thread, void *shared);
}

static_assert(sizeof(lt_gpu_thread) == 32);

#endif // LOWTIDE_RUNTIME_DEVICES_FAKECUDA_EMULATEDTHREAD_H
