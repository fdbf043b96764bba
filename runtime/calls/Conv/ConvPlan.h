//===- ConvPlan.h - how a convolution is cut into tasks --------------------===//
//
// The cut depends on the shape alone, never on the number of threads: so do the workspace and every bit of the result.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_CONV_CONVPLAN_H
#define LOWTIDE_RUNTIME_CALLS_CONV_CONVPLAN_H

#include "runtime/calls/Conv/ConvShape.h"
#include "runtime/kernels/TileSize.h"

#include <algorithm>
#include <cstdint>

namespace lowtide::rt {

/// The gradient of the filter is a sum over all images and pixels. It is cut into `parts` partial sums along that sum
/// and into blocks of `rowsPerBlock` filter positions; the partial sums lie side by side in the workspace and are added
/// in order.
struct FilterGradCut {
  int64_t rows;         ///< channels × filter volume, per group
  int64_t paddedOut;    ///< output channels per group, rounded up to tileColumns
  int64_t rowsPerBlock; ///< whole channels
  int64_t blocks;
  int64_t parts;

  explicit FilterGradCut(const ConvShape &shape) {
    rows = shape.channels * ConvShape::volume(shape.filter);
    paddedOut = ceilDiv(shape.outChannels, tileColumns) * tileColumns;
    rowsPerBlock = channelsPerBlock(shape) * ConvShape::volume(shape.filter);
    blocks = ceilDiv(rows, rowsPerBlock);
    parts = std::clamp<int64_t>(ceilDiv(16, blocks * shape.groups), 1, mostParts(shape));
  }
  /// About 144 rows, fewer where that leaves too little to share; blocks are balanced.
  static int64_t channelsPerBlock(const ConvShape &shape) {
    int64_t taps = ConvShape::volume(shape.filter), wanted = std::max<int64_t>(1, 144 / taps);
    while (ceilDiv(shape.channels, wanted) * shape.groups * mostParts(shape) < 8 && wanted > 1 && wanted * taps > 48)
      wanted = ceilDiv(wanted, 2);
    return ceilDiv(shape.channels, ceilDiv(shape.channels, wanted));
  }
  static int64_t mostParts(const ConvShape &shape) {
    return std::max<int64_t>(1, shape.batch * ConvShape::volume(shape.output) / 256);
  }
  int64_t partElements(const ConvShape &shape) const { return shape.groups * rows * paddedOut; }
};

/// Elements of the filter when its input channels are turned into tiles of rows: [group][channel tile][out ×
/// volume][6].
inline int64_t packedFilterElements(const ConvShape &shape) {
  return shape.groups * ceilDiv(shape.channels, tileRows) * tileRows * shape.outChannels *
         ConvShape::volume(shape.filter);
}

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLS_CONV_CONVPLAN_H
