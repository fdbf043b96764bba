// Kernels of the linear regression in ../Runtime/Regression.h, as the compiler would generate them for cuda-emulated;
// and kernels with and without the mistakes that emulation is there to find.

#include "runtime/devices/FakeCuda/EmulatedThread.h"

#include <cstring>

namespace {
uint32_t bits(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return word;
}
float number(uint32_t word) {
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}
} // namespace

// What the compiler would state of them (runtime/KernelStatements.h).
__attribute__((section(".lowtide.kernels"), used)) static const char statements[] =
    "subtract: 1 by 1, 16x4 16x4 to 16x4 bytes, scratch 0, threads 32, shared 0, for cuda-emulated\n"
    "mean_square: 1 by 1, 16x4 to 1x4 bytes, scratch 64, threads 64, shared 64, for cuda-emulated\n"
    "momentum: 1 by 1, 8x4 8x4 8x4 1x4 to 8x4 8x4 bytes, in place 0 on 0 1 on 2, scratch 0, threads 32, shared 0, for "
    "cuda-emulated\n";

extern "C" {

// reads: prediction [16], y [16]; writes: difference [16]
void subtract(void *const *args, lt_gpu_thread *thread, void *) {
  const auto *a = static_cast<const float *>(args[0]), *b = static_cast<const float *>(args[1]);
  uint32_t i = thread->block * thread->threads + thread->thread;
  if (i >= 16)
    return;
  static_cast<float *>(args[2])[i] = a[i] - b[i];
}

// reads: difference [16]; writes: loss [1]; scratch: one float. One block of 64 threads.
void mean_square(void *const *args, lt_gpu_thread *thread, void *shared) {
  const auto *d = static_cast<const float *>(args[0]);
  auto *sums = static_cast<float *>(shared);
  float value = thread->thread < 16 ? d[thread->thread] * d[thread->thread] : 0;
  for (uint32_t distance = 16; distance; distance /= 2)
    value += number(thread->shuffle(thread, bits(value), 0, distance));
  if (thread->thread % 32 == 0)
    sums[thread->thread / 32] = value;
  thread->barrier(thread);
  if (thread->thread == 0)
    *static_cast<float *>(args[1]) = (sums[0] + sums[1]) / 16;
}

// reads: w [8], gradient [8], m [8], lr [1]; writes: w, m in place
void momentum(void *const *args, lt_gpu_thread *thread, void *) {
  uint32_t i = thread->thread;
  if (i >= 8)
    return;
  const auto *g = static_cast<const float *>(args[1]), *lr = static_cast<const float *>(args[3]);
  auto *w = static_cast<float *>(args[4]), *m = static_cast<float *>(args[5]);
  m[i] = 0.9f * m[i] + g[i] * (2.0f / 16);
  w[i] -= *lr * m[i];
}
}
