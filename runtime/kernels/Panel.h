//===- Panel.h - columns of a matrix, packed for the register tile ---------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_PANEL_H
#define LOWTIDE_RUNTIME_KERNELS_PANEL_H

#include "runtime/kernels/Tile.h"

namespace lowtide::rt::kernels {

/// Copies `rows` rows of `columns` ≤ width values into a panel of `width` columns; `row` elements apart.
template <typename T, int64_t width = panel<T>>
inline void packPanel(T *to, const T *from, int64_t row, int64_t rows, int64_t columns) {
  if (columns == width) {
    for (int64_t p = 0; p < rows; ++p)
#pragma clang loop unroll(full)
      for (int64_t j = 0; j < width; j += lanes<T>)
        store(to + p * width + j, load(from + p * row + j));
    return;
  }
  for (int64_t p = 0; p < rows; ++p) {
    for (int64_t j = 0; j < columns; ++j)
      to[p * width + j] = from[p * row + j];
    for (int64_t j = columns; j < width; ++j)
      to[p * width + j] = 0;
  }
}

inline void transposeSquare(const float *from, int64_t row, float *to, int64_t toRow) {
  using V = Vec<float>;
  V r[8], t[8], s[8];
  for (int i = 0; i < 8; ++i)
    r[i] = load(from + i * row);
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    t[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 2; ++i)
    for (int h = 0; h < 2; ++h) {
      s[4 * i + 2 * h] = __builtin_shufflevector(t[4 * i + h], t[4 * i + 2 + h], 0, 1, 8, 9, 4, 5, 12, 13);
      s[4 * i + 2 * h + 1] = __builtin_shufflevector(t[4 * i + h], t[4 * i + 2 + h], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; ++i) {
    store(to + i * toRow, __builtin_shufflevector(s[i], s[4 + i], 0, 1, 2, 3, 8, 9, 10, 11));
    store(to + (4 + i) * toRow, __builtin_shufflevector(s[i], s[4 + i], 4, 5, 6, 7, 12, 13, 14, 15));
  }
}
inline void transposeSquare(const double *from, int64_t row, double *to, int64_t toRow) {
  using V = Vec<double>;
  V r[4], t[4];
  for (int i = 0; i < 4; ++i)
    r[i] = load(from + i * row);
  for (int i = 0; i < 2; ++i) {
    t[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 4, 2, 6);
    t[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 1, 5, 3, 7);
  }
  for (int i = 0; i < 2; ++i) {
    store(to + i * toRow, __builtin_shufflevector(t[i], t[2 + i], 0, 1, 4, 5));
    store(to + (2 + i) * toRow, __builtin_shufflevector(t[i], t[2 + i], 2, 3, 6, 7));
  }
}

/// Packs a panel of `width` columns from the transpose: column j of the panel is row j of `from`, `depth` long;
/// `columns` ≤ width.
template <typename T, int64_t width = panel<T>>
inline void packPanelTransposed(T *to, const T *from, int64_t row, int64_t depth, int64_t columns) {
  constexpr int64_t w = lanes<T>;
  int64_t wholeDepth = depth / w * w;
  for (int64_t j = 0; j < width; j += w) {
    if (j + w <= columns) {
      for (int64_t p = 0; p < wholeDepth; p += w)
        transposeSquare(from + j * row + p, row, to + p * width + j, width);
      for (int64_t p = wholeDepth; p < depth; ++p)
        for (int64_t x = j; x < j + w; ++x)
          to[p * width + x] = from[x * row + p];
      continue;
    }
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t x = j; x < j + w; ++x)
        to[p * width + x] = x < columns ? from[x * row + p] : T(0);
  }
}

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_KERNELS_PANEL_H
