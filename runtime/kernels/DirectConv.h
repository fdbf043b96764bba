//===- DirectConv.h - convolution on padded tiles of the images ------------===//
//
// The matrix of Gather.h is not even gathered: a task copies the rows of the images that it needs, for a block of
// channels, into a padded tile on its stack; every row (c, tap) of the matrix is then that tile, shifted:
//
//   tile[image][c][y][x mod stride][x / stride]      columns of one residue modulo the stride lie side by side
//   row (c, tap), column x  =  tile + base(column) + offset(c, tap)
//
//   for each block of channels:  fill the tile
//     for each two vectors of columns, for each six result rows:  accumulate in registers over (c, tap)
//
// Copying costs one pass over the input instead of one per tap. Serves the forward pass and, with gathered roles, the
// gradient of the input (Conv.cpp); one or two spatial dimensions.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_DIRECTCONV_H
#define LOWTIDE_RUNTIME_KERNELS_DIRECTCONV_H

#include "runtime/kernels/Gather.h"

#include <algorithm>
#include <optional>

namespace lowtide::rt::kernels {

/// The left side: rows of the filter, in the order of (channel, tap).
template <typename T> struct ConvLeft {
  const T *base = nullptr;
  int64_t groupStride = 0;
  int64_t rowStride = 0; ///< between rows; packed: between panels of six rows
  bool packed = false;
};

/// Where column (image, y, x) of result row r goes: base + image · imageStride + r · rowStride + y · yStep + x · xStep.
template <typename T> struct ConvResult {
  T *base = nullptr;
  int64_t imageStride = 0, groupStride = 0, rowStride = 0, yStep = 0, xStep = 1;
  const T *bias = nullptr; ///< one per result row of all groups, or null
};

template <typename T, int rows, int vectors, bool packedA>
void sumShifted(int64_t k, const T *a, int64_t rowStride, const T *first, const T *second, const int32_t *offsets,
                T *out) {
  Vec<T> sum[rows][vectors];
  for (auto &row : sum)
    for (auto &v : row)
      v = Vec<T>{};
#pragma clang loop unroll_count(2)
  for (int64_t p = 0; p < k; ++p) {
    Vec<T> right[vectors];
    right[0] = load(first + offsets[p]);
    if constexpr (vectors == 2)
      right[1] = load(second + offsets[p]);
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; ++i) {
      Vec<T> left = (packedA ? a[p * tileRows + i] : a[i * rowStride + p]) - Vec<T>{};
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; ++v)
        sum[i][v] += left * right[v];
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; ++i)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v)
      store(out + i * panel<T> + v * lanes<T>, sum[i][v]);
}

template <typename T, bool packedA>
void sumShiftedRows(int64_t rows, int64_t vectors, int64_t k, const T *a, int64_t rowStride, const T *first,
                    const T *second, const int32_t *offsets, T *out) {
  switch (rows * 2 + vectors - 1) {
#define LOWTIDE_TILE(r, v)                                                                                             \
  case r * 2 + v - 1:                                                                                                  \
    return sumShifted<T, r, v, packedA>(k, a, rowStride, first, second, offsets, out);
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

template <typename T> class DirectConv {
public:
  /// `gather`: source of the first group; `channels`: summed over, per group; `rows`: result rows per group. Nothing if
  /// the shape is not for this kernel: three spatial dimensions, images too narrow for whole vectors, too many taps.
  static std::optional<DirectConv> create(Gather<T> gather, int64_t batch, int64_t groups, int64_t channels,
                                          int64_t rows, const ConvLeft<T> &left, const ConvResult<T> &result) {
    DirectConv conv;
    conv.gather_ = std::move(gather);
    conv.batch_ = batch, conv.groups_ = groups, conv.channels_ = channels, conv.rows_ = rows;
    conv.left_ = left, conv.result_ = result;
    if (!conv.cut())
      return std::nullopt;
    return conv;
  }

  int64_t tasks() const { return groups_ * imageBlocks_ * yBlocks_ * rowBlocks_; }

  void run(int64_t task) const {
    int64_t rowBlock = task % rowBlocks_, yBlock = task / rowBlocks_ % yBlocks_;
    int64_t imageBlock = task / (rowBlocks_ * yBlocks_) % imageBlocks_,
            group = task / (rowBlocks_ * yBlocks_ * imageBlocks_);
    int64_t image0 = imageBlock * images_, image1 = std::min(batch_, image0 + images_);
    int64_t y0 = yBlock * ys_, y1 = std::min(gather_.grid[1], y0 + ys_);
    int64_t r0 = rowBlock * rowsPerBlock_, r1 = std::min(rows_, r0 + rowsPerBlock_);
    alignas(64) T tile[capacity];
    for (int64_t c0 = 0; c0 < channels_; c0 += perBlock_) {
      int64_t c1 = std::min(channels_, c0 + perBlock_);
      fill(tile, group, image0, image1, y0, y1, c0, c1);
      columns(tile, group, image0, image1, y0, y1, r0, r1, c0, c1);
    }
  }

private:
  /// Elements of the tile on the stack: 192 KiB.
  static constexpr int64_t capacity = 192 * 1024 / sizeof(T);
  static constexpr int64_t maxK = 320;
  /// Columns that a task aims at.
  static constexpr int64_t wantedColumns = 256;

  /// A vector of columns: where it is read in the tile (channel 0, tap offset 0), and where its result goes (row 0).
  struct Segment {
    const T *from;
    T *to;
    int64_t count;
  };

  bool cut() {
    int64_t taps = gather_.tapCount(), width = gather_.grid[2];
    if (gather_.grid[0] != 1 || gather_.size[0] != 1 || taps == 0 || taps > maxK)
      return false;
    flattenPoints();
    width = gather_.grid[2];
    segments_ = ceilDiv(width, lanes<T>);
    if (width * 10 < segments_ * lanes<T> * 6)
      return false;
    minX_ = minY_ = INT64_MAX;
    int64_t maxX = INT64_MIN, maxY = INT64_MIN;
    for (const TapOffset &tap : gather_.taps) {
      if (tap[0] != 0)
        return false;
      minY_ = std::min(minY_, tap[1]), maxY = std::max(maxY, tap[1]);
      minX_ = std::min(minX_, tap[2]), maxX = std::max(maxX, tap[2]);
    }
    stepX_ = gather_.scale[2], stepY_ = gather_.scale[1];
    residues_ = std::min(stepX_, maxX - minX_ + 1);
    length_ = segments_ * lanes<T> + (maxX - minX_) / stepX_;
    reachY_ = maxY - minY_ + 1;

    int64_t height = gather_.grid[1], perRow = segments_ * lanes<T>;
    ys_ = std::clamp<int64_t>(wantedColumns / perRow, 1, height);
    images_ = ys_ == height ? std::clamp<int64_t>(wantedColumns / (perRow * height), 1, batch_) : 1;
    perBlock_ = ceilDiv(channels_, ceilDiv(channels_, std::max<int64_t>(1, maxK / taps)));
    auto tileElements = [&] { return images_ * perBlock_ * tileRowCount() * residues_ * length_; };
    while (tileElements() > capacity) {
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
      imageBlocks_ = ceilDiv(batch_, images_), yBlocks_ = ceilDiv(height, ys_),
      rowBlocks_ = ceilDiv(rows_, rowsPerBlock_);
      return tasks();
    };
    while (blocks() < 8 && rowsPerBlock_ * images_ * ys_ * perRow * channels_ * taps > 1024 * 1024) {
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
    images_ = ceilDiv(batch_, imageBlocks_), ys_ = ceilDiv(height, yBlocks_);
    blocks();

    channelElements_ = tileRowCount() * residues_ * length_;
    for (int64_t c = 0; c < perBlock_; ++c)
      for (const TapOffset &tap : gather_.taps) {
        int64_t x = tap[2] - minX_;
        offsets_.push_back(static_cast<int32_t>(c * channelElements_ + (tap[1] - minY_) * residues_ * length_ +
                                                x % stepX_ * length_ + x / stepX_));
      }
    return true;
  }

  /// With a single tap at the pixel itself, rows mean nothing: the image is cut into rows of whole vectors.
  void flattenPoints() {
    bool points = gather_.tapCount() == 1 && gather_.taps[0] == TapOffset{0, 0, 0} && gather_.size == gather_.grid &&
                  gather_.scale == ConvShape::Dims{1, 1, 1} && result_.xStep == 1 && result_.yStep == gather_.grid[2];
    int64_t pixels = gather_.pixels();
    for (int64_t width : {int64_t(64), int64_t(32), int64_t(16), int64_t(8)})
      if (points && pixels % width == 0) {
        gather_.grid = gather_.size = {1, pixels / width, width};
        result_.yStep = width;
        return;
      }
  }

  int64_t tileRowCount() const { return (ys_ - 1) * stepY_ + reachY_; }

  void fill(T *tile, int64_t group, int64_t image0, int64_t image1, int64_t y0, int64_t y1, int64_t c0,
            int64_t c1) const {
    int64_t rowCount = (y1 - y0 - 1) * stepY_ + reachY_, height = gather_.size[1], width = gather_.size[2];
    for (int64_t image = image0; image < image1; ++image)
      for (int64_t c = c0; c < c1; ++c) {
        T *to = tile + ((image - image0) * perBlock_ + c - c0) * channelElements_;
        const T *channel =
            gather_.source + image * gather_.imageStride + (group * channels_ + c) * gather_.channelStride;
        for (int64_t row = 0; row < rowCount; ++row) {
          int64_t y = y0 * stepY_ + minY_ + row;
          for (int64_t residue = 0; residue < residues_; ++residue, to += length_) {
            // Position i holds column i · step + shift, or zero outside the image.
            int64_t shift = residue + minX_;
            int64_t low = shift < 0 ? std::min(length_, ceilDiv(-shift, stepX_)) : 0;
            int64_t high = width > shift ? std::min(length_, ceilDiv(width - shift, stepX_)) : 0;
            if (y < 0 || y >= height || low >= high) {
              std::memset(to, 0, static_cast<size_t>(length_) * sizeof(T));
              continue;
            }
            for (int64_t i = 0; i < low; ++i)
              to[i] = 0;
            copyRun(to + low, channel + y * width + low * stepX_ + shift, high - low, stepX_);
            for (int64_t i = high; i < length_; ++i)
              to[i] = 0;
          }
        }
      }
  }

  void columns(const T *tile, int64_t group, int64_t image0, int64_t image1, int64_t y0, int64_t y1, int64_t r0,
               int64_t r1, int64_t c0, int64_t c1) const {
    Segment pair[2];
    int64_t waiting = 0, width = gather_.grid[2];
    auto flush = [&] {
      if (waiting)
        product(pair, waiting, group, r0, r1, c0, c1);
      waiting = 0;
    };
    for (int64_t image = image0; image < image1; ++image)
      for (int64_t y = y0; y < y1; ++y)
        for (int64_t s = 0; s < segments_; ++s) {
          int64_t x = s * lanes<T>;
          pair[waiting++] = {tile + (image - image0) * perBlock_ * channelElements_ +
                                 (y - y0) * stepY_ * residues_ * length_ + x,
                             result_.base + image * result_.imageStride + group * result_.groupStride +
                                 y * result_.yStep + x * result_.xStep,
                             std::min(lanes<T>, width - x)};
          if (waiting == 2)
            flush();
        }
    flush();
  }

  void product(const Segment *pair, int64_t vectors, int64_t group, int64_t r0, int64_t r1, int64_t c0,
               int64_t c1) const {
    alignas(64) T sums[tileRows * panel<T>];
    int64_t taps = gather_.tapCount(), k = (c1 - c0) * taps, k0 = c0 * taps;
    const T *left = left_.base + group * left_.groupStride;
    const T *bias = c0 == 0 && result_.bias ? result_.bias + group * rows_ : nullptr;
    const T *second = vectors == 2 ? pair[1].from : nullptr;
    for (int64_t r = r0; r < r1; r += tileRows) {
      int64_t rows = std::min(tileRows, r1 - r);
      if (left_.packed)
        sumShiftedRows<T, true>(rows, vectors, k, left + r / tileRows * left_.rowStride + k0 * tileRows, 0,
                                pair[0].from, second, offsets_.data(), sums);
      else
        sumShiftedRows<T, false>(rows, vectors, k, left + r * left_.rowStride + k0, left_.rowStride, pair[0].from,
                                 second, offsets_.data(), sums);
      for (int64_t v = 0; v < vectors; ++v)
        for (int64_t i = 0; i < rows; ++i)
          finish(sums + i * panel<T> + v * lanes<T>, pair[v].to + (r + i) * result_.rowStride, pair[v].count,
                 bias ? bias[r + i] : T(0), c0 != 0);
    }
  }

  void finish(const T *sum, T *to, int64_t count, T bias, bool add) const {
    if (count == lanes<T> && result_.xStep == 1) {
      Vec<T> value = load(sum) + bias;
      store(to, add ? value + load(to) : value);
      return;
    }
    for (int64_t j = 0; j < count; ++j) {
      T &d = to[j * result_.xStep];
      d = sum[j] + bias + (add ? d : T(0));
    }
  }

  Gather<T> gather_;
  ConvLeft<T> left_;
  ConvResult<T> result_;
  int64_t batch_ = 0, groups_ = 0, channels_ = 0, rows_ = 0;
  int64_t segments_ = 0, stepX_ = 1, stepY_ = 1, minX_ = 0, minY_ = 0;
  int64_t residues_ = 1; ///< modulo the horizontal stride that are kept
  int64_t length_ = 0;   ///< positions per residue in a tile row
  int64_t reachY_ = 1;   ///< source rows that one result row looks at
  int64_t images_ = 1, ys_ = 1, perBlock_ = 1, rowsPerBlock_ = 1;
  int64_t imageBlocks_ = 1, yBlocks_ = 1, rowBlocks_ = 1;
  int64_t channelElements_ = 0;
  std::vector<int32_t> offsets_;
};

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_KERNELS_DIRECTCONV_H
