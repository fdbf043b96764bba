//===- WideTile.h - register tiles of 64-byte vectors ----------------------===//
//
// The tile of Tile.h on machines with AVX-512: twice the rows and columns. The same sums in the same order. Two plain
// functions are all that is compiled for such machines, so that no other code can be taken from there.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_WIDETILE_H
#define LOWTIDE_RUNTIME_KERNELS_WIDETILE_H

#include "runtime/kernels/Tile.h"

namespace lowtide::rt::kernels {

/// What `tile` does with the arguments of the same name, for `rows` ≤ wideTileRows and `columns` of a panel of
/// wideTileColumns (half of them in f64). Only where hasWideVectors() (WideVectors.h).
void wideTile(Left left, int64_t rows, int64_t columns, int64_t k, const float *a, int64_t stride, const float *b,
              float *d, int64_t rowD, const Epilogue<float> &epilogue);
void wideTile(Left left, int64_t rows, int64_t columns, int64_t k, const double *a, int64_t stride, const double *b,
              double *d, int64_t rowD, const Epilogue<double> &epilogue);

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_KERNELS_WIDETILE_H
