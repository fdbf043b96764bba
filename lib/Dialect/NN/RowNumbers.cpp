//===- RowNumbers.cpp - integers that number rows of samples --------------===//
//
// A walk from the numbers to what they are made of, as far as integers go.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/RowNumbers.h"
#include "BatchLabels.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Positions.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

namespace {
class RowNumbers {
public:
  explicit RowNumbers(int64_t samples) : samples(samples) {}

  std::optional<int64_t> get(Value value, const BatchPosition &position);

private:
  std::optional<int64_t> find(Value value, const BatchPosition &position);
  std::optional<int64_t> ofConstant(DenseElementsAttr elements, const BatchPosition &position) const;
  std::optional<int64_t> ofSlice(SliceOp slice, const BatchPosition &position);
  std::optional<int64_t> ofProduct(MulOp product, const BatchPosition &position);
  /// What all of `values` have in common.
  std::optional<int64_t> common(ValueRange values, const BatchPosition &position);
  /// 0, where no number of a sample enters any of them.
  std::optional<int64_t> none(ValueRange values, const BatchPosition &position) {
    return common(values, position) == 0 ? std::optional<int64_t>(0) : std::nullopt;
  }

  int64_t samples;
  llvm::DenseMap<Value, std::pair<BatchPosition, std::optional<int64_t>>> known;
};
} // namespace

std::optional<int64_t> RowNumbers::get(Value value, const BatchPosition &position) {
  if (!isa<IntegerType>(typeOf(value).getElementType()) || typeOf(value).getElementType().isInteger(1))
    return 0;
  auto found = known.find(value);
  if (found != known.end())
    return found->second.first == position ? found->second.second : std::nullopt;
  std::optional<int64_t> answer = find(value, position);
  known[value] = {position, answer};
  return answer;
}

std::optional<int64_t> RowNumbers::common(ValueRange values, const BatchPosition &position) {
  std::optional<int64_t> all = get(values.front(), position);
  for (Value value : values.drop_front())
    if (get(value, position) != all)
      return std::nullopt;
  return all;
}

/// Every element of a sample is k more than the one at its place in the sample before.
std::optional<int64_t> RowNumbers::ofConstant(DenseElementsAttr elements, const BatchPosition &position) const {
  if (elements.isSplat() || samples < 2)
    return 0;
  const int64_t distance = distanceOf(elements.getType().getShape(), position);
  SmallVector<int64_t> numbers;
  for (const llvm::APInt &element : elements.getValues<llvm::APInt>())
    numbers.push_back(element.getSExtValue());
  const int64_t step = numbers[distance] - numbers[0];
  for (int64_t i = distance, count = int64_t(numbers.size()); i < count; ++i)
    if (i / distance % samples && numbers[i] - numbers[i - distance] != step)
      return std::nullopt;
  return step;
}

std::optional<int64_t> RowNumbers::ofSlice(SliceOp slice, const BatchPosition &position) {
  if (getPassedDim(slice, 0, position.dim) != position.dim)
    return std::nullopt;
  // Columns of numbers side by side, one for each dimension, of which it takes one or some.
  auto pieces = getPieces(slice.getX());
  if (!pieces || pieces->isSum || pieces->dim == position.dim || slice.getStrides()[pieces->dim] != 1)
    return get(slice.getX(), position);
  const int64_t start = slice.getStarts()[pieces->dim], end = start + typeOf(slice.getY()).getDimSize(pieces->dim);
  SmallVector<Value> taken;
  for (auto [piece, first] : llvm::zip_equal(pieces->values, pieces->starts))
    if (first < end && first + typeOf(piece).getDimSize(pieces->dim) > start)
      taken.push_back(piece);
  return common(taken, position);
}

std::optional<int64_t> RowNumbers::ofProduct(MulOp product, const BatchPosition &position) {
  for (unsigned scaled : {0, 1})
    if (llvm::APInt scale; matchPattern(product->getOperand(1 - scaled), m_ConstantInt(&scale)))
      if (auto own = get(product->getOperand(scaled), position))
        return *own * scale.getSExtValue();
  return std::nullopt;
}

std::optional<int64_t> RowNumbers::find(Value value, const BatchPosition &position) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  if (DenseElementsAttr elements; matchPattern(op, m_Constant(&elements)))
    return ofConstant(elements, position);
  return llvm::TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case([&](IotaOp iota) { return int64_t(iota.getDim()) == position.dim ? position.inner : 0; })
      .Case([&](CastOp cast) { return get(cast.getX(), position); })
      .Case([&](TransposeOp transpose) {
        return get(transpose.getX(), position.at(transpose.getPermutation()[position.dim]));
      })
      .Case([&](BroadcastOp broadcast) -> std::optional<int64_t> {
        auto from = getPassedDim(broadcast, 0, position.dim);
        if (!from)
          return std::nullopt;
        return *from < 0 ? 0 : get(broadcast.getX(), position.at(*from));
      })
      .Case([&](ReshapeOp reshape) -> std::optional<int64_t> {
        auto from = reshapePosition(typeOf(reshape.getY()), position, typeOf(reshape.getX()), samples);
        return from ? get(reshape.getX(), *from) : std::nullopt;
      })
      .Case([&](SliceOp slice) { return ofSlice(slice, position); })
      .Case([&](ConcatOp concat) -> std::optional<int64_t> {
        return int64_t(concat.getDim()) == position.dim ? std::nullopt : common(concat.getXs(), position);
      })
      .Case([&](AddOp sum) -> std::optional<int64_t> {
        auto x = get(sum->getOperand(0), position), y = get(sum->getOperand(1), position);
        return x && y ? std::optional(*x + *y) : std::nullopt;
      })
      .Case([&](SubOp difference) -> std::optional<int64_t> {
        auto x = get(difference->getOperand(0), position), y = get(difference->getOperand(1), position);
        return x && y ? std::optional(*x - *y) : std::nullopt;
      })
      .Case([&](MulOp product) -> std::optional<int64_t> {
        if (auto scaled = ofProduct(product, position))
          return scaled;
        return none(product->getOperands(), position);
      })
      .Case([&](SelectOp select) -> std::optional<int64_t> {
        return common(select->getOperands().drop_front(), position);
      })
      .Default([&](Operation *other) -> std::optional<int64_t> {
        // What finds places or reads numbers of a table answers for a sample's own rows.
        if (!other->hasTrait<OpTrait::Elementwise>())
          return 0;
        return none(other->getOperands(), position);
      });
}

std::optional<int64_t> nn::getRowsOfSample(Value numbers, const BatchPosition &position, int64_t samples) {
  return RowNumbers(samples).get(numbers, position);
}

bool nn::areOwnRows(DenseElementsAttr numbers, const BatchPosition &position, int64_t samples) {
  const int64_t distance = distanceOf(numbers.getType().getShape(), position), rows = samples * position.renumbered;
  for (auto [i, element] : llvm::enumerate(numbers.getValues<llvm::APInt>())) {
    const int64_t row = element.getSExtValue();
    if (row < 0 || row >= rows * position.rowBlocks ||
        row % rows / position.renumbered != int64_t(i) / distance % samples)
      return false;
  }
  return true;
}
