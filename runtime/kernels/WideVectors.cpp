//===- WideVectors.cpp - does this machine have vectors of 64 bytes? -------===//

#include "runtime/kernels/WideVectors.h"

namespace lowtide::rt::kernels {

bool hasWideVectors() {
#if defined(__x86_64__)
  static const bool has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }();
  return has;
#else
  return false;
#endif
}

bool prefersWideVectors() {
#if defined(__x86_64__)
  static const bool prefers = hasWideVectors() && !__builtin_cpu_is("amdfam19h");
  return prefers;
#else
  return false;
#endif
}

} // namespace lowtide::rt::kernels
