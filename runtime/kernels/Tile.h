//===- Tile.h - the register tile under every contraction ------------------===//
//
// A tile of up to 6 rows and two vectors of columns is accumulated over k in registers. B comes in panels: for every k,
// `panel` columns side by side, missing ones zero. A is read where it lies, stored m × k or k × m: six numbers of a
// line that stay in the first-level cache are as near as packed ones. Sums run over k in ascending order, in blocks
// that depend on the shape alone.
//
// Compiled for one vector width: 32 bytes (AVX2 with FMA on x86-64).
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_TILE_H
#define LOWTIDE_RUNTIME_KERNELS_TILE_H

#include "runtime/kernels/TileSize.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace lowtide::rt::kernels {

template <typename T> struct Vector;
template <> struct Vector<float> {
  typedef float type __attribute__((vector_size(32)));
};
template <> struct Vector<double> {
  typedef double type __attribute__((vector_size(32)));
};
template <typename T> using Vec = typename Vector<T>::type;

/// Elements of a vector, columns of a panel.
template <typename T> inline constexpr int64_t lanes = 32 / sizeof(T);
template <typename T> inline constexpr int64_t panel = 2 * lanes<T>;
/// Largest block of k: a panel of B takes half of the first-level cache.
template <typename T> inline constexpr int64_t blockK = 1024 / sizeof(T);

template <typename T> inline Vec<T> load(const T *p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <typename T> inline void store(T *p, Vec<T> v) { std::memcpy(p, &v, sizeof v); }

/// What happens to the sums: D = alpha · sum + source (+ rowBias[i] for row i).
template <typename T> struct Epilogue {
  T alpha = 1;
  const T *source = nullptr; ///< first element belonging to the tile
  int64_t sourceRow = 0;     ///< elements between its rows; 0 for one row added to all
  const T *rowBias = nullptr;
};

/// How A is stored. Rows: m × k, `stride` elements from row to row. Columns: k × m, `stride` from one k to the next; a
/// panel of six rows is stored so, too.
enum class Left { Rows, Columns };

/// sum[i][v] += left(p, i) · right(p, v) for p in [0, k).
template <typename T, int rows, int vectors, typename Left, typename Right>
[[gnu::always_inline]] inline void accumulate(int64_t k, Left left, Right right, Vec<T> (&sum)[rows][vectors]) {
#pragma clang loop unroll_count(4)
  for (int64_t p = 0; p < k; ++p) {
    Vec<T> columns[vectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v)
      columns[v] = right(p, v);
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; ++i) {
      Vec<T> row = left(p, i) - Vec<T>{};
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; ++v)
        sum[i][v] += row * columns[v];
    }
  }
}

template <typename T, int rows, int vectors> [[gnu::always_inline]] inline void clear(Vec<T> (&sum)[rows][vectors]) {
  for (auto &row : sum)
    for (auto &v : row)
      v = Vec<T>{};
}

/// Calls `f` with the numbers of rows ≤ tileRows and vectors ≤ 2 as constants.
template <typename Function>
[[gnu::always_inline]] inline void withTileShape(int64_t rows, int64_t vectors, Function f) {
  switch (rows * 2 + vectors - 1) {
#define LOWTIDE_TILE(r, v)                                                                                             \
  case r * 2 + v - 1:                                                                                                  \
    return f(std::integral_constant<int, r>(), std::integral_constant<int, v>());
    LOWTIDE_TILE(6, 2)
    LOWTIDE_TILE(5, 2)
    LOWTIDE_TILE(4, 2)
    LOWTIDE_TILE(3, 2)
    LOWTIDE_TILE(2, 2)
    LOWTIDE_TILE(1, 2)
    LOWTIDE_TILE(6, 1)
    LOWTIDE_TILE(5, 1)
    LOWTIDE_TILE(4, 1)
    LOWTIDE_TILE(3, 1)
    LOWTIDE_TILE(2, 1)
    LOWTIDE_TILE(1, 1)
#undef LOWTIDE_TILE
  }
}

/// Full width: columns = vectors × lanes.
template <typename T, int rows, int vectors, Left left>
void tileFull(int64_t k, const T *a, int64_t stride, const T *b, T *d, int64_t rowD, const Epilogue<T> &epilogue) {
  Vec<T> sum[rows][vectors];
  clear<T>(sum);
  accumulate<T, rows, vectors>(
      k, [&](int64_t p, int i) { return left == Left::Columns ? a[p * stride + i] : a[i * stride + p]; },
      [&](int64_t p, int v) { return load(b + p * panel<T> + v * lanes<T>); }, sum);
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; ++i)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v) {
      Vec<T> value = sum[i][v] * epilogue.alpha;
      if (epilogue.rowBias)
        value += epilogue.rowBias[i];
      if (epilogue.source)
        value += load(epilogue.source + i * epilogue.sourceRow + v * lanes<T>);
      store(d + i * rowD + v * lanes<T>, value);
    }
}

template <typename T, Left left>
void tileFullRows(int64_t rows, int64_t vectors, int64_t k, const T *a, int64_t stride, const T *b, T *d, int64_t rowD,
                  const Epilogue<T> &epilogue) {
  withTileShape(rows, vectors, [&](auto r, auto v) { tileFull<T, r, v, left>(k, a, stride, b, d, rowD, epilogue); });
}

/// A tile of `rows` ≤ 6 and `columns` ≤ panel.
template <typename T, Left left>
inline void tile(int64_t rows, int64_t columns, int64_t k, const T *a, int64_t stride, const T *b, T *d, int64_t rowD,
                 const Epilogue<T> &epilogue) {
  if (columns == panel<T> || columns == lanes<T>)
    return tileFullRows<T, left>(rows, columns / lanes<T>, k, a, stride, b, d, rowD, epilogue);
  alignas(64) T buffer[tileRows * panel<T>];
  tileFullRows<T, left>(rows, columns > lanes<T> ? 2 : 1, k, a, stride, b, buffer, panel<T>, Epilogue<T>{});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      T value = buffer[i * panel<T> + j] * epilogue.alpha;
      if (epilogue.rowBias)
        value += epilogue.rowBias[i];
      if (epilogue.source)
        value += epilogue.source[i * epilogue.sourceRow + j];
      d[i * rowD + j] = value;
    }
}

/// Copies `rows` rows of `columns` ≤ panel values into a panel; `row` elements apart.
template <typename T> inline void packPanel(T *to, const T *from, int64_t row, int64_t rows, int64_t columns) {
  if (columns == panel<T>) {
    for (int64_t p = 0; p < rows; ++p) {
      store(to + p * panel<T>, load(from + p * row));
      store(to + p * panel<T> + lanes<T>, load(from + p * row + lanes<T>));
    }
    return;
  }
  for (int64_t p = 0; p < rows; ++p) {
    for (int64_t j = 0; j < columns; ++j)
      to[p * panel<T> + j] = from[p * row + j];
    for (int64_t j = columns; j < panel<T>; ++j)
      to[p * panel<T> + j] = 0;
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

/// Packs a panel from the transpose: column j of the panel is row j of `from`, `depth` long; `columns` ≤ panel.
template <typename T>
inline void packPanelTransposed(T *to, const T *from, int64_t row, int64_t depth, int64_t columns) {
  constexpr int64_t w = lanes<T>;
  int64_t wholeDepth = depth / w * w;
  for (int64_t j = 0; j < panel<T>; j += w) {
    if (j + w <= columns) {
      for (int64_t p = 0; p < wholeDepth; p += w)
        transposeSquare(from + j * row + p, row, to + p * panel<T> + j, panel<T>);
      for (int64_t p = wholeDepth; p < depth; ++p)
        for (int64_t x = j; x < j + w; ++x)
          to[p * panel<T> + x] = from[x * row + p];
      continue;
    }
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t x = j; x < j + w; ++x)
        to[p * panel<T> + x] = x < columns ? from[x * row + p] : T(0);
  }
}

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_KERNELS_TILE_H
