//===- Gather.h - a tensor of images read as the matrix of a convolution ---===//
//
// A convolution is a matrix product whose right side is never stored: row (c, tap), column (image, pixel) is
//
//   source[image][c][pixel · scale + offset(tap)],  or 0 outside the image.
//
// Columns are walked in runs: stretches of one row of pixels of one image, where the source advances by a fixed step.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_CONV_GATHER_H
#define LOWTIDE_RUNTIME_CALLS_CONV_GATHER_H

#include "runtime/calls/Conv/ConvPlan.h"
#include "runtime/kernels/Tile.h"

#include <vector>

namespace lowtide::rt::kernels {

/// Where the pixels of one tap lie relative to the scaled column, per dimension.
using TapOffset = ConvShape::Dims;

/// Copies `count` values, `step` apart.
template <typename T> inline void copyRun(T *to, const T *from, int64_t count, int64_t step) {
  if (step == 2 && count >= lanes<T>) {
    auto every2nd = [](T *to, const T *from) {
      Vec<T> low = load(from), high = load(from + lanes<T> - 1);
      if constexpr (lanes<T> == 8)
        store(to, __builtin_shufflevector(low, high, 0, 2, 4, 6, 9, 11, 13, 15));
      else
        store(to, __builtin_shufflevector(low, high, 0, 2, 5, 7));
    };
    int64_t x = 0;
    for (; x + lanes<T> <= count; x += lanes<T>)
      every2nd(to + x, from + 2 * x);
    if (x < count)
      every2nd(to + count - lanes<T>, from + 2 * (count - lanes<T>));
    return;
  }
  if (step != 1) {
    for (int64_t x = 0; x < count; ++x)
      to[x] = from[x * step];
    return;
  }
  constexpr int64_t w = lanes<T>;
  if (count >= w) {
    int64_t x = 0;
    for (; x + w <= count; x += w)
      store(to + x, load(from + x));
    if (x < count) // the last vector overlaps the one before
      store(to + count - w, load(from + count - w));
    return;
  }
  if (count >= w / 2) { // two overlapping halves
    T low[w / 2], high[w / 2];
    std::memcpy(low, from, sizeof low);
    std::memcpy(high, from + count - w / 2, sizeof high);
    std::memcpy(to, low, sizeof low);
    std::memcpy(to + count - w / 2, high, sizeof high);
    return;
  }
  for (int64_t x = 0; x < count; ++x)
    to[x] = from[x];
}

template <typename T> struct Gather {
  const T *source = nullptr; ///< first channel of the group
  int64_t imageStride = 0, channelStride = 0;
  ConvShape::Dims size{}; ///< of a source image
  ConvShape::Dims grid{}; ///< pixels per image: columns are image × grid
  ConvShape::Dims scale{1, 1, 1};
  std::vector<TapOffset> taps;

  int64_t pixels() const { return ConvShape::volume(grid); }
  int64_t tapCount() const { return static_cast<int64_t>(taps.size()); }

  /// With a single tap at the pixel itself, rows of pixels mean nothing.
  bool hasOnlyPoints() const {
    return tapCount() == 1 && taps[0] == TapOffset{0, 0, 0} && size == grid && scale == ConvShape::Dims{1, 1, 1};
  }
  /// Makes one row of each image, if it has only points: runs then end with the image alone.
  void joinRows() {
    if (hasOnlyPoints())
      grid = size = {1, 1, pixels()};
  }

  /// A run inside the image: columns [at, at + count) of the chunk come from source + from (channel 0).
  struct Piece {
    int64_t at, count, from;
  };

  /// The pieces of columns [q0, q0 + count) for one tap; returns their number, `covered` the columns they fill.
  /// `pieces` has room for `count` of them.
  int64_t findPieces(const TapOffset &tap, int64_t q0, int64_t count, Piece *pieces, int64_t &covered) const {
    int64_t found = 0;
    covered = 0;
    int64_t image = q0 / pixels(), rest = q0 % pixels();
    int64_t x = rest % grid[2], y = rest / grid[2] % grid[1], z = rest / (grid[2] * grid[1]);
    for (int64_t at = 0; at < count;) {
      int64_t length = std::min(count - at, grid[2] - x);
      int64_t sourceZ = z * scale[0] + tap[0], sourceY = y * scale[1] + tap[1];
      if (sourceZ >= 0 && sourceZ < size[0] && sourceY >= 0 && sourceY < size[1]) {
        // First and one past the last column of the run whose source column lies in the image.
        int64_t low = x, high = x + length;
        if (low * scale[2] + tap[2] < 0)
          low = ceilDiv(-tap[2], scale[2]);
        int64_t limit = size[2] - tap[2];
        high = limit > 0 ? std::min(high, ceilDiv(limit, scale[2])) : low;
        if (low < high) {
          pieces[found++] = {at + low - x, high - low,
                             image * imageStride + (sourceZ * size[1] + sourceY) * size[2] + low * scale[2] + tap[2]};
          covered += high - low;
        }
      }
      at += length;
      x = 0;
      if (++y == grid[1]) {
        y = 0;
        if (++z == grid[0]) {
          z = 0;
          ++image;
        }
      }
    }
    return found;
  }

  /// Packs one panel: columns [q0, q0 + count), count ≤ panel; rows (c, tap), c from c0 to c1, tap from t0 to t1.
  void packPanel(T *to, int64_t q0, int64_t count, int64_t c0, int64_t c1, int64_t t0, int64_t t1) const {
    Piece pieces[panel<T>];
    int64_t perChannel = t1 - t0;
    for (int64_t t = t0; t < t1; ++t) {
      int64_t covered;
      int64_t found = findPieces(taps[static_cast<size_t>(t)], q0, count, pieces, covered);
      T *row = to + (t - t0) * panel<T>;
      if (scale[2] == 1 && found == 1 && pieces[0].count == panel<T>) { // one run, as long as a panel
        const T *from = source + c0 * channelStride + pieces[0].from;
        for (int64_t c = c0; c < c1; ++c, row += perChannel * panel<T>, from += channelStride)
          store(row, load(from)), store(row + lanes<T>, load(from + lanes<T>));
        continue;
      }
      for (int64_t c = c0; c < c1; ++c, row += perChannel * panel<T>) {
        const T *channel = source + c * channelStride;
        if (covered < panel<T>) {
          store(row, Vec<T>{});
          store(row + lanes<T>, Vec<T>{});
        }
        for (int64_t i = 0; i < found; ++i)
          copyRun(row + pieces[i].at, channel + pieces[i].from, pieces[i].count, scale[2]);
      }
    }
  }

  /// Writes rows [k0, k1) of the matrix, k = c · taps + tap, for columns [q0, q0 + count), `stride` between rows. The
  /// source is taken `shift` elements further on.
  void packRows(T *to, int64_t stride, int64_t q0, int64_t count, int64_t k0, int64_t k1, Piece *pieces,
                int64_t shift) const {
    for (int64_t t = 0; t < tapCount(); ++t) {
      // First row of this tap at or after k0.
      int64_t k = k0 + ((t - k0) % tapCount() + tapCount()) % tapCount();
      if (k >= k1)
        continue;
      int64_t covered;
      int64_t found = findPieces(taps[static_cast<size_t>(t)], q0, count, pieces, covered);
      for (; k < k1; k += tapCount()) {
        T *row = to + (k - k0) * stride;
        const T *channel = source + shift + k / tapCount() * channelStride;
        if (covered < count)
          std::memset(row, 0, static_cast<size_t>(count) * sizeof(T));
        for (int64_t i = 0; i < found; ++i)
          copyRun(row + pieces[i].at, channel + pieces[i].from, pieces[i].count, scale[2]);
      }
    }
  }
};

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_CALLS_CONV_GATHER_H
