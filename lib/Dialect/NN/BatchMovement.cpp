//===- BatchMovement.cpp - ops that move samples ----------------*- C++ -*-===//
//
// Blocks of all samples (several views of a batch, one after another in its dimension) may be put together and taken
// apart; so may elements of each sample.
//
//===----------------------------------------------------------------------===//

#include "BatchLabels.h"
#include "lowtide/Dialect/NN/BatchPart.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Scan.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

LogicalResult nn::splitBroadcast(Operation *op, BatchSplit &split) {
  LabelTable table = identities(op);
  table.operands[0] = llvm::to_vector(arrayAttr(op, "dims"));
  return follow(table, split, Names::Kept);
}

std::optional<BatchPosition> nn::reshapePosition(RankedTensorType from, BatchPosition position, RankedTensorType to,
                                                 int64_t samples) {
  const int64_t distance = distanceOf(from.getShape(), position);
  int64_t after = 1;
  for (int64_t dim = to.getRank(); dim-- > 0; after *= to.getDimSize(dim)) {
    int64_t extent = to.getDimSize(dim), inner = after ? distance / after : 0;
    if (inner && distance % after == 0 && extent % (samples * inner) == 0 && extent) {
      position.dim = dim;
      position.outer = extent / (samples * inner);
      position.inner = inner;
      return position;
    }
  }
  return std::nullopt;
}

LogicalResult nn::splitReshape(Operation *op, BatchSplit &split) {
  if (split.allSums)
    return split.answerSums();
  std::optional<BatchPosition> from = split.operands[0];
  if (!from)
    return success();
  auto to = reshapePosition(typeOf(op->getOperand(0)), *from, typeOf(op->getResult(0)), split.samples);
  if (!to)
    return split.refuse("divides the samples among several dimensions");
  split.required[0] = from;
  split.results[0] = {BatchSplit::Kind::Rows, *to};
  return success();
}

LogicalResult nn::splitTranspose(Operation *op, BatchSplit &split) {
  if (split.allSums)
    return split.answerSums();
  LabelTable table = identities(op);
  table.results[0] = llvm::to_vector(arrayAttr(op, "permutation"));
  return follow(table, split, Names::Kept);
}

/// Taking every `stride`th element of dimension `dim`, as many of each sample, from one that is a sample's first.
static bool takesOfEach(const BatchPosition &position, int64_t samples, int64_t start, int64_t stride, int64_t taken) {
  return stride > 1 && position.inner % stride == 0 && start < stride &&
         taken == position.outer * samples * position.inner / stride;
}

/// Whether so many rows are blocks of all samples.
static bool areBlocks(const BatchPosition &position, int64_t samples, int64_t rows) {
  return rows % (samples * position.inner) == 0;
}

/// Where samples of operand 0 may be counted otherwise by the result; nothing where its rows are looked at, which may
/// be those of selections.
static const BatchPosition *movedRows(const BatchSplit &split) {
  const auto &from = split.operands[0];
  return from && from->dim >= 0 && !from->named && !from->selection ? &*from : nullptr;
}

static LogicalResult answerMoved(BatchSplit &split, const BatchPosition &from, const BatchPosition &to) {
  split.required[0] = from;
  split.results[0] = {BatchSplit::Kind::Rows, to};
  return success();
}

LogicalResult nn::splitSlice(Operation *op, BatchSplit &split) {
  if (split.allSums)
    return split.answerSums();
  LabelTable table = identities(op);
  RankedTensorType x = typeOf(op->getOperand(0)), y = typeOf(op->getResult(0));
  if (const BatchPosition *from = movedRows(split)) {
    const int64_t dim = from->dim, stride = arrayAttr(op, "strides")[dim], start = arrayAttr(op, "starts")[dim],
                  taken = y.getDimSize(dim);
    BatchPosition to = *from;
    if (takesOfEach(*from, split.samples, start, stride, taken)) {
      to.inner /= stride;
      return answerMoved(split, *from, to);
    }
    if (mayTakeAttributes(split) && stride == 1 && areBlocks(*from, split.samples, start) &&
        areBlocks(*from, split.samples, taken)) {
      to.outer = taken / (split.samples * from->inner);
      return answerMoved(split, *from, to);
    }
  }
  for (int64_t dim = 0; dim < x.getRank(); ++dim)
    if (x.getDimSize(dim) != y.getDimSize(dim) || arrayAttr(op, "starts")[dim])
      table.operands[0][dim] = closed;
  return follow(table, split, Names::Kept);
}

LogicalResult nn::splitPad(Operation *op, BatchSplit &split) {
  auto pad = cast<PadOp>(op);
  if (split.allSums && pad.getValue().isZero())
    return split.answerSums();
  LabelTable table = identities(op);
  RankedTensorType x = typeOf(op->getOperand(0)), y = typeOf(op->getResult(0));
  // The other way round: blocks before and after, or elements between those of a sample and around them.
  if (const BatchPosition *from = movedRows(split)) {
    const int64_t dim = from->dim, stride = pad.getInterior()[dim] + 1, low = pad.getLow()[dim],
                  size = y.getDimSize(dim);
    BatchPosition to = *from;
    if (mayTakeAttributes(split) && stride == 1 && areBlocks(*from, split.samples, low) &&
        areBlocks(*from, split.samples, size)) {
      to.outer = size / (split.samples * from->inner);
      return answerMoved(split, *from, to);
    }
    to.inner *= stride;
    if (size == stride * x.getDimSize(dim) && takesOfEach(to, split.samples, low, stride, x.getDimSize(dim)))
      return answerMoved(split, *from, to);
  }
  for (int64_t dim = 0; dim < x.getRank(); ++dim)
    if (x.getDimSize(dim) != y.getDimSize(dim))
      table.operands[0][dim] = closed;
  return follow(table, split);
}

LogicalResult nn::splitReverse(Operation *op, BatchSplit &split) {
  if (split.allSums)
    return split.answerSums();
  LabelTable table = identities(op);
  for (int64_t dim : arrayAttr(op, "dims"))
    table.operands[0][dim] = closed;
  return follow(table, split);
}

/// Blocks of all samples, one after another: views of a batch that go through a model together.
static bool concatenatesBlocks(BatchSplit &split, int64_t dim) {
  const BatchPosition *first = nullptr;
  for (const auto &position : split.operands) {
    if (!position)
      continue;
    if (position->dim != dim || position->named || position->selection || (first && position->inner != first->inner))
      return false;
    first = &*position;
  }
  if (!first)
    return false;
  BatchPosition all{dim, 0, first->inner};
  SmallVector<BatchPosition> blocks;
  for (Value operand : split.op->getOperands()) {
    const int64_t rows = typeOf(operand).getDimSize(dim);
    if (!areBlocks(all, split.samples, rows))
      return false;
    blocks.push_back({dim, rows / (split.samples * all.inner), all.inner});
    all.outer += blocks.back().outer;
  }
  llvm::copy(blocks, split.required.begin());
  split.results[0] = {BatchSplit::Kind::Rows, all};
  return true;
}

LogicalResult nn::splitConcat(Operation *op, BatchSplit &split) {
  if (split.allSums)
    return split.answerSums();
  const int64_t dim = integerAttr(op, "dim");
  if (mayTakeAttributes(split) && concatenatesBlocks(split, dim))
    return success();
  LabelTable table = identities(op);
  for (Labels &labels : table.operands)
    labels[dim] = closed;
  return follow(table, split);
}

//===-- an op for a part --------------------------------------------------===//

/// Of an attribute with a number of rows for each dimension: whole blocks are those of a part.
static void takeRows(Operation *op, StringRef name, const BatchPosition &position, int64_t samples, int64_t parts) {
  SmallVector<int64_t> rows(arrayAttr(op, name));
  const int64_t block = samples * position.inner;
  rows[position.dim] = rows[position.dim] / block * (block / parts) + rows[position.dim] % block;
  op->setAttr(name, DenseI64ArrayAttr::get(op->getContext(), rows));
}

void nn::takePart(Operation *op, ArrayRef<std::optional<BatchPosition>> required, int64_t samples, int64_t parts) {
  if (auto scan = dyn_cast<ScanOp>(op))
    return scan.takeSamples(required, samples, parts);
  if (required.empty() || !required[0])
    return;
  if (isa<SliceOp>(op))
    return takeRows(op, "starts", *required[0], samples, parts);
  if (auto pad = dyn_cast<PadOp>(op); pad && !pad.getInterior()[required[0]->dim]) {
    takeRows(op, "low", *required[0], samples, parts);
    takeRows(op, "high", *required[0], samples, parts);
  }
  // Groups of channels that are each sample's own.
  if (isa<ConvOp, ConvInputGradOp, ConvFilterGradOp>(op) && required[0]->dim != 0)
    op->setAttr("groups", IntegerAttr::get(IntegerType::get(op->getContext(), 64), integerAttr(op, "groups") / parts));
}
