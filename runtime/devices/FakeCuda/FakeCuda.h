//===- FakeCuda.h - a CUDA device on host memory ---------------------------===//
//
// Fills the same tables of function pointers as NVIDIA's driver and libraries (Cuda/Api.h): memory, streams,
// events, asynchronous copies, graphs, kernels as fibers, cuBLASLt and cuDNN on the runtime's own kernels. Work is done
// when the host asks (query, synchronize), one piece at a time from a stream that a seed picks: every order that the
// program allows can happen, and the same one happens again for the same seed. It checks what a real device would only
// punish: addresses, pinned host memory, capture rules, what is left when everything was given back.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_FAKECUDA_FAKECUDA_H
#define LOWTIDE_RUNTIME_DEVICES_FAKECUDA_FAKECUDA_H

#include "runtime/devices/Cuda/Api.h"

#include <map>
#include <string>
#include <vector>

namespace lowtide::rt::cuda::fake {

struct Options {
  /// 0: streams, graph nodes, blocks and warps in the order of the program; else in one that depends on the seed. With
  /// odd seeds one warp of a block runs ahead of the others, with even ones all go in turns.
  uint64_t seed = 0;
  /// Host threads that execute blocks; 0: all cores.
  unsigned threads = 0;
  /// The `failAt`-th call (from 1) of the function `failCall` fails; 0: none does.
  std::string failCall;
  uint64_t failAt = 0;
  /// It says that there is no memory left. Allocations always do.
  bool failsForMemory = false;
  /// Keep the names of all calls.
  bool trace = false;
};

/// The table of the fake device. There is one per process.
Api api();
/// For sessions that are bound from now on; forgets counts, trace and errors of earlier ones.
void configure(const Options &options);
/// Sets seed and threads alone.
void schedule(uint64_t seed, unsigned threads);

struct Report {
  std::map<std::string, uint64_t> calls; ///< how often each function was called
  std::vector<std::string> trace;        ///< their names in order
  std::vector<std::string> live;         ///< what was taken and not given back, in words
  /// Of it, bytes of each allocation on the device and of pinned memory of the host.
  std::vector<uint64_t> device, pinned;
};
Report report();

} // namespace lowtide::rt::cuda::fake

#endif // LOWTIDE_RUNTIME_DEVICES_FAKECUDA_FAKECUDA_H
