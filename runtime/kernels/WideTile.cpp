//===- WideTile.cpp - register tiles of 64-byte vectors --------------------===//
//
// Compiled for AVX-512, where the compiler has it.
//
//===----------------------------------------------------------------------===//

#define LOWTIDE_WIDE_TILE
#include "runtime/kernels/WideTile.h"

namespace lowtide::rt::kernels {
namespace {

template <typename T>
void run(Left left, int64_t rows, int64_t columns, int64_t k, const T *a, int64_t stride, const T *b, T *d,
         int64_t rowD, const Epilogue<T> &epilogue) {
  static_assert(panel<float> == wideTileColumns && panel<double> == wideTileColumns / 2);
  if (left == Left::Columns)
    tile<T, Left::Columns>(rows, columns, k, a, stride, b, d, rowD, epilogue);
  else
    tile<T, Left::Rows>(rows, columns, k, a, stride, b, d, rowD, epilogue);
}

} // namespace

void wideTile(Left left, int64_t rows, int64_t columns, int64_t k, const float *a, int64_t stride, const float *b,
              float *d, int64_t rowD, const Epilogue<float> &epilogue) {
  run(left, rows, columns, k, a, stride, b, d, rowD, epilogue);
}

void wideTile(Left left, int64_t rows, int64_t columns, int64_t k, const double *a, int64_t stride, const double *b,
              double *d, int64_t rowD, const Epilogue<double> &epilogue) {
  run(left, rows, columns, k, a, stride, b, d, rowD, epilogue);
}

} // namespace lowtide::rt::kernels
