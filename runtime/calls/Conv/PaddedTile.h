//===- PaddedTile.h - a part of some images, copied with its padding -------===//
//
// The matrix of Gather.h need not be gathered: where the rows of the images that a task needs, for a block of channels,
// lie in a padded tile, every row (c, tap) of the matrix is that tile, shifted by a constant:
//
//   tile[image][c][y][x mod stride][x / stride]      columns of one residue modulo the stride lie side by side
//   row (c, tap), column (image, y, x)  =  tile[position(image, y) + x + offset(c, tap)]
//
// Copying costs one pass over the input instead of one per tap. One or two spatial dimensions.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_CONV_PADDEDTILE_H
#define LOWTIDE_RUNTIME_CALLS_CONV_PADDEDTILE_H

#include "runtime/calls/Conv/Gather.h"

#include <algorithm>
#include <optional>

namespace lowtide::rt::kernels {

template <typename T> class PaddedTile {
public:
  /// Serves rows of `columns` pixels for all `gather.taps`. Nothing for three spatial dimensions or no taps at all.
  static std::optional<PaddedTile> create(const Gather<T> &gather, int64_t columns) {
    PaddedTile tile;
    if (gather.grid[0] != 1 || gather.size[0] != 1 || gather.taps.empty())
      return std::nullopt;
    tile.gather_ = gather;
    int64_t maxX = INT64_MIN, maxY = INT64_MIN;
    tile.minX_ = tile.minY_ = INT64_MAX;
    for (const TapOffset &tap : gather.taps) {
      if (tap[0] != 0)
        return std::nullopt;
      tile.minY_ = std::min(tile.minY_, tap[1]), maxY = std::max(maxY, tap[1]);
      tile.minX_ = std::min(tile.minX_, tap[2]), maxX = std::max(maxX, tap[2]);
    }
    tile.stepX_ = gather.scale[2], tile.stepY_ = gather.scale[1];
    tile.reachY_ = maxY - tile.minY_ + 1;
    tile.length_ = std::max(lanes<T>, columns + (maxX - tile.minX_) / tile.stepX_);
    for (int64_t residue = 0; residue < std::min(tile.stepX_, maxX - tile.minX_ + 1); ++residue)
      tile.addSpan(residue + tile.minX_);
    return tile;
  }

  /// Elements of a tile of so many images, rows of pixels and channels.
  int64_t elements(int64_t images, int64_t rows, int64_t channels) const {
    return images * channels * channelElements(rows);
  }
  /// Fixes the shape; a smaller part may be filled.
  void setShape(int64_t rows, int64_t channels) {
    channelElements_ = channelElements(rows);
    imageElements_ = channels * channelElements_;
  }

  int64_t offset(int64_t channel, const TapOffset &tap) const {
    int64_t x = tap[2] - minX_;
    return channel * channelElements_ + (tap[1] - minY_) * rowElements() + x % stepX_ * length_ + x / stepX_;
  }
  /// Column 0 of row `y`, counted from the first row of the tile.
  int64_t position(int64_t image, int64_t y) const { return image * imageElements_ + y * rowStep(); }
  int64_t rowStep() const { return stepY_ * rowElements(); }

  /// Copies channels [c0, c1), counted from the source's first, for rows [y0, y1) of images [image0, image1).
  void fill(T *tile, int64_t image0, int64_t image1, int64_t y0, int64_t y1, int64_t c0, int64_t c1) const {
    int64_t rows = (y1 - y0 - 1) * stepY_ + reachY_, height = gather_.size[1], width = gather_.size[2];
    int64_t top = y0 * stepY_ + minY_;
    for (int64_t image = image0; image < image1; ++image)
      for (int64_t c = c0; c < c1; ++c) {
        T *to = tile + (image - image0) * imageElements_ + (c - c0) * channelElements_;
        const T *channel = gather_.source + image * gather_.imageStride + c * gather_.channelStride;
        for (int64_t y = top; y < top + rows; ++y, to += rowElements())
          fillRow(to, y >= 0 && y < height ? channel + y * width : nullptr);
      }
  }

private:
  /// What one residue takes from a row: position i, from low to high, holds column i · step + shift of the image; the
  /// others are zero.
  struct Span {
    int64_t shift, low, high;
  };

  void addSpan(int64_t shift) {
    int64_t width = gather_.size[2];
    int64_t low = shift < 0 ? std::min(length_, ceilDiv(-shift, stepX_)) : 0;
    int64_t high = width > shift ? std::min(length_, ceilDiv(width - shift, stepX_)) : 0;
    spans_.push_back({shift, low, std::max(low, high)});
  }

  int64_t rowElements() const { return static_cast<int64_t>(spans_.size()) * length_; }
  int64_t channelElements(int64_t rows) const { return ((rows - 1) * stepY_ + reachY_) * rowElements(); }

  void clear(T *to, int64_t count) const {
    for (int64_t i = 0; i + lanes<T> <= count; i += lanes<T>)
      store(to + i, Vec<T>{});
    store(to + count - lanes<T>, Vec<T>{}); // length_ ≥ lanes
  }

  /// `row`: the row of the image, or null outside of it.
  void fillRow(T *to, const T *row) const {
    for (const Span &span : spans_) {
      bool narrow = span.low <= lanes<T> && length_ - span.high <= lanes<T>;
      if (!row || !narrow) {
        clear(to, length_);
      } else {
        store(to, Vec<T>{});
        store(to + length_ - lanes<T>, Vec<T>{});
      }
      if (row && span.low < span.high)
        copyRun(to + span.low, row + span.low * stepX_ + span.shift, span.high - span.low, stepX_);
      to += length_;
    }
  }

  Gather<T> gather_;
  std::vector<Span> spans_;
  int64_t stepX_ = 1, stepY_ = 1, minX_ = 0, minY_ = 0;
  int64_t length_ = 0; ///< positions per residue in a tile row
  int64_t reachY_ = 1; ///< source rows that one row of pixels looks at
  int64_t channelElements_ = 0, imageElements_ = 0;
};

/// Where rows of pixels mean nothing, each image is cut into rows of whole vectors. True if the gather was such, and
/// was changed.
template <typename T> inline bool flattenPoints(Gather<T> &gather) {
  if (!gather.hasOnlyPoints())
    return false;
  int64_t pixels = gather.pixels();
  for (int64_t width : {int64_t(64), int64_t(32), int64_t(16), int64_t(8)})
    if (pixels % width == 0) {
      gather.grid = gather.size = {1, pixels / width, width};
      return true;
    }
  return false;
}

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_CALLS_CONV_PADDEDTILE_H
