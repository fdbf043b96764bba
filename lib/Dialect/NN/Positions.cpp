//===- Positions.cpp - where an op's elements come from ---------*- C++ -*-===//
//
// Dimensions that pass through movements, and tensors that are put together of pieces.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Positions.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Support/StableSort.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

static ArrayRef<int64_t> shapeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getShape(); }

static std::optional<int64_t> passIf(bool passes, int64_t dim) {
  return passes ? std::optional<int64_t>(dim) : std::nullopt;
}

/// The dimension of `from` that has the extent of dimension `dim` of `to`, with as many elements before it.
static std::optional<int64_t> findRegrouped(ArrayRef<int64_t> to, ArrayRef<int64_t> from, int64_t dim) {
  const int64_t before = ShapedType::getNumElements(to.take_front(dim));
  int64_t own = 1;
  for (auto [d, extent] : llvm::enumerate(from)) {
    if (own == before && extent == to[dim])
      return d;
    own *= extent;
  }
  return std::nullopt;
}

std::optional<int64_t> nn::getPassedDim(Operation *op, unsigned operand, int64_t dim) {
  const ArrayRef<int64_t> from = shapeOf(op->getOperand(operand)), to = shapeOf(op->getResult(0));
  if (to[dim] == 1)
    return -1;
  if (op->hasTrait<OpTrait::Elementwise>())
    return from == to ? dim : passIf(llvm::all_of(from, [](int64_t extent) { return extent == 1; }), -1);
  return llvm::TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case([&](BroadcastOp broadcast) -> std::optional<int64_t> {
        auto found = llvm::find(broadcast.getDims(), dim);
        const int64_t place = found - broadcast.getDims().begin();
        return found == broadcast.getDims().end() || from[place] == 1 ? -1 : place;
      })
      .Case([&](ReshapeOp) { return findRegrouped(to, from, dim); })
      .Case([&](TransposeOp transpose) { return std::optional(transpose.getPermutation()[dim]); })
      .Case([&](SliceOp slice) {
        return passIf(from[dim] == to[dim] && slice.getStarts()[dim] == 0 && slice.getStrides()[dim] == 1, dim);
      })
      .Case([&](PadOp) { return passIf(from[dim] == to[dim], dim); })
      .Case([&](ReverseOp reverse) { return passIf(!llvm::is_contained(reverse.getDims(), dim), dim); })
      .Case([&](ConcatOp concat) { return passIf(static_cast<int64_t>(concat.getDim()) != dim, dim); })
      .Default([](Operation *) { return std::nullopt; });
}

/// The one dimension in which `pad` puts zeros around its operand and not between.
static std::optional<int64_t> getPaddedDim(PadOp pad) {
  std::optional<int64_t> padded;
  const llvm::APFloat value = pad.getValue();
  if (!value.isZero() || value.isNegative())
    return std::nullopt;
  for (int64_t d = 0, rank = shapeOf(pad.getY()).size(); d < rank; ++d) {
    if (pad.getInterior()[d] != 0)
      return std::nullopt;
    if (shapeOf(pad.getX())[d] == shapeOf(pad.getY())[d])
      continue;
    if (padded)
      return std::nullopt;
    padded = d;
  }
  return padded;
}

static std::optional<Pieces> getSummedPieces(AddOp sum) {
  Pieces pieces;
  pieces.isSum = true;
  SmallVector<PadOp> pads;
  SmallVector<Value> left{sum.getResult()};
  while (!left.empty()) {
    Value term = left.pop_back_val();
    if (auto add = term.getDefiningOp<AddOp>()) {
      llvm::append_range(left, add->getOperands());
    } else if (auto pad = term.getDefiningOp<PadOp>(); pad && getPaddedDim(pad)) {
      pads.push_back(pad);
    } else if (!pieces.rest) {
      pieces.rest = term;
    } else {
      return std::nullopt; // of two such terms the order of additions counts
    }
  }
  if (pads.size() < 2)
    return std::nullopt;
  pieces.dim = *getPaddedDim(pads.front());
  sortStably(pads, [&](PadOp a, PadOp b) { return a.getLow()[pieces.dim] < b.getLow()[pieces.dim]; });
  int64_t end = 0;
  for (PadOp pad : pads) {
    const int64_t start = pad.getLow()[pieces.dim];
    if (*getPaddedDim(pad) != pieces.dim || start < end)
      return std::nullopt;
    pieces.values.push_back(pad.getX());
    pieces.starts.push_back(start);
    end = start + shapeOf(pad.getX())[pieces.dim];
  }
  return pieces;
}

std::optional<Pieces> nn::getPieces(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto sum = dyn_cast_or_null<AddOp>(op))
    return getSummedPieces(sum);
  auto concat = dyn_cast_or_null<ConcatOp>(op);
  if (!concat)
    return std::nullopt;
  Pieces pieces;
  pieces.dim = concat.getDim();
  int64_t start = 0;
  for (Value x : concat.getXs()) {
    pieces.values.push_back(x);
    pieces.starts.push_back(start);
    start += shapeOf(x)[pieces.dim];
  }
  return pieces;
}
