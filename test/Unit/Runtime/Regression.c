// Kernels of the hand-written linear regression in Regression.h, as the compiler would generate them.
#include <stdint.h>

// What the compiler would state of them (runtime/KernelStatements.h).
__attribute__((section(".lowtide.kernels"), used)) static const char statements[] =
    "subtract: 16 by 4, 16x4 16x4 to 16x4 bytes, scratch 0, threads 0, shared 0, for cpu:x86-64-v3\n"
    "mean_square: 1 by 1, 16x4 to 1x4 bytes, scratch 64, threads 0, shared 0, for cpu:x86-64-v3\n"
    "momentum: 8 by 2, 8x4 8x4 8x4 1x4 to 8x4 8x4 bytes, in place 0 on 0 1 on 2, scratch 0, threads 0, shared 0, for cpu:x86-64-v3\n";

// reads: prediction [n], y [n]; writes: difference [n]; iteration space: n
void subtract(void *const *args, int64_t begin, int64_t end) {
  const float *a = args[0], *b = args[1];
  float *d = args[2];
  for (int64_t i = begin; i < end; ++i)
    d[i] = a[i] - b[i];
}

// reads: difference [16]; writes: loss [1]; scratch: one float. One task.
void mean_square(void *const *args, int64_t begin, int64_t end) {
  const float *d = args[0];
  float *loss = args[1], *scratch = args[2];
  for (int64_t t = begin; t < end; ++t) {
    *scratch = 0;
    for (int64_t i = 0; i < 16; ++i)
      *scratch += d[i] * d[i];
    *loss = *scratch / 16;
  }
}

// reads: w [n], gradient [n], m [n], lr [1]; writes: w, m in place
void momentum(void *const *args, int64_t begin, int64_t end) {
  const float *g = args[1], *lr = args[3];
  float *w = args[4], *m = args[5];
  for (int64_t i = begin; i < end; ++i) {
    m[i] = 0.9f * m[i] + g[i] * (2.0f / 16);
    w[i] -= *lr * m[i];
  }
}
