//===- RollRecurrences.cpp - steps that a file writes out, as a loop ------===//
//
// A recurrence that an exporter wrote out step after step becomes an `nn.scan` again, as recurrent operators of ONNX
// are: it compiles in a time that does not grow with its steps, and the plan chooses which states it keeps.
//
//   1. What steps read slice by slice is brought to [steps, …]. Views of it, products with fixed weights that no step
//      waits for, with what they read, and random numbers are computed for all steps before the loop.
//   2. The round is one step. What others read of all steps is collected in rows.
//   3. Where the results of all steps are put one after another, the rows take their place.
//
//===----------------------------------------------------------------------===//

#include "PrefixedShapes.h"
#include "Recurrence.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Patterns.h"
#include "lowtide/Dialect/NN/Scan.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;
using Kind = StepOperand::Kind;

/// Dimensions of a tensor with `dim` in front.
static SmallVector<int64_t> withFront(int64_t dim, int64_t rank) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(rank));
  std::rotate(order.begin(), order.begin() + dim, order.begin() + dim + 1);
  return order;
}

namespace {
/// A result of a column.
using ColumnResult = std::pair<unsigned, unsigned>;

/// A recurrence on its way into a loop.
class Loop {
public:
  explicit Loop(const Recurrence &steps);
  void write();

private:
  const StepColumn &getColumn(unsigned number) const { return steps.columns[number]; }
  ArrayRef<int64_t> getShape(ColumnResult result) const {
    return cast<RankedTensorType>(getColumn(result.first).ops.front()->getResult(result.second).getType()).getShape();
  }
  Value findSequence(unsigned column, unsigned number, bool forRows = false);
  Value turn(Value value, int64_t dim);
  void replaceTurned();
  Value cutSequence(unsigned column, unsigned number);
  Value listSequence(unsigned column, unsigned number);
  Value makeSequence(unsigned column, unsigned number, bool forRows);
  bool isDrawn(unsigned column) const;
  Value mapSequence(unsigned column);
  void collect(unsigned column);
  void writeBody();
  Value getSeen(OpBuilder &body, unsigned column, unsigned number);
  void replaceResults();
  ColumnResult throughViews(ColumnResult result) const;
  Expr getRows(ColumnResult result);
  Value putTogether(ColumnResult result, int64_t dim, bool isAscending);
  void replaceConcat(ConcatOp concat);
  bool isReadOutside(Value value) const;
  Expr at(Value value) { return Expr(builder, loc, value); }

  const Recurrence &steps;
  const int64_t count;
  OpBuilder builder;
  Location loc;
  bool isReversed = false;
  ScanOp scan;
  /// What an operand of a column is one of in each step: [steps, …].
  llvm::MapVector<std::pair<unsigned, unsigned>, Value> sequences;
  DenseMap<std::pair<Value, Value>, Value> sequenceOf;
  /// Values with a dimension in front.
  llvm::MapVector<std::pair<Value, int64_t>, Value> turned;
  llvm::SmallSetVector<unsigned, 16> written;
  llvm::MapVector<ColumnResult, Value> starts;
  llvm::SmallSetVector<Value, 8> fixed;
  /// What others read of several steps, and the rows that it is a view of.
  SmallVector<ColumnResult> collected;
  llvm::SmallSetVector<ColumnResult, 4> rows;
  /// In the body.
  DenseMap<ColumnResult, Value> made, states;
  IRMapping seen;
  /// The column and step of each op that the loop takes the place of.
  DenseMap<Operation *, std::pair<unsigned, int64_t>> placeOf;
};
} // namespace

Loop::Loop(const Recurrence &steps)
    : steps(steps), count(steps.countSteps()), builder(steps.columns[steps.order.back()].ops.back()),
      loc(steps.columns.front().ops.front()->getLoc()) {
  // Everything that the steps read comes before the last of their ops.
  Operation *last = nullptr;
  for (unsigned number : steps.order)
    for (auto [step, op] : llvm::enumerate(getColumn(number).ops)) {
      placeOf[op] = {number, int64_t(step)};
      if (!last || last->isBeforeInBlock(op))
        last = op;
    }
  builder.setInsertionPoint(last);
  for (const StepColumn &column : steps.columns)
    for (const StepOperand &operand : column.operands)
      if (operand.kind == Kind::Slice) {
        isReversed = operand.stride < 0;
        return;
      }
}

/// `value` with dimension `dim` in front. What is computed element by element for slices alone is computed so from the
/// beginning: a copy is made of what that reads.
Value Loop::turn(Value value, int64_t dim) {
  if (dim == 0)
    return value;
  auto [known, isNew] = turned.try_emplace({value, dim});
  if (!isNew)
    return known->second;
  const auto type = cast<RankedTensorType>(value.getType());
  const SmallVector<int64_t> order = withFront(dim, type.getRank());
  SmallVector<int64_t> shape;
  for (int64_t i : order)
    shape.push_back(type.getDimSize(i));
  Operation *op = value.getDefiningOp();
  auto isTurned = [&](Operation *user) {
    return isa<SliceOp>(user) ||
           llvm::any_of(user->getResults(), [&](Value result) { return turned.contains({result, dim}); });
  };
  Value result;
  if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) {
    // Dimensions of what is repeated stay in ascending order.
    SmallVector<std::pair<int64_t, int64_t>> places;
    for (auto [i, to] : llvm::enumerate(broadcast.getDims()))
      places.push_back({llvm::find(order, to) - order.begin(), int64_t(i)});
    llvm::sort(places);
    Expr x = nn::transpose(at(broadcast.getX()), llvm::to_vector(llvm::make_second_range(places)));
    result = nn::broadcast(x, shape, llvm::to_vector(llvm::make_first_range(places)));
  } else if (op && op->hasTrait<OpTrait::Elementwise>() && isPure(op) && llvm::all_of(op->getUsers(), isTurned)) {
    // A copy is a reader: operands first.
    SmallVector<Value> operands = llvm::map_to_vector(op->getOperands(), [&](Value read) { return turn(read, dim); });
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    copy->getResult(0).setType(type.clone(shape));
    result = copy->getResult(0);
  } else {
    result = nn::transpose(at(value), order);
  }
  turned[{value, dim}] = result;
  return result;
}

/// Slices outside the loop of what is turned around.
void Loop::replaceTurned() {
  // A first state may be made of such a slice.
  builder.setInsertionPoint(scan);
  for (const auto &[original, result] : turned) {
    auto [value, dim] = original;
    Operation *op = value.getDefiningOp();
    if (!op || result.getDefiningOp<TransposeOp>() || dim == 0)
      continue;
    for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
      auto slice = dyn_cast<SliceOp>(user);
      if (!slice || slice.use_empty())
        continue;
      const SmallVector<int64_t> order = withFront(dim, slice.getType().getRank());
      SmallVector<int64_t> back, starts, strides, sizes;
      for (int64_t i : order) {
        starts.push_back(slice.getStarts()[i]);
        strides.push_back(slice.getStrides()[i]);
        sizes.push_back(slice.getType().getDimSize(i));
      }
      for (int64_t i = 0; i < int64_t(order.size()); ++i)
        back.push_back(llvm::find(order, i) - order.begin());
      Expr part = nn::slice(at(result), starts, sizes, strides);
      slice.replaceAllUsesWith(nn::transpose(part, back).get());
    }
  }
}

/// The slices that operand `number` of a column reads, as [steps, shape of one…] in the order in which the loop goes.
Value Loop::cutSequence(unsigned column, unsigned number) {
  const StepOperand &operand = getColumn(column).operands[number];
  auto sliceOf = [&](Operation *op) { return op->getOperand(number).getDefiningOp<SliceOp>(); };
  SliceOp first = sliceOf(getColumn(column).ops.front()), last = sliceOf(getColumn(column).ops.back());
  const bool isBackward = operand.stride < 0;
  const int64_t size = std::abs(operand.stride), dim = operand.dim;
  SmallVector<int64_t> starts((isBackward ? last : first).getStarts()), sizes(first.getType().getShape()),
      strides(first.getStrides());
  sizes[dim] = count * size;
  Expr all;
  if (size == 1) {
    for (auto *list : {&starts, &sizes, &strides})
      std::rotate(list->begin(), list->begin() + dim, list->begin() + dim + 1);
    all = nn::slice(at(turn(operand.value, dim)), starts, sizes, strides);
  } else {
    // [a, steps · size, b] as [steps, a, size, b].
    all = nn::slice(at(operand.value), starts, sizes, strides);
    SmallVector<int64_t> parted(sizes);
    parted[dim] = count;
    parted.insert(parted.begin() + dim + 1, size);
    all = nn::transpose(nn::reshape(all, parted), withFront(dim, int64_t(parted.size())));
  }
  if (isBackward != isReversed)
    all = nn::reverse(all, {0});
  return nn::reshape(all, prefixed(count, first.getType().getShape()));
}

/// The constants that operand `number` of a column is, in the order of the loop's rows: one number each where all its
/// elements are equal.
Value Loop::listSequence(unsigned column, unsigned number) {
  SmallVector<Value> constants;
  for (Operation *op : getColumn(column).ops)
    constants.push_back(op->getOperand(number));
  if (isReversed)
    std::reverse(constants.begin(), constants.end());
  SmallVector<Attribute> numbers;
  const auto type = cast<RankedTensorType>(constants.front().getType());
  for (Value constant : constants)
    if (DenseElementsAttr elements; matchPattern(constant, m_Constant(&elements)) && elements.isSplat())
      numbers.push_back(elements.getSplatValue<Attribute>());
  if (int64_t(numbers.size()) == count) {
    const auto list = RankedTensorType::get({count}, type.getElementType());
    return ConstantOp::create(builder, loc, list, DenseElementsAttr::get(list, numbers));
  }
  return nn::concat(
      llvm::map_to_vector(constants,
                          [&](Value constant) { return nn::reshape(at(constant), prefixed(1, type.getShape())); }),
      0);
}

/// Whether the column is made of random numbers and constants alone, element by element.
bool Loop::isDrawn(unsigned column) const {
  const StepColumn &own = getColumn(column);
  Operation *op = own.ops.front();
  if (!own.isAhead || isa<RandomUniformOp>(op))
    return own.isAhead;
  return (isa<ReshapeOp>(op) || op->hasTrait<OpTrait::Elementwise>()) && op->getNumResults() == 1 &&
         llvm::all_of(own.operands, [&](const StepOperand &operand) {
           return operand.kind == Kind::Fixed ? nn::isConstant(operand.value)
                                              : operand.kind == Kind::Made && isDrawn(operand.column);
         });
}

/// What a column that depends on no step is in all steps, element by element: one op draws or computes for all of them.
/// Nothing where one of its operands is in no such sequence.
Value Loop::mapSequence(unsigned column) {
  const StepColumn &own = getColumn(column);
  Operation *op = own.ops.front();
  const auto type = cast<RankedTensorType>(op->getResult(0).getType());
  const SmallVector<int64_t> shape = prefixed(count, type.getShape());
  SmallVector<Value> operands;
  for (auto [j, operand] : llvm::enumerate(own.operands)) {
    Value all = operand.value;
    if (operand.kind == Kind::Fixed && !isa<RandomUniformOp>(op))
      all = nn::broadcast(at(all), shape, llvm::to_vector(llvm::seq<int64_t>(1, type.getRank() + 1)));
    else if (operand.kind != Kind::Fixed)
      all = findSequence(column, unsigned(j), /*forRows=*/true);
    if (!all)
      return {};
    if (operand.kind == Kind::Listed && cast<RankedTensorType>(all.getType()).getRank() == 1)
      all = nn::broadcast(at(all), shape, {0});
    operands.push_back(all);
  }
  if (isa<ReshapeOp>(op))
    return nn::reshape(at(operands.front()), shape);
  Operation *whole = builder.clone(*op);
  whole->setOperands(operands);
  whole->getResult(0).setType(type.clone(shape));
  if (auto draw = dyn_cast<RandomUniformOp>(whole); draw && draw.getBatchDim() >= 0)
    draw.setBatchDim(draw.getBatchDim() + 1);
  return whole->getResult(0);
}

/// What operand `number` of a column is in all steps, where no step has to wait for it: views of slices, what takes
/// their rows one by one, random numbers, and, `forRows` that are taken so, what is computed of them by elements.
Value Loop::makeSequence(unsigned column, unsigned number, bool forRows) {
  const StepOperand &operand = getColumn(column).operands[number];
  if (operand.kind == Kind::Slice)
    return cutSequence(column, number);
  if (operand.kind != Kind::Made || !getColumn(operand.column).isAhead)
    return {};
  const StepColumn &maker = getColumn(operand.column);
  Operation *op = maker.ops.front();
  const auto type = cast<RankedTensorType>(op->getResult(operand.result).getType());
  if (isDrawn(operand.column) ||
      (forRows && op->hasTrait<OpTrait::Elementwise>() && isPure(op) && op->getNumResults() == 1))
    return mapSequence(operand.column);
  if (isa<ReshapeOp>(op)) {
    Value source = findSequence(operand.column, 0, forRows);
    return source ? nn::reshape(at(source), prefixed(count, type.getShape())).get() : Value();
  }
  // One product, or one lookup, of the rows of all steps.
  std::optional<unsigned> ofRows;
  if (auto product = dyn_cast<DotOp>(op); product && type.getRank() == 2 && !product.getTransposeA())
    ofRows = 0;
  if (auto lookup = dyn_cast<GatherOp>(op); lookup && lookup.getAxis() == 0 && type.getRank() > 0)
    ofRows = 1;
  if (!ofRows || maker.operands[1 - *ofRows].kind != Kind::Fixed)
    return {};
  auto rowsOf = [&](RankedTensorType part) {
    SmallVector<int64_t> shape(part.getShape());
    shape[0] *= count;
    return shape;
  };
  const auto part = cast<RankedTensorType>(op->getOperand(*ofRows).getType());
  Value source = part.getRank() ? findSequence(operand.column, *ofRows, /*forRows=*/true) : Value();
  if (!source)
    return {};
  Value all = nn::reshape(at(source), rowsOf(part));
  Operation *whole = builder.clone(*op);
  whole->setOperand(*ofRows, all);
  whole->getResult(0).setType(type.clone(rowsOf(type)));
  return nn::reshape(at(whole->getResult(0)), prefixed(count, type.getShape()));
}

Value Loop::findSequence(unsigned column, unsigned number, bool forRows) {
  auto known = sequences.find({column, number});
  if (known != sequences.end())
    return known->second;
  const StepColumn &reader = getColumn(column);
  if (reader.operands[number].kind == Kind::Listed)
    return sequences[{column, number}] = listSequence(column, number);
  // Several ops may read the same slices.
  const std::pair<Value, Value> ends{reader.ops.front()->getOperand(number), reader.ops.back()->getOperand(number)};
  Value sequence = sequenceOf.lookup(ends);
  if (!sequence)
    sequence = makeSequence(column, number, forRows);
  if (sequence)
    sequences[{column, number}] = sequenceOf[ends] = sequence;
  return sequence;
}

/// Columns that the body computes, those it reads first, and what it reads from outside.
void Loop::collect(unsigned column) {
  if (written.contains(column))
    return;
  for (auto [j, operand] : llvm::enumerate(getColumn(column).operands)) {
    if (operand.kind == Kind::Fixed) {
      if (!nn::isConstant(operand.value))
        fixed.insert(operand.value);
    } else if (operand.kind == Kind::Carried) {
      starts[{operand.column, operand.result}] = getColumn(column).ops.front()->getOperand(unsigned(j));
    } else if (!findSequence(column, unsigned(j)) && getColumn(operand.column).isAhead) {
      collect(operand.column);
    }
  }
  written.insert(column);
}

/// What the body has of operand `number` of a column.
Value Loop::getSeen(OpBuilder &body, unsigned column, unsigned number) {
  const StepOperand &operand = getColumn(column).operands[number];
  if (auto known = sequences.find({column, number}); known != sequences.end()) {
    const auto read = cast<RankedTensorType>(getColumn(column).ops.front()->getOperand(number).getType());
    Expr row(body, loc, seen.lookup(known->second));
    const bool isNumber = operand.kind == Kind::Listed && row.rank() == 1 && read.getRank() > 0;
    return isNumber ? nn::broadcast(nn::reshape(row, {}), read.getShape(), {}) : nn::reshape(row, read.getShape());
  }
  if (operand.kind == Kind::Carried)
    return states.lookup({operand.column, operand.result});
  if (operand.kind == Kind::Made)
    return made.lookup({operand.column, operand.result});
  if (!seen.contains(operand.value))
    body.clone(*operand.value.getDefiningOp(), seen);
  return seen.lookup(operand.value);
}

void Loop::writeBody() {
  auto arguments = scan.getBlock()->getArguments();
  const unsigned numSliced = scan.getNumSliced(), numCarried = scan.getNumCarried();
  for (auto [sequence, argument] : llvm::zip_equal(scan.getSliced(), arguments.take_front(numSliced)))
    seen.map(sequence, argument);
  for (auto [start, argument] : llvm::zip_equal(starts, arguments.slice(numSliced, numCarried)))
    states[start.first] = argument;
  seen.map(scan.getCaptured(), arguments.drop_front(numSliced + numCarried));
  OpBuilder body = OpBuilder::atBlockEnd(scan.getBlock());
  for (unsigned column : written) {
    SmallVector<Value> operands;
    for (unsigned j = 0; j < getColumn(column).operands.size(); ++j)
      operands.push_back(getSeen(body, column, j));
    Operation *op = body.clone(*getColumn(column).ops.front());
    op->setOperands(operands);
    for (OpResult result : op->getResults())
      made[{column, result.getResultNumber()}] = result;
  }
  SmallVector<Value> carried, laid;
  for (const auto &[result, start] : starts)
    carried.push_back(made.lookup(result));
  for (ColumnResult result : rows)
    laid.push_back(nn::reshape(Expr(body, loc, made.lookup(result)), prefixed(1, getShape(result))));
  NextOp::create(body, loc, carried, laid);
}

/// What the result is a view of, in a step.
ColumnResult Loop::throughViews(ColumnResult result) const {
  while (isa<ReshapeOp>(getColumn(result.first).ops.front())) {
    const StepOperand &shown = getColumn(result.first).operands.front();
    if (shown.kind != Kind::Made || getColumn(shown.column).isAhead)
      break;
    result = {shown.column, shown.result};
  }
  return result;
}

/// The result of all steps as [steps, shape of one…], in the order of the rows.
Expr Loop::getRows(ColumnResult result) {
  const auto number = unsigned(llvm::find(rows, throughViews(result)) - rows.begin());
  return nn::reshape(at(scan->getResult(scan.getNumCarried() + number)), prefixed(count, getShape(result)));
}

/// The results of all steps one after another along `dim`.
Value Loop::putTogether(ColumnResult result, int64_t dim, bool isAscending) {
  Expr all = getRows(result);
  if (isAscending == isReversed)
    all = nn::reverse(all, {0});
  // [steps, a, size, b] as [a, steps · size, b].
  SmallVector<int64_t> order, shape(getShape(result));
  for (int64_t i = 0; i < int64_t(shape.size()); ++i)
    order.push_back(i + 1);
  order.insert(order.begin() + dim, 0);
  shape[dim] *= count;
  return nn::reshape(nn::transpose(all, order), shape);
}

void Loop::replaceConcat(ConcatOp concat) {
  SmallVector<Expr> parts;
  ValueRange xs = concat.getXs();
  const size_t numSteps = size_t(count);
  // The result of a column of which operand i has step 0 and the next ones the further steps, or the other way round.
  auto startsRun = [&](size_t i, bool isAscending) {
    auto place = placeOf.find(xs[i].getDefiningOp());
    if (place == placeOf.end() || i + numSteps > xs.size())
      return false;
    for (size_t k = 0; k < numSteps; ++k) {
      Operation *op = getColumn(place->second.first).ops[isAscending ? k : numSteps - 1 - k];
      if (xs[i + k] != op->getResult(cast<OpResult>(xs[i]).getResultNumber()))
        return false;
    }
    return true;
  };
  builder.setInsertionPoint(concat);
  for (size_t i = 0; i < xs.size();) {
    const bool isAscending = startsRun(i, true);
    if (!isAscending && !startsRun(i, false)) {
      parts.push_back(at(xs[i++]));
      continue;
    }
    const ColumnResult result{placeOf.lookup(xs[i].getDefiningOp()).first, cast<OpResult>(xs[i]).getResultNumber()};
    parts.push_back(at(putTogether(result, int64_t(concat.getDim()), isAscending)));
    i += numSteps;
  }
  if (parts.size() == xs.size())
    return;
  concat.replaceAllUsesWith(parts.size() == 1 ? parts.front().get()
                                              : nn::concat(parts, int64_t(concat.getDim())).get());
  concat.erase();
}

/// Whether something reads the result other than the steps themselves.
bool Loop::isReadOutside(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) { return !placeOf.contains(user); });
}

void Loop::replaceResults() {
  llvm::SmallSetVector<Operation *, 4> concats;
  for (ColumnResult result : collected)
    for (Operation *op : getColumn(result.first).ops)
      for (Operation *user : op->getResult(result.second).getUsers())
        if (isa<ConcatOp>(user))
          concats.insert(user);
  for (Operation *concat : concats)
    replaceConcat(cast<ConcatOp>(concat));
  builder.setInsertionPointAfter(scan);
  auto replace = [&](Value from, auto make) {
    if (!isReadOutside(from))
      return;
    Value to = make();
    from.replaceUsesWithIf(to, [&](OpOperand &use) { return !placeOf.contains(use.getOwner()); });
  };
  for (auto [number, start] : llvm::enumerate(starts))
    replace(getColumn(start.first.first).ops.back()->getResult(start.first.second),
            [&] { return scan->getResult(unsigned(number)); });
  for (ColumnResult result : collected)
    for (auto [step, op] : llvm::enumerate(getColumn(result.first).ops))
      replace(op->getResult(result.second), [&]() -> Value {
        Expr all = getRows(result);
        SmallVector<int64_t> from(size_t(all.rank()), 0);
        from[0] = isReversed ? count - 1 - int64_t(step) : int64_t(step);
        return nn::reshape(nn::slice(all, from, prefixed(1, getShape(result))), getShape(result));
      });
}

void Loop::write() {
  for (unsigned column : steps.order)
    collect(column);
  for (unsigned column : steps.order)
    for (OpResult result : getColumn(column).ops.front()->getResults()) {
      const ColumnResult own{column, result.getResultNumber()};
      auto isCollected = [&](Operation *op) {
        // The state after the last step is handed on.
        return isReadOutside(op->getResult(own.second)) &&
               (op != getColumn(column).ops.back() || !starts.contains(own));
      };
      if (llvm::any_of(getColumn(column).ops, isCollected)) {
        collected.push_back(own);
        rows.insert(throughViews(own));
      }
    }
  SmallVector<Value> slices, first;
  for (const auto &[operand, sequence] : sequences)
    if (written.contains(operand.first) && !llvm::is_contained(slices, sequence))
      slices.push_back(sequence);
  for (const auto &[result, start] : starts)
    first.push_back(start);
  SmallVector<Type> types;
  for (ColumnResult result : rows)
    types.push_back(cast<RankedTensorType>(getColumn(result.first).ops.front()->getResult(result.second).getType())
                        .clone(prefixed(1, getShape(result))));
  scan = ScanOp::create(builder, loc, count, isReversed, slices, first, fixed.getArrayRef(), types);
  scan.emitRemark() << count << " steps of " << written.size() << " operations, written out one by one, become a loop";
  writeBody();
  replaceResults();
  SmallVector<Operation *> replaced = llvm::to_vector(llvm::make_first_range(placeOf));
  llvm::sort(replaced, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  for (Operation *op : replaced) {
    assert(op->use_empty() && "is read by what stays");
    op->erase();
  }
  replaceTurned();
}

int64_t nn::rollRecurrences(Block &block) {
  int64_t numRolled = 0;
  while (std::optional<Recurrence> steps = findRecurrence(block)) {
    Loop(*steps).write();
    sortTopologically(&block);
    ++numRolled;
  }
  return numRolled;
}
