//===- DirectConv.h - convolution on padded tiles of the images ------------===//
//
//   for each block of channels:  fill a padded tile (PaddedTile.h) on the stack
//     for each two vectors of columns, for each six result rows:  accumulate in registers over (channel, tap)
//
// Serves the forward pass and, with gathered roles, the gradient of the input (Conv.cpp). That one has several results
// from one tile: pixels with equal remainder modulo the stride (`Variant`). Two of them that are neighbours in x are
// computed side by side and woven together, so that whole vectors are stored.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_CONV_DIRECTCONV_H
#define LOWTIDE_RUNTIME_CALLS_CONV_DIRECTCONV_H

#include "runtime/calls/Conv/PaddedTile.h"

namespace lowtide::rt::kernels {

/// The left side: rows of the filter, in the order of (channel, tap).
template <typename T> struct ConvLeft {
  const T *base = nullptr;
  int64_t groupStride = 0;
  int64_t rowStride = 0; ///< between rows; packed: between panels of six rows
  bool packed = false;
};

/// Where column (image, y, x) of result row r goes: base of the variant + image · imageStride + r · rowStride + y ·
/// yStep + x · xStep.
template <typename T> struct ConvResult {
  int64_t imageStride = 0, groupStride = 0, rowStride = 0, yStep = 0, xStep = 1;
  const T *bias = nullptr; ///< one per result row of all groups, or null
};

/// One result of the tile.
template <typename T> struct ConvVariant {
  std::vector<TapOffset> taps;
  ConvShape::Dims grid{}; ///< columns per image
  ConvLeft<T> left;
  T *base = nullptr;
};

template <typename T> class DirectConv {
public:
  /// `gather`: source of the first group, `grid` the largest of the variants'; `channels`: summed over, per group;
  /// `rows`: result rows per group. `variants`: with an xStep of 2 they come in pairs, x fastest. Nothing if the shape
  /// is not for this kernel: three spatial dimensions, images too narrow for whole vectors, too many taps.
  static std::optional<DirectConv> create(Gather<T> gather, int64_t batch, int64_t groups, int64_t channels,
                                          int64_t rows, const ConvResult<T> &result,
                                          std::vector<ConvVariant<T>> variants) {
    DirectConv conv;
    conv.batch_ = batch, conv.groups_ = groups, conv.channels_ = channels, conv.rows_ = rows;
    conv.result_ = result;
    conv.variants_ = std::move(variants);
    if (!conv.cut(gather))
      return std::nullopt;
    return conv;
  }

  int64_t tasks() const { return groups_ * imageBlocks_ * yBlocks_ * rowBlocks_; }

  void run(int64_t task) const {
    int64_t rowBlock = task % rowBlocks_, yBlock = task / rowBlocks_ % yBlocks_;
    int64_t imageBlock = task / (rowBlocks_ * yBlocks_) % imageBlocks_,
            group = task / (rowBlocks_ * yBlocks_ * imageBlocks_);
    int64_t image0 = imageBlock * images_, image1 = std::min(batch_, image0 + images_);
    int64_t y0 = yBlock * ys_, y1 = std::min(height_, y0 + ys_);
    int64_t r0 = rowBlock * rowsPerBlock_, r1 = std::min(rows_, r0 + rowsPerBlock_);
    alignas(64) T tile[capacity];
    for (int64_t c0 = 0; c0 < channels_; c0 += perBlock_) {
      int64_t c1 = std::min(channels_, c0 + perBlock_), first = group * channels_;
      tile_->fill(tile, image0, image1, y0, y1, first + c0, first + c1);
      for (size_t v = 0; v < variants_.size(); v += paired_ ? 2 : 1)
        columns(tile, v, {group, image0, image1, y0, y1, r0, r1, c0, c1});
    }
  }

private:
  /// Elements of the tile on the stack: 192 KiB.
  static constexpr int64_t capacity = 192 * 1024 / sizeof(T);
  static constexpr int64_t maxK = 320;
  /// Columns that a task aims at; of a single row of results, vectors that are computed together.
  static constexpr int64_t wantedColumns = 256, wantedOfOneRow = 4096;
  static constexpr int64_t vectorsOfOneRow = 8;

  /// What a task computes from one filling of the tile.
  struct Part {
    int64_t group, image0, image1, y0, y1, r0, r1, c0, c1;
  };
  /// A vector of columns (half a vector where images are that narrow): where it is read in the tile (channel 0, tap
  /// offset 0), where its result goes (row 0 of a variant's base), how many of its columns exist, per variant of a
  /// pair.
  struct Segment {
    const T *from;
    int64_t to;
    int64_t count[2];
  };

  bool cut(Gather<T> gather) {
    int64_t taps = 0;
    gather.taps.clear();
    for (const ConvVariant<T> &variant : variants_) {
      taps = std::max(taps, static_cast<int64_t>(variant.taps.size()));
      gather.taps.insert(gather.taps.end(), variant.taps.begin(), variant.taps.end());
    }
    if (taps == 0 || taps > maxK)
      return false;
    if (variants_.size() == 1 && result_.xStep == 1 && result_.yStep == gather.grid[2] && flattenPoints(gather)) {
      result_.yStep = gather.grid[2];
      variants_[0].grid = gather.grid;
    }
    int64_t width = gather.grid[2];
    height_ = gather.grid[1];
    paired_ = variants_.size() % 2 == 0 && result_.xStep == 2;
    // Not much more than half of the columns computed may be missing.
    auto worth = [&](int64_t length) {
      segment_ = length, segments_ = ceilDiv(width, length);
      return width * 10 >= segments_ * length * 6;
    };
    if (!worth(lanes<T>) && !worth(lanes<T> / 2))
      return false;
    int64_t perRow = segments_ * segment_;
    tile_ = PaddedTile<T>::create(gather, perRow);
    if (!tile_)
      return false;

    int64_t wanted = rows_ == 1 ? wantedOfOneRow : wantedColumns;
    ys_ = std::clamp<int64_t>(wanted / perRow, 1, height_);
    images_ = ys_ == height_ ? std::clamp<int64_t>(wanted / (perRow * height_), 1, batch_) : 1;
    perBlock_ = ceilDiv(channels_, ceilDiv(channels_, std::max<int64_t>(1, maxK / taps)));
    while (tile_->elements(images_, ys_, perBlock_) > capacity) {
      if (perBlock_ > 16)
        perBlock_ = ceilDiv(perBlock_, 2);
      else if (images_ > 1)
        images_ = ceilDiv(images_, 2);
      else if (ys_ > 1)
        ys_ = ceilDiv(ys_, 2);
      else if (perBlock_ > 1)
        perBlock_ = ceilDiv(perBlock_, 2);
      else
        return false;
    }
    rowsPerBlock_ = ceilDiv(rows_, tileRows) * tileRows;
    auto blocks = [&] {
      imageBlocks_ = ceilDiv(batch_, images_), yBlocks_ = ceilDiv(height_, ys_),
      rowBlocks_ = ceilDiv(rows_, rowsPerBlock_);
      return tasks();
    };
    const int64_t products = channels_ * static_cast<int64_t>(gather.taps.size());
    while (blocks() < 8 && rowsPerBlock_ * images_ * ys_ * perRow * products > 512 * 1024) {
      if (images_ > 1)
        images_ = ceilDiv(images_, 2);
      else if (rowsPerBlock_ > 48)
        rowsPerBlock_ = ceilDiv(ceilDiv(rowsPerBlock_, 2), tileRows) * tileRows;
      else if (ys_ > 1)
        ys_ = ceilDiv(ys_, 2);
      else
        break;
    }
    // Balanced: the last block is not a crumb.
    images_ = ceilDiv(batch_, imageBlocks_), ys_ = ceilDiv(height_, yBlocks_);
    blocks();

    tile_->setShape(ys_, perBlock_);
    for (const ConvVariant<T> &variant : variants_) {
      offsets_.emplace_back();
      for (int64_t c = 0; c < perBlock_; ++c)
        for (const TapOffset &tap : variant.taps)
          offsets_.back().push_back(static_cast<int32_t>(tile_->offset(c, tap)));
    }
    return true;
  }

  void columns(const T *tile, size_t v, const Part &part) const {
    Segment segments[vectorsOfOneRow] = {};
    const bool isOneRow = rows_ == 1 && !paired_ && segment_ == lanes<T>;
    const int64_t together = isOneRow ? vectorsOfOneRow : panel<T> / segment_;
    int64_t waiting = 0;
    const ConvShape::Dims &one = variants_[v].grid, &two = variants_[v + paired_].grid;
    auto flush = [&] {
      if (isOneRow)
        oneRow(segments, waiting, v, part);
      else
        product(segments, waiting, v, part);
      waiting = 0;
    };
    auto left = [&](const ConvShape::Dims &grid, int64_t y, int64_t x) {
      return y < grid[1] ? std::clamp<int64_t>(grid[2] - x, 0, segment_) : 0;
    };
    for (int64_t image = part.image0; image < part.image1; ++image)
      for (int64_t y = part.y0; y < part.y1; ++y)
        for (int64_t s = 0; s < segments_; ++s) {
          int64_t x = s * segment_;
          segments[waiting++] = {tile + tile_->position(image - part.image0, y - part.y0) + x,
                                 image * result_.imageStride + part.group * result_.groupStride + y * result_.yStep +
                                     x * result_.xStep,
                                 {left(one, y, x), left(two, y, x)}};
          if (waiting == together)
            flush();
        }
    if (waiting)
      flush();
  }

  /// Vectors of a single row of results: the filter is short, so more of them share each of its entries.
  void oneRow(Segment (&segments)[vectorsOfOneRow], int64_t vectors, size_t v, const Part &part) const {
    const ConvVariant<T> &variant = variants_[v];
    for (int64_t w = vectors; w < vectorsOfOneRow; ++w)
      segments[w] = {segments[0].from, 0, {0, 0}};
    int64_t taps = static_cast<int64_t>(variant.taps.size()), step = variant.left.packed ? tileRows : 1;
    const T *a = variant.left.base + part.group * variant.left.groupStride + part.c0 * taps * step;
    const int32_t *offsets = offsets_[v].data();
    Vec<T> sum[1][vectorsOfOneRow];
    clear<T>(sum);
    accumulate<T, 1, vectorsOfOneRow>((part.c1 - part.c0) * taps, [&](int64_t p, int) { return a[p * step]; },
                                      [&](int64_t p, int w) { return load(segments[w].from + offsets[p]); }, sum);
    const T bias = part.c0 == 0 && result_.bias ? result_.bias[part.group] : T(0);
    const bool add = part.c0 != 0;
    alignas(64) T buffer[lanes<T>];
#pragma clang loop unroll(full)
    for (int w = 0; w < vectorsOfOneRow; ++w) {
      T *to = variant.base + segments[w].to;
      if (segments[w].count[0] == lanes<T> && result_.xStep == 1) {
        Vec<T> value = sum[0][w] + bias;
        store(to, add ? value + load(to) : value);
        continue;
      }
      store(buffer, sum[0][w]);
      finish(buffer, to, segments[w].count[0], bias, add);
    }
  }

  /// `count` segments: two vectors, or four halves.
  void product(Segment *segments, int64_t count, size_t v, const Part &part) const {
    alignas(64) T sums[2][tileRows * panel<T> + lanes<T>];
    const T *bias = part.c0 == 0 && result_.bias ? result_.bias + part.group * rows_ : nullptr;
    const bool halves = segment_ != lanes<T>;
    const int64_t vectors = halves ? 2 : count;
    for (int64_t s = count; halves && s < 4; ++s)
      segments[s] = {segments[0].from, 0, {0, 0}};
    bool whole = !halves && result_.xStep == 1 && segments[0].count[0] == lanes<T> &&
                 (vectors == 1 || segments[1].count[0] == lanes<T>);
    for (int64_t r = part.r0; r < part.r1; r += tileRows) {
      int64_t rows = std::min(tileRows, part.r1 - r);
      for (size_t other = 0; other <= size_t(paired_); ++other)
        withTileShape(rows, vectors, [&](auto r6, auto vectors2) {
          const ConvVariant<T> &variant = variants_[v + other];
          Vec<T> sum[r6][vectors2];
          clear<T>(sum);
          if (!halves)
            accumulateShifted<r6, vectors2>(v + other, part, r, ShiftedVectors(segments), sum);
          else if constexpr (vectors2 == 2)
            accumulateShifted<r6, vectors2>(v + other, part, r, ShiftedHalves(segments), sum);
          if (!whole) {
#pragma clang loop unroll(full)
            for (int i = 0; i < r6; ++i)
#pragma clang loop unroll(full)
              for (int w = 0; w < vectors2; ++w)
                store(sums[other] + i * panel<T> + w * lanes<T>, sum[i][w]);
            return;
          }
#pragma clang loop unroll(full)
          for (int w = 0; w < vectors2; ++w) {
            T *to = variant.base + segments[w].to + r * result_.rowStride;
#pragma clang loop unroll(full)
            for (int i = 0; i < r6; ++i, to += result_.rowStride) {
              Vec<T> value = sum[i][w];
              if (bias)
                value += bias[r + i];
              store(to, part.c0 != 0 ? value + load(to) : value);
            }
          }
        });
      if (whole)
        continue;
      for (int64_t s = 0; s < count; ++s)
        for (int64_t i = 0; i < rows; ++i) {
          int64_t at = i * panel<T> + s * segment_, to = segments[s].to + (r + i) * result_.rowStride;
          T extra = bias ? bias[r + i] : T(0);
          if (paired_)
            finishPair(sums[0] + at, sums[1] + at, to, segments[s].count, v, extra, part.c0 != 0);
          else
            finish(sums[0] + at, variants_[v].base + to, segments[s].count[0], extra, part.c0 != 0);
        }
    }
  }

  /// The right side: two vectors, each in one piece.
  struct ShiftedVectors {
    const T *first, *second;
    explicit ShiftedVectors(const Segment *segments) : first(segments[0].from), second(segments[1].from) {}
    [[gnu::always_inline]] Vec<T> operator()(int64_t offset, int w) const {
      return load((w ? second : first) + offset);
    }
  };
  /// The same, each put together from two pieces.
  struct ShiftedHalves {
    const T *from[4];
    explicit ShiftedHalves(const Segment *segments)
        : from{segments[0].from, segments[1].from, segments[2].from, segments[3].from} {}
    [[gnu::always_inline]] Vec<T> operator()(int64_t offset, int w) const {
      typedef T Half __attribute__((vector_size(16)));
      Half low, high;
      std::memcpy(&low, from[2 * w] + offset, sizeof low);
      std::memcpy(&high, from[2 * w + 1] + offset, sizeof high);
      if constexpr (lanes<T> == 8)
        return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
      else
        return __builtin_shufflevector(low, high, 0, 1, 2, 3);
    }
  };

  template <int rows, int vectors, typename Shifted>
  [[gnu::always_inline]] void accumulateShifted(size_t v, const Part &part, int64_t r, Shifted shifted,
                                                Vec<T> (&sum)[rows][vectors]) const {
    const ConvVariant<T> &variant = variants_[v];
    int64_t taps = static_cast<int64_t>(variant.taps.size()), k = (part.c1 - part.c0) * taps, k0 = part.c0 * taps;
    const T *left = variant.left.base + part.group * variant.left.groupStride;
    const int32_t *offsets = offsets_[v].data();
    int64_t rowStride = variant.left.rowStride;
    auto right = [&](int64_t p, int w) { return shifted(offsets[p], w); };
    if (variant.left.packed) {
      const T *a = left + r / tileRows * rowStride + k0 * tileRows;
      accumulate<T, rows, vectors>(k, [&](int64_t p, int i) { return a[p * tileRows + i]; }, right, sum);
    } else {
      const T *a = left + r * rowStride + k0;
      accumulate<T, rows, vectors>(k, [&](int64_t p, int i) { return a[i * rowStride + p]; }, right, sum);
    }
  }

  void finish(const T *sum, T *to, int64_t count, T bias, bool add) const {
    if (result_.xStep == 1 && !add) {
      alignas(64) T values[lanes<T>];
      store(values, load(sum) + bias);
      return copyRun(to, values, count, 1);
    }
    for (int64_t j = 0; j < count; ++j) {
      T &d = to[j * result_.xStep];
      d = sum[j] + bias + (add ? d : T(0));
    }
  }

  /// Two variants that lie side by side: columns 0, 2, … and 1, 3, …
  void finishPair(const T *even, const T *odd, int64_t at, const int64_t *count, size_t v, T bias, bool add) const {
    T *to = variants_[v].base + at;
    if (count[0] < lanes<T> || count[1] < lanes<T>) { // halves too
      finish(even, to, count[0], bias, add);
      return finish(odd, variants_[v + 1].base + at, count[1], bias, add);
    }
    Vec<T> a = load(even) + bias, b = load(odd) + bias, low, high;
    if constexpr (lanes<T> == 8) {
      low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    } else {
      low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    }
    store(to, add ? low + load(to) : low);
    store(to + lanes<T>, add ? high + load(to + lanes<T>) : high);
  }

  std::optional<PaddedTile<T>> tile_;
  std::vector<ConvVariant<T>> variants_;
  std::vector<std::vector<int32_t>> offsets_; ///< per variant: of its rows (channel, tap) in the tile
  ConvResult<T> result_;
  int64_t batch_ = 0, groups_ = 0, channels_ = 0, rows_ = 0, height_ = 0;
  int64_t segment_ = lanes<T>; ///< columns of a segment
  int64_t segments_ = 0;       ///< in a row of pixels
  bool paired_ = false;
  int64_t images_ = 1, ys_ = 1, perBlock_ = 1, rowsPerBlock_ = 1;
  int64_t imageBlocks_ = 1, yBlocks_ = 1, rowBlocks_ = 1;
};

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_CALLS_CONV_DIRECTCONV_H
