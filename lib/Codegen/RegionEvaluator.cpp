//===- RegionEvaluator.cpp - elements of a kernel's values, on demand -*- C++
//-*-===//
//
// Pulls operands through ElementInterface; remembers what is already computed
// in the blocks around.
//
//===----------------------------------------------------------------------===//

#include "RegionEvaluator.h"
#include "ReductionOrder.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Positions.h"
#include "lowtide/Dialect/NN/RecordSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

namespace {
/// What an op's record sees: its operands' elements come from the evaluator.
class OperandPuller : public ElementBuilder {
public:
  OperandPuller(RegionEvaluator &evaluator, Operation *op)
      : ElementBuilder(evaluator.function.builder, evaluator.function.loc), evaluator(evaluator), op(op) {}

  Value operand(unsigned number, ValueRange index) override {
    Value element = evaluator.element(op->getOperand(number), index);
    return cast(element, nn::computeType(op, element.getType()));
  }

  Value table(DenseElementsAttr values, ValueRange index) override {
    if (values.isSplat())
      return ElementBuilder::table(values, index);
    KernelFunction &function = evaluator.function;
    return function.load(evaluator.tableOf(values), values.getElementType(),
                         function.linearize(index, values.getType().getShape()));
  }

  SmallVector<Value> loop(ArrayRef<int64_t> extents, ValueRange initial,
                          function_ref<SmallVector<Value>(ElementBuilder &, ValueRange, ValueRange)> body) override {
    SmallVector<Value> index;
    return nest(extents, initial, index, body);
  }

  Value guarded(Value condition, Type type, function_ref<Value(ElementBuilder &)> then,
                function_ref<Value(ElementBuilder &)> otherwise) override {
    if (auto constant = getConstantIntValue(condition))
      return *constant ? then(*this) : otherwise(*this);
    auto branch = [&](function_ref<Value(ElementBuilder &)> side) {
      return [this, side](OpBuilder &, Location) {
        RegionEvaluator::Scope scope(evaluator);
        Value value = side(*this);
        scf::YieldOp::create(builder, loc, value);
      };
    };
    return scf::IfOp::create(builder, loc, condition, branch(then), branch(otherwise)).getResult(0);
  }

private:
  SmallVector<Value> nest(ArrayRef<int64_t> extents, ValueRange accumulators, SmallVector<Value> &index,
                          function_ref<SmallVector<Value>(ElementBuilder &, ValueRange, ValueRange)> body) {
    if (index.size() == extents.size())
      return body(*this, accumulators, index);
    KernelFunction &function = evaluator.function;
    return evaluator.loop(function.index(0), function.index(extents[index.size()]), 1, LoopKind::Sequential,
                          accumulators, [&](Value i, ValueRange inner) {
                            index.push_back(i);
                            SmallVector<Value> results = nest(extents, inner, index, body);
                            index.pop_back();
                            return results;
                          });
  }

  RegionEvaluator &evaluator;
  Operation *op;
};
} // namespace

unsigned RegionEvaluator::number(Value value) {
  if (auto found = numbers.find(value); found != numbers.end())
    return found->second;
  unsigned result;
  if (auto constant = getConstantIntValue(value)) {
    Key key{0, static_cast<uintptr_t>(*constant), reinterpret_cast<uintptr_t>(value.getType().getAsOpaquePointer())};
    result = expressions.try_emplace(key, expressions.size()).first->second;
  } else if (Operation *op = value.getDefiningOp();
             op && op->getNumResults() == 1 && op->getNumRegions() == 0 && isPure(op)) {
    Key key{1, reinterpret_cast<uintptr_t>(op->getName().getAsOpaquePointer()),
            reinterpret_cast<uintptr_t>(op->getAttrDictionary().getAsOpaquePointer()),
            reinterpret_cast<uintptr_t>(value.getType().getAsOpaquePointer())};
    for (Value operand : op->getOperands())
      key.push_back(number(operand));
    result = expressions.try_emplace(key, expressions.size()).first->second;
  } else {
    result =
        expressions.try_emplace(Key{2, reinterpret_cast<uintptr_t>(value.getAsOpaquePointer())}, expressions.size())
            .first->second;
  }
  numbers[value] = result;
  return result;
}

bool RegionEvaluator::isSameIndex(ValueRange a, ValueRange b) {
  return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [&](auto pair) {
           return number(std::get<0>(pair)) == number(std::get<1>(pair));
         });
}

/// Index into the operand of a reshape. Dimensions that stay are passed on; only what is regrouped is computed.
static SmallVector<Value> reshapeIndex(KernelFunction &function, ValueRange index, ArrayRef<int64_t> to,
                                       ArrayRef<int64_t> from) {
  SmallVector<Value> source;
  size_t i = 0, j = 0;
  while (i < to.size() || j < from.size()) {
    // The smallest groups of dimensions with equal numbers of elements; dimensions of extent 1 stand alone.
    if (j < from.size() && from[j] == 1) {
      source.push_back(function.index(0));
      ++j;
      continue;
    }
    if (i < to.size() && to[i] == 1) {
      ++i;
      continue;
    }
    size_t firstTo = i, firstFrom = j;
    int64_t countTo = to[i++], countFrom = from[j++];
    while (countTo != countFrom) {
      if (countTo < countFrom)
        countTo *= to[i++];
      else
        countFrom *= from[j++];
    }
    Value linear = function.linearize(index.slice(firstTo, i - firstTo), to.slice(firstTo, i - firstTo));
    llvm::append_range(source, function.delinearize(linear, from.slice(firstFrom, j - firstFrom)));
  }
  return source;
}

Value RegionEvaluator::element(Value tensor, ValueRange index) {
  Key key{reinterpret_cast<uintptr_t>(tensor.getAsOpaquePointer())};
  for (Value i : index)
    key.push_back(number(i));
  for (const auto &scope : llvm::reverse(scopes))
    if (auto found = scope.find(key); found != scope.end())
      return found->second;
  Value result = compute(tensor, index);
  scopes.back()[key] = result;
  return result;
}

Value RegionEvaluator::compute(Value tensor, ValueRange index) {
  if (auto found = sources.find(tensor); found != sources.end())
    return found->second(index);
  Operation *op = tensor.getDefiningOp();
  DenseElementsAttr constant;
  if (matchPattern(op, m_Constant(&constant)) && !constant.isSplat()) {
    bindArray(tensor, function.global(constant));
    return sources[tensor](index);
  }
  if (auto reduction = dyn_cast<ReductionInterface>(op))
    return emitReduction(*this, reduction, index);
  if (flat && !op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() == 1) {
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    if (type.getNumElements() != 1)
      return element(op->getOperand(0),
                     index); // the same elements under another shape
    // One value spread over the shape: its only element, whatever the position.
    return element(op->getOperand(0), SmallVector<Value>(type.getRank(), function.index(0)));
  }
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op))
    return element(reshape.getX(), reshapeIndex(function, index, reshape.getY().getType().getShape(),
                                                reshape.getX().getType().getShape()));
  if (Value loaded = loadFromPieces(op, index))
    return loaded;
  OperandPuller puller(*this, op);
  Value value = cast<ElementInterface>(op).emitElement(puller, cast<OpResult>(tensor).getResultNumber(), index);
  return puller.cast(value, nn::scalarType(tensor));
}

static constexpr size_t mostSelectedPieces = 2;

static int64_t extentAt(Value tensor, int64_t dim) { return cast<RankedTensorType>(tensor.getType()).getDimSize(dim); }

/// Where the elements of `tensor` lie in memory, row by row: its own, or those that it shows under another shape.
Value RegionEvaluator::arrayOf(Value tensor) {
  while (!arrays.contains(tensor)) {
    auto reshape = tensor.getDefiningOp<nn::ReshapeOp>();
    if (!reshape)
      return {};
    tensor = reshape.getX();
  }
  return arrays.lookup(tensor);
}

/// Written once, where the position is known.
RegionEvaluator::PlacedPiece RegionEvaluator::selectPiece(Operation *whole, const nn::Pieces &pieces, Value position) {
  PlacedPiece &found = placedPieces[{whole, position}];
  KernelFunction::Piece &piece = found.piece;
  if (piece.pointer)
    return found;
  OpBuilder::InsertionGuard guard(function.builder);
  function.builder.setInsertionPointAfterValue(position);
  ScalarBuilder scalars(function.builder, function.loc);
  SmallVector<Value> operands = llvm::map_to_vector(pieces.values, [&](Value x) { return arrayOf(x); });
  const int64_t extent = extentAt(whole->getResult(0), pieces.dim);
  auto endOf = [&](size_t i) { return pieces.starts[i] + extentAt(pieces.values[i], pieces.dim); };
  bool isCovered = pieces.starts.front() == 0 && endOf(operands.size() - 1) == extent;
  for (size_t i = 1; i < operands.size(); ++i)
    isCovered &= pieces.starts[i] == endOf(i - 1);
  // A few are told apart in place, without loads.
  if (looksUpPieces && operands.size() > mostSelectedPieces && isCovered) {
    SmallVector<int64_t> starts(pieces.starts);
    starts.push_back(extent);
    piece = function.lookUpPiece(operands, starts, position);
    return found;
  }
  for (size_t i = operands.size(); i-- > 0;) {
    KernelFunction::Piece own{operands[i], scalars.index(pieces.starts[i]), scalars.index(endOf(i) - pieces.starts[i])};
    if (piece.pointer) {
      Value isOwn = scalars.compare(Compare::LT, position, scalars.index(endOf(i)));
      own.pointer = LLVM::SelectOp::create(function.builder, function.loc, isOwn, own.pointer, piece.pointer);
      own.start = scalars.select(isOwn, own.start, piece.start);
      own.extent = scalars.select(isOwn, own.extent, piece.extent);
    }
    piece = own;
  }
  if (!isCovered)
    found.inside = scalars.logicalAnd(scalars.compare(Compare::GE, position, piece.start),
                                      scalars.compare(Compare::LT, position, function.add(piece.start, piece.extent)));
  return found;
}

/// An element of what is put together of arrays, by one load. Otherwise there is a branch and a load for each piece, in
/// every loop that reads the whole: code that grows with the pieces, and that LLVM takes long for. Null where the piece
/// changes from round to round, so that neighbours would have to be gathered, and on a GPU, whose threads take a branch
/// together.
Value RegionEvaluator::loadFromPieces(Operation *op, ValueRange index) {
  if (function.isGpu() || flat)
    return {};
  std::optional<nn::Pieces> pieces = nn::getPieces(op->getResult(0));
  if (!pieces)
    return {};
  const size_t dim = pieces->dim;
  Value position = index[dim];
  if (getConstantIntValue(position) || !function.isFixed(position) ||
      llvm::any_of(pieces->values, [&](Value x) { return !arrayOf(x); }))
    return {};
  PlacedPiece placed = selectPiece(op, *pieces, position);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  ArrayRef<int64_t> shape = type.getShape();
  OperandPuller puller(*this, op);
  auto load = [&] {
    Value row = function.add(
        function.mul(function.linearize(index.take_front(dim), shape.take_front(dim)), placed.piece.extent),
        puller.sub(position, placed.piece.start));
    const int64_t inner = ShapedType::getNumElements(shape.drop_front(dim + 1));
    return function.load(placed.piece.pointer, type.getElementType(),
                         function.add(function.mul(row, function.index(inner)),
                                      function.linearize(index.drop_front(dim + 1), shape.drop_front(dim + 1))));
  };
  Type scalar = nn::scalarType(op->getResult(0));
  Value loaded = placed.inside ? puller.guarded(
                                     placed.inside, scalar, [&](ElementBuilder &) { return load(); },
                                     [&](ElementBuilder &there) { return there.constant(scalar, 0.0); })
                               : load();
  if (!pieces->isSum)
    return loaded;
  // What the zeros of the other terms do: −0 becomes +0.
  Type computed = nn::computeType(op, scalar);
  Value sum = puller.add(puller.cast(loaded, computed), puller.constant(computed, 0.0));
  if (pieces->rest)
    sum = puller.add(sum, puller.cast(element(pieces->rest, index), computed));
  return puller.cast(sum, scalar);
}

Value RegionEvaluator::tableOf(DenseElementsAttr values) {
  Value &pointer = tables[values];
  if (!pointer)
    pointer = function.global(values);
  return pointer;
}

void RegionEvaluator::withOperands(Operation *op, function_ref<void(ElementBuilder &)> body) {
  OperandPuller puller(*this, op);
  body(puller);
}

void RegionEvaluator::bind(Value tensor, Source source) {
  if (source)
    sources[tensor] = std::move(source);
  else
    sources.erase(tensor);
  if (arrays.erase(tensor))
    placedPieces.clear();
}

void RegionEvaluator::bindArray(Value tensor, Value pointer) {
  auto type = cast<RankedTensorType>(tensor.getType());
  bind(tensor, [this, type, pointer](ValueRange index) {
    bool linear = flat && type.getNumElements() != 1;
    Value offset = linear ? index[0] : function.linearize(index, type.getShape());
    return function.load(pointer, type.getElementType(), offset);
  });
  arrays[tensor] = pointer;
}

SmallVector<Value> RegionEvaluator::loop(Value lower, Value upper, int64_t step, LoopKind kind, ValueRange initial,
                                         function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  return function.loop(lower, upper, step, kind, initial, [&](Value i, ValueRange accumulators) {
    Scope scope(*this);
    return body(i, accumulators);
  });
}

void RegionEvaluator::loop(Value lower, Value upper, int64_t step, LoopKind kind, function_ref<void(Value)> body) {
  loop(lower, upper, step, kind, ValueRange(), [&](Value i, ValueRange) -> SmallVector<Value> {
    body(i);
    return {};
  });
}

void RegionEvaluator::when(Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  scf::IfOp::create(function.builder, function.loc, condition, [&](OpBuilder &builder, Location loc) {
    Scope scope(*this);
    body();
    scf::YieldOp::create(builder, loc);
  });
}
