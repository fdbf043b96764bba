//===- BatchLoopBody.cpp - one round of a loop over a batch -----*- C++ -*-===//
//
// Ops are cloned with fewer rows in their result types: the records' rules guarantee that this is the part.
//
//===----------------------------------------------------------------------===//

#include "BatchLoopBody.h"
#include "lowtide/Dialect/NN/BatchPart.h"
#include "lowtide/Dialect/NN/BatchRules.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;
using Kind = BatchTracking::Kind;

BatchLoopBody::BatchLoopBody(OpBuilder &outer, const BatchTracking &tracking, int64_t parts, int64_t tiles,
                             const DenseMap<Value, Value> &wholes)
    : outer(outer), tracking(tracking), parts(parts), tiles(tiles), wholes(wholes), body(&region.emplaceBlock()),
      inner(outer.getContext()) {
  inner.setInsertionPointToEnd(body);
}

RankedTensorType BatchLoopBody::partOf(Type whole, BatchPosition position) const {
  auto type = cast<RankedTensorType>(whole);
  SmallVector<int64_t> shape(type.getShape());
  shape[position.dim] /= parts;
  return RankedTensorType::get(shape, type.getElementType());
}

Value BatchLoopBody::capture(Value value) {
  captured.insert(value);
  return value;
}

BlockArgument BatchLoopBody::carry(Value first) {
  carried.push_back(capture(first));
  handedOn.push_back({});
  return body->addArgument(first.getType(), first.getLoc());
}

void BatchLoopBody::carryState(BlockArgument state) {
  if (own.contains(state))
    return;
  stateNumber[state] = carried.size();
  own[state] = carry(state);
  carriedFor.push_back(state);
}

/// Each round's first sample: the last round's, and one part on.
Value BatchLoopBody::getFirstSample(Value row) {
  Value &number = own[row];
  if (!number) {
    unsigned position = carried.size();
    BlockArgument argument = carry(row);
    number = argument;
    carriedFor.push_back({});
    handedOn[position] = at(inner, argument) + double(tracking.getSamples() / parts);
  }
  return number;
}

/// Numbers of rows of the whole batch as numbers of a part's own rows.
Value BatchLoopBody::countFromPart(Value numbers, BatchPosition position) {
  if (!noSample)
    noSample = nn::splat(outer, numbers.getLoc(), RankedTensorType::get({}, outer.getI64Type()), 0.0).get();
  nn::Expr before = at(inner, getFirstSample(noSample)) * double(position.renumbered), row = at(inner, numbers);
  before = nn::broadcast(nn::cast(before, row.elementType()), row.shape(), {});
  if (position.rowBlocks == 1)
    return row - before;
  // A row of another part would be one of another block.
  const double rows = double(tracking.getSamples() * position.renumbered), ownRows = rows / double(parts);
  nn::Expr block = row / row.like(rows), own = nn::rem(row, row.like(rows)) - before;
  nn::Expr isOwn = nn::logicalAnd(nn::greaterEqual(own, 0.0), nn::less(own, ownRows));
  return nn::select(isOwn, block * ownRows + own, row.like(-1.0));
}

//===-- rows of what is whole ---------------------------------------------===//

/// Whether all parts of `value` at `position` are the same, and a small one can be built.
bool BatchLoopBody::isRepeated(Value value, BatchPosition position) {
  Operation *op = value.getDefiningOp();
  Kind kind = tracking.getKind(value);
  if (!op || (kind != Kind::Outside && kind != Kind::Statistic))
    return false;
  if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    return dense && dense.isSplat();
  }
  if (auto iota = dyn_cast<nn::IotaOp>(op))
    return int64_t(iota.getDim()) != position.dim;
  if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
    auto type = broadcast.getX().getType();
    for (auto [from, to] : llvm::enumerate(broadcast.getDims()))
      if (to == position.dim && type.getDimSize(from) != 1)
        return isRepeated(broadcast.getX(), {int64_t(from), position.outer, position.inner});
    return true;
  }
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
    auto from =
        nn::reshapePosition(reshape.getY().getType(), position, reshape.getX().getType(), tracking.getSamples());
    return from && isRepeated(reshape.getX(), *from);
  }
  if (auto gather = dyn_cast<nn::GatherOp>(op)) {
    int64_t dim = position.dim - int64_t(gather.getAxis());
    return dim >= 0 && dim < gather.getIndices().getType().getRank() &&
           isRepeated(gather.getIndices(), {dim, position.outer, position.inner});
  }
  return op->hasTrait<OpTrait::Elementwise>() &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isRepeated(operand, position); });
}

/// Whether all indices of dimension `dim` of `value`, a constant, hold the same elements.
static bool isConstantAlong(Value value, int64_t dim) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)))
    return false;
  ArrayRef<char> data = elements.getRawData();
  const int64_t count = elements.getNumElements(), size = int64_t(data.size());
  // Truth values may be packed, which is not looked into.
  if (elements.isSplat() || count == 0 || size % count)
    return elements.isSplat();
  int64_t stride = size / count;
  ArrayRef<int64_t> shape = elements.getType().getShape();
  for (int64_t extent : shape.drop_front(dim + 1))
    stride *= extent;
  for (int64_t at = stride; at < size; at += stride)
    if (at / stride % shape[dim] && data.slice(at, stride) != data.slice(at - stride, stride))
      return false;
  return true;
}

/// Whether `value` is spread from something smaller, element by element, and had better be made of a part of that than
/// cut into parts.
bool BatchLoopBody::isSpread(Value value, BatchPosition position) {
  constexpr int64_t clearlySmaller = 4;
  if (isRepeated(value, position))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || tracking.getKind(value) != Kind::Outside)
    return false;
  if (auto broadcast = dyn_cast<nn::BroadcastOp>(op))
    return broadcast.getX().getType().getNumElements() * clearlySmaller <= broadcast.getType().getNumElements();
  return op->hasTrait<OpTrait::Elementwise>() &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isSpread(operand, position); });
}

Value BatchLoopBody::buildRepeated(Value value, BatchPosition position) {
  Operation *op = value.getDefiningOp();
  RankedTensorType type = partOf(value.getType(), position);
  if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
    auto dense = cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type);
    return nn::constant(inner, op->getLoc(), dense);
  }
  Operation *clone = op->clone();
  for (OpOperand &operand : clone->getOpOperands()) {
    std::optional<BatchPosition> from = position;
    if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
      from.reset();
      for (auto [dim, to] : llvm::enumerate(broadcast.getDims()))
        if (to == position.dim && broadcast.getX().getType().getDimSize(dim) != 1)
          from = BatchPosition{int64_t(dim), position.outer, position.inner};
    } else if (auto gather = dyn_cast<nn::GatherOp>(op)) {
      from->dim -= int64_t(gather.getAxis());
      if (operand.getOperandNumber() == 0)
        from.reset();
    } else if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
      from = nn::reshapePosition(reshape.getY().getType(), position, reshape.getX().getType(), tracking.getSamples());
    }
    Value computed = own.lookup(operand.get());
    operand.set(from ? cut(operand.get(), *from) : computed ? computed : capture(operand.get()));
  }
  clone->getResult(0).setType(type);
  inner.insert(clone);
  return clone->getResult(0);
}

/// The shape with the three factors of the samples' dimension apart, and the order that puts samples first.
static std::pair<SmallVector<int64_t>, SmallVector<int64_t>> apart(RankedTensorType type, BatchPosition position,
                                                                   int64_t samples) {
  SmallVector<int64_t> shape(type.getShape().take_front(position.dim)), order{position.dim + 1};
  llvm::append_values(shape, position.outer, samples, position.inner);
  llvm::append_range(shape, type.getShape().drop_front(position.dim + 1));
  for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim)
    if (dim != position.dim + 1)
      order.push_back(dim);
  return {shape, order};
}

static nn::Expr samplesFirst(nn::Expr x, BatchPosition position, int64_t samples) {
  if (position == BatchPosition{})
    return x;
  auto [shape, order] = apart(x.type(), position, samples);
  return nn::transpose(nn::reshape(x, shape), order);
}

static nn::Expr samplesBack(nn::Expr x, BatchPosition position, RankedTensorType type, int64_t samples) {
  if (position == BatchPosition{})
    return x;
  auto [shape, order] = apart(type, position, samples);
  SmallVector<int64_t> inverse(order.size());
  for (auto [to, from] : llvm::enumerate(order))
    inverse[from] = int64_t(to);
  return nn::reshape(nn::transpose(x, inverse), type.getShape());
}

Value BatchLoopBody::sliceOf(Value value, BatchPosition position) {
  int64_t samples = tracking.getSamples();
  Value whole = samplesFirst(at(outer, capture(value)), position, samples);
  captured.insert(whole);
  RankedTensorType type = train::AccumulateOp::getPart(cast<RankedTensorType>(whole.getType()), parts);
  BlockArgument part = body->insertArgument(unsigned(sliced.size()), type, value.getLoc());
  sliced.push_back(whole);
  return samplesBack(at(inner, part), position, partOf(value.getType(), position), samples / parts);
}

Value BatchLoopBody::cut(Value value, BatchPosition position) {
  auto &known = cuts[{value, position.dim}];
  for (auto &[where, rows] : known)
    if (where == position)
      return rows;
  Value rows = isSpread(value, position) ? buildRepeated(value, position) : sliceOf(value, position);
  cuts[{value, position.dim}].push_back({position, rows});
  return rows;
}

//===-- ops ---------------------------------------------------------------===//

Value BatchLoopBody::getOperand(Operation *op, unsigned number) {
  std::optional<BatchPosition> position = tracking.getRequired(op)[number];
  if (!position || !position->renumbered)
    return getRows(op, number, position);
  return countFromPart(getRows(op, number, position->at(position->dim)), *position);
}

Value BatchLoopBody::getRows(Operation *op, unsigned number, std::optional<BatchPosition> position) {
  Value operand = op->getOperand(number);
  Kind kind = tracking.getKind(operand);
  if (kind == Kind::FirstSample)
    return position ? getFirstSample(operand) : capture(operand);
  if (kind == Kind::Sum && !tracking.isLinear(op)) {
    Value whole = wholes.lookup(operand);
    return position ? cut(whole, *position) : capture(whole);
  }
  // What each part has for itself and repeats for every sample, made of a state.
  bool isSpread = kind == Kind::Statistic && position && isRepeated(operand, *position);
  if (Value computed = own.lookup(operand); computed && !isSpread)
    return computed;
  return position ? cut(operand, *position) : capture(operand);
}

/// One clone for each tile, on its rows. Products are as wide as they are added up, also where a round has one tile:
/// bits do not depend on how many it has.
LogicalResult BatchLoopBody::computeTerms(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  const bool isProduct = facts && facts.getFacts().family == OpFamily::Contraction;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    Operation *clone = op->clone();
    for (OpOperand &operand : clone->getOpOperands()) {
      Value whole = getOperand(op, operand.getOperandNumber());
      std::optional<BatchPosition> position = tracking.getRequired(op)[operand.getOperandNumber()];
      if (tiles > 1 && position && position->dim != BatchPosition::firstSample) {
        nn::Expr x = at(inner, whole);
        SmallVector<int64_t> starts(x.rank(), 0), sizes(x.shape());
        sizes[position->dim] /= tiles;
        starts[position->dim] = tile * sizes[position->dim];
        whole = nn::slice(x, starts, sizes);
      }
      operand.set(whole);
    }
    for (auto [result, term] : llvm::zip_equal(op->getResults(), clone->getResults())) {
      auto type = cast<RankedTensorType>(term.getType());
      if (isProduct && type.getElementTypeBitWidth() < 32)
        term.setType(type.clone(inner.getF32Type()));
      terms[result].push_back(term);
    }
    inner.insert(clone);
  }
  return success();
}

LogicalResult BatchLoopBody::compute(Operation *op) {
  if (tiles > 0 && llvm::any_of(op->getResults(), [&](Value v) { return tracking.getKind(v) == Kind::Sum; }))
    return computeTerms(op);
  Operation *clone = op->clone();
  for (OpOperand &operand : clone->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    std::optional<BatchPosition> position = tracking.getRequired(op)[number];
    if (position && position->selection && tracking.getKind(operand.get()) != Kind::Rows &&
        !isRepeated(operand.get(), *position) && !isConstantAlong(operand.get(), position->dim)) {
      clone->destroy();
      InFlightDiagnostic error = op->emitError("operand ")
                                 << number << " differs from row to row, and the rows are those that data select: in "
                                 << "a part of the batch they are others";
      error.attachNote() << "leave out --micro-batches";
      return error;
    }
    operand.set(getOperand(op, number));
    if (position && tracking.getKind(op->getOperand(number)) == Kind::Statistic &&
        operand.get().getType() == op->getOperand(number).getType()) {
      clone->destroy();
      InFlightDiagnostic error = op->emitError("rows of what each part of the batch has for itself cannot be cut out");
      error.attachNote() << "leave out --micro-batches";
      return error;
    }
  }
  for (auto [result, part] : llvm::zip_equal(op->getResults(), clone->getResults())) {
    BatchTracking::State state = tracking.get(result);
    if (state.kind == Kind::Rows)
      part.setType(partOf(result.getType(), state.position));
    own[result] = part;
  }
  nn::takePart(clone, tracking.getRequired(op), tracking.getSamples(), parts);
  inner.insert(clone);
  return success();
}

void BatchLoopBody::addUp(Value sum) {
  SmallVector<Value> added = terms.lookup(sum);
  if (added.empty())
    added.push_back(own.lookup(sum));
  nn::Expr total;
  const unsigned position = carried.size();
  for (Value value : added) {
    nn::Expr term = at(inner, value);
    // Adding up is more exact than what is added up.
    if (isa<FloatType>(term.elementType()) && term.elementType().getIntOrFloatBitWidth() < 32)
      term = nn::cast(term, inner.getF32Type());
    if (!total)
      total = at(inner, carry(nn::splat(outer, sum.getLoc(), term.type(), 0.0)));
    total = total + term;
  }
  carriedFor.push_back(sum);
  handedOn[position] = total;
}

void BatchLoopBody::collect(Value value) {
  BatchPosition position = tracking.get(value).position;
  rows.push_back(samplesFirst(at(inner, own.lookup(value)), position, tracking.getSamples() / parts));
  rowsFor.push_back(value);
}

void BatchLoopBody::updateState(BlockArgument state, Value value, bool isWanted) {
  handedOn[stateNumber[state]] = own.lookup(value);
  carriedFor[stateNumber[state]] = isWanted ? value : Value();
}

DenseMap<Value, Value> BatchLoopBody::finish(Location loc) {
  train::NextOp::create(inner, loc, handedOn, rows);
  auto loop = train::AccumulateOp::create(outer, loc, parts, sliced, carried, TypeRange(ValueRange(rows)));
  loop.getBody().takeBody(region);
  DenseMap<Value, Value> made;
  for (auto [i, value] : llvm::enumerate(carriedFor)) {
    if (!value)
      continue;
    nn::Expr whole = at(outer, loop.getResult(i));
    Type wanted = cast<RankedTensorType>(value.getType()).getElementType();
    if (whole.elementType() != wanted) {
      // Who widens the sum gets it as wide as it was added up.
      for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
        if (auto cast = dyn_cast<nn::CastOp>(user);
            cast && !tracking.isInside(user) && cast.getY().getType() == whole.type())
          cast.getY().replaceAllUsesWith(whole.get());
      whole = nn::cast(whole, wanted);
    }
    made[value] = whole;
  }
  for (auto [i, value] : llvm::enumerate(rowsFor))
    made[value] = samplesBack(at(outer, loop.getResult(carried.size() + i)), tracking.get(value).position,
                              cast<RankedTensorType>(value.getType()), tracking.getSamples());
  return made;
}
