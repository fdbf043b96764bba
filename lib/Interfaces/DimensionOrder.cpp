//===- DimensionOrder.cpp - in which order a tensor is stored ---*- C++ -*-===//

#include "lowtide/Interfaces/DimensionOrder.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace lowtide;

/// Takes the factors out for which `gone` holds, and renumbers the others.
static void dropFactors(SmallVectorImpl<int64_t> &extents, SmallVectorImpl<int64_t> &order,
                        function_ref<bool(int64_t)> gone) {
  SmallVector<int64_t> numbers, kept, places;
  for (auto [i, extent] : llvm::enumerate(extents)) {
    numbers.push_back(kept.size());
    if (!gone(i))
      kept.push_back(extent);
  }
  for (int64_t factor : order)
    if (!gone(factor))
      places.push_back(numbers[factor]);
  extents.assign(kept);
  order.assign(places);
}

DimensionOrder::DimensionOrder(ArrayRef<int64_t> extents, ArrayRef<int64_t> order) : extents(extents), order(order) {
  dropFactors(this->extents, this->order, [&](int64_t i) { return this->extents[i] == 1; });
  // Whatever follows in memory what comes before it in row-major order, too, is one factor with it.
  SmallVector<bool> joined(this->extents.size());
  for (size_t i = this->order.size(); i-- > 1;) {
    int64_t before = this->order[i - 1], factor = this->order[i];
    if (factor != before + 1)
      continue;
    joined[factor] = true;
    this->extents[before] *= this->extents[factor];
  }
  dropFactors(this->extents, this->order, [&](int64_t i) { return joined[i]; });
}

DimensionOrder DimensionOrder::channelsLast(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> order{0};
  llvm::append_range(order, llvm::seq<int64_t>(2, shape.size()));
  order.push_back(1);
  return DimensionOrder(shape, order);
}

std::optional<PlacedOrder> PlacedOrder::get(const DimensionOrder &order, ArrayRef<int64_t> shape) {
  PlacedOrder placed;
  if (order.isNatural()) {
    placed.extents.assign(shape.begin(), shape.end());
    placed.dims = placed.order = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
    return placed;
  }
  // Pieces from the innermost on: each ends where a factor or a dimension does.
  SmallVector<SmallVector<int64_t>> piecesOf(order.extents.size());
  int64_t dim = shape.size() - 1, left = shape.empty() ? 1 : shape[dim];
  for (int64_t factor = order.extents.size() - 1; factor >= 0; --factor)
    for (int64_t rest = order.extents[factor]; rest > 1;) {
      while (left == 1 && dim > 0)
        left = shape[--dim];
      const int64_t piece = std::min(rest, left);
      if (piece < 2 || rest % piece || left % piece)
        return std::nullopt;
      piecesOf[factor].push_back(placed.extents.size());
      placed.extents.push_back(piece);
      placed.dims.push_back(dim);
      rest /= piece;
      left /= piece;
    }
  const int64_t count = placed.extents.size();
  std::reverse(placed.extents.begin(), placed.extents.end());
  std::reverse(placed.dims.begin(), placed.dims.end());
  for (int64_t factor : order.order)
    for (int64_t piece : llvm::reverse(piecesOf[factor]))
      placed.order.push_back(count - 1 - piece);
  return placed;
}

SmallVector<int64_t> PlacedOrder::getStoredShape() const {
  return llvm::map_to_vector(order, [&](int64_t factor) { return extents[factor]; });
}

SmallVector<int64_t> PlacedOrder::getPlaces(int64_t dim) const {
  SmallVector<int64_t> places;
  for (auto [place, factor] : llvm::enumerate(order))
    if (dims[factor] == dim)
      places.push_back(place);
  return places;
}

DimensionOrder PlacedOrder::restrictTo(ArrayRef<int64_t> kept) const {
  SmallVector<int64_t> left = extents, places = order;
  dropFactors(left, places, [&](int64_t i) { return !llvm::is_contained(kept, dims[i]); });
  return DimensionOrder(left, places);
}

LogicalResult OrderFlow::set(std::optional<DimensionOrder> &place, const DimensionOrder &order) {
  if (place && !(*place == order))
    return failure();
  place = order;
  return success();
}

SmallVector<Value> OrderFlow::make(ValueRange values, ArrayRef<SmallVector<int64_t>> shapes,
                                   ArrayRef<NamedAttribute> changed) {
  Operation *copy = op->cloneWithoutRegions();
  copy->setOperands(values);
  for (NamedAttribute attribute : changed)
    copy->setAttr(attribute.getName(), attribute.getValue());
  for (auto [result, shape] : llvm::zip_equal(copy->getResults(), shapes))
    result.setType(cast<RankedTensorType>(result.getType()).clone(shape));
  builder->insert(copy);
  return copy->getResults();
}
