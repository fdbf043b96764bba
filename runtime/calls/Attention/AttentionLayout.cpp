//===- AttentionShape.cpp - where an attention's operands lie --------------===//

#include "runtime/calls/Attention/AttentionShape.h"

#include <algorithm>

namespace lowtide::rt {
namespace {

/// A dimension of some layout.
struct Extent {
  int64_t count, stride;
};

/// The dimensions of a layout, the widest steps first; neighbours that continue one another are one, units none.
std::vector<Extent> merged(const std::array<int64_t, 4> &dims, const TensorLayout &layout) {
  std::vector<Extent> all, result;
  for (size_t d = 0; d < 4; ++d)
    if (dims[d] != 1)
      all.push_back({dims[d], layout.strides[d]});
  std::sort(all.begin(), all.end(), [](const Extent &a, const Extent &b) { return a.stride > b.stride; });
  for (const Extent &each : all)
    if (!result.empty() && result.back().stride == each.stride * each.count)
      result.back() = {result.back().count * each.count, each.stride};
    else
      result.push_back(each);
  return result;
}

} // namespace

std::array<int64_t, 4> AttentionShape::dims(Tensor tensor) const {
  switch (tensor) {
  case Q:
  case GradQ:
    return {batch, heads, rows, depth};
  case K:
  case GradK:
    return {batch, keyHeads, columns, depth};
  case V:
  case GradV:
    return {batch, keyHeads, columns, valueDepth};
  default:
    return {batch, heads, rows, valueDepth};
  }
}

uint64_t AttentionShape::elements(Tensor tensor) const {
  uint64_t count = 1;
  for (int64_t dim : dims(tensor))
    count *= static_cast<uint64_t>(dim);
  return count;
}

void AttentionShape::pack(Tensor tensor) {
  int64_t stride = 1;
  const std::array<int64_t, 4> extents = dims(tensor);
  layouts[tensor].offset = 0;
  for (size_t d = 4; d-- > 0; stride *= extents[d])
    layouts[tensor].strides[d] = stride;
}

uint64_t AttentionShape::span(Tensor tensor) const {
  int64_t last = layouts[tensor].offset;
  const std::array<int64_t, 4> extents = dims(tensor);
  for (size_t d = 0; d < 4; ++d)
    last += (extents[d] - 1) * layouts[tensor].strides[d];
  return static_cast<uint64_t>(last) + 1;
}

bool AttentionShape::fillsResults() const {
  auto isDense = [&](Tensor tensor) {
    std::vector<Extent> extents = merged(dims(tensor), layouts[tensor]);
    return layouts[tensor].offset == 0 && (extents.empty() || (extents.size() == 1 && extents[0].stride == 1));
  };
  if (!isGradient)
    return isDense(O);
  if (!sharesResult)
    return isDense(GradQ) && isDense(GradK) && isDense(GradV);
  // Each has the same places in every row of the result, or all of the result is one row.
  const int64_t total = static_cast<int64_t>(elements(GradQ) + elements(GradK) + elements(GradV));
  std::vector<std::pair<int64_t, int64_t>> parts;
  int64_t rowSize = 0, end = 0;
  for (Tensor tensor : {GradQ, GradK, GradV}) {
    std::vector<Extent> extents = merged(dims(tensor), layouts[tensor]);
    if (extents.empty() || extents.size() > 2 || extents.back().stride != 1)
      return false;
    const int64_t size = extents.size() == 2 ? extents[0].stride : total;
    if (rowSize && size != rowSize)
      return false;
    if (extents.size() == 2 && extents[0].count != total / size)
      return false;
    rowSize = size;
    parts.emplace_back(layouts[tensor].offset, extents.back().count);
  }
  std::sort(parts.begin(), parts.end());
  for (auto [offset, count] : parts) {
    if (offset != end)
      return false;
    end = offset + count;
  }
  return end == rowSize && total % rowSize == 0;
}

} // namespace lowtide::rt
