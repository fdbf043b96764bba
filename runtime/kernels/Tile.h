//===- Tile.h - the register tile under every contraction ------------------===//
//
// A tile of up to 6 rows and two vectors of columns is accumulated over k in registers. B comes in panels: for every k,
// `panel` columns side by side, missing ones zero. A is read where it lies, stored m × k or k × m: six numbers of a
// line that stay in the first-level cache are as near as packed ones. Sums run over k in ascending order, in blocks
// that depend on the shape alone.
//
// Compiled for one vector width: 32 bytes (AVX2 with FMA on x86-64), in WideTile.cpp 64 (AVX-512). Every number of a
// result is summed by itself, so that no width changes a bit of it.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_TILE_H
#define LOWTIDE_RUNTIME_KERNELS_TILE_H

#include "runtime/kernels/TileSize.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifndef LOWTIDE_WIDE_TILE
#define LOWTIDE_VECTOR_BYTES 32
#define LOWTIDE_VECTORS vectors32
#else
#define LOWTIDE_VECTOR_BYTES 64
#define LOWTIDE_VECTORS vectors64
#endif

namespace lowtide::rt::kernels {

/// How A is stored. Rows: m × k, `stride` elements from row to row. Columns: k × m, `stride` from one k to the next; a
/// panel of six rows is stored so, too.
enum class Left { Rows, Columns };

/// What happens to the sums: D = alpha · sum + source (+ rowBias[i] for row i).
template <typename T> struct Epilogue {
  T alpha = 1;
  const T *source = nullptr; ///< first element belonging to the tile
  int64_t sourceRow = 0;     ///< elements between its rows; 0 for one row added to all
  const T *rowBias = nullptr;
};

// One program holds both widths: functions of the same name must not be taken for each other.
inline namespace LOWTIDE_VECTORS {

template <typename T> struct Vector;
template <> struct Vector<float> {
  typedef float type __attribute__((vector_size(LOWTIDE_VECTOR_BYTES)));
};
template <> struct Vector<double> {
  typedef double type __attribute__((vector_size(LOWTIDE_VECTOR_BYTES)));
};
template <typename T> using Vec = typename Vector<T>::type;

/// Elements of a vector, columns of a panel.
template <typename T> inline constexpr int64_t lanes = LOWTIDE_VECTOR_BYTES / sizeof(T);
template <typename T> inline constexpr int64_t panel = 2 * lanes<T>;
/// Rows of the largest tile: what the registers of that width hold next to a row of B.
inline constexpr int64_t mostRows = LOWTIDE_VECTOR_BYTES == 64 ? wideTileRows : tileRows;
/// Largest block of k, at either width: a panel of B takes half of the first-level cache with vectors of 32 bytes.
template <typename T> inline constexpr int64_t blockK = 1024 / sizeof(T);

template <typename T> inline Vec<T> load(const T *p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <typename T> inline void store(T *p, Vec<T> v) { std::memcpy(p, &v, sizeof v); }

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

/// Calls `f` with the numbers of rows ≤ mostRows and vectors ≤ 2 as constants.
template <typename Function>
[[gnu::always_inline]] inline void withTileShape(int64_t rows, int64_t vectors, Function f) {
  switch (rows * 2 + vectors - 1) {
#define LOWTIDE_TILE(r)                                                                                                \
  case r * 2:                                                                                                          \
    if constexpr (r <= mostRows)                                                                                       \
      return f(std::integral_constant<int, r>(), std::integral_constant<int, 1>());                                    \
    break;                                                                                                             \
  case r * 2 + 1:                                                                                                      \
    if constexpr (r <= mostRows)                                                                                       \
      return f(std::integral_constant<int, r>(), std::integral_constant<int, 2>());                                    \
    break;
    LOWTIDE_TILE(1)
    LOWTIDE_TILE(2)
    LOWTIDE_TILE(3)
    LOWTIDE_TILE(4)
    LOWTIDE_TILE(5)
    LOWTIDE_TILE(6)
    LOWTIDE_TILE(7)
    LOWTIDE_TILE(8)
    LOWTIDE_TILE(9)
    LOWTIDE_TILE(10)
    LOWTIDE_TILE(11)
    LOWTIDE_TILE(12)
#undef LOWTIDE_TILE
  }
}

/// Full width: columns = vectors × lanes.
template <typename T, int rows, int vectors, Left left>
void tileFull(int64_t k, const T *a, int64_t stride, const T *b, T *d, int64_t rowD, const Epilogue<T> &epilogue) {
  Vec<T> sum[rows][vectors];
  clear<T>(sum);
  // Four rows share an address: one for each row would be more than there are registers.
  const T *fourth[(rows + 3) / 4];
  for (int i = 0; i < rows; i += 4) {
    fourth[i / 4] = left == Left::Columns ? a : a + i * stride;
    asm("" : "+r"(fourth[i / 4]));
  }
  accumulate<T, rows, vectors>(
      k,
      [&](int64_t p, int i) { return left == Left::Columns ? a[p * stride + i] : fourth[i / 4][i % 4 * stride + p]; },
      [&](int64_t p, int v) { return load(b + p * panel<T> + v * lanes<T>); }, sum);
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; ++i)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v) {
#pragma clang fp contract(off) // where the columns of a tile end decides no rounding
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

/// A tile of `rows` ≤ mostRows and `columns` ≤ panel.
template <typename T, Left left>
inline void tile(int64_t rows, int64_t columns, int64_t k, const T *a, int64_t stride, const T *b, T *d, int64_t rowD,
                 const Epilogue<T> &epilogue) {
  if (columns == panel<T> || columns == lanes<T>)
    return tileFullRows<T, left>(rows, columns / lanes<T>, k, a, stride, b, d, rowD, epilogue);
  alignas(64) T buffer[mostRows * panel<T>];
  tileFullRows<T, left>(rows, columns > lanes<T> ? 2 : 1, k, a, stride, b, buffer, panel<T>, Epilogue<T>{});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
#pragma clang fp contract(off)
      T value = buffer[i * panel<T> + j] * epilogue.alpha;
      if (epilogue.rowBias)
        value += epilogue.rowBias[i];
      if (epilogue.source)
        value += epilogue.source[i * epilogue.sourceRow + j];
      d[i * rowD + j] = value;
    }
}

} // namespace LOWTIDE_VECTORS
} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_KERNELS_TILE_H
