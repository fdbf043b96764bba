//===- SelectedRows.cpp - rows of which data decide the number ------------===//
//
// Selections, sizes that are computed of them, and what ops do with their rows (Interfaces/BatchSplit.h).
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/SelectedRows.h"
#include "lowtide/Dialect/NN/ConstantFold.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Scatter.h"
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

//===-- selections --------------------------------------------------------===//

using Pairs = llvm::DenseSet<std::pair<Value, Value>>;

/// Whether two values are computed in the same way from the same values: exporters write a mask once for each use.
static bool isSame(Value a, Value b, Pairs &proven) {
  if (a == b || proven.contains({a, b}))
    return true;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (!x || !y || x->getNumRegions() || a.getType() != b.getType() || x->getName() != y->getName() ||
      x->getNumOperands() != y->getNumOperands() || x->getAttrDictionary() != y->getAttrDictionary() ||
      cast<OpResult>(a).getResultNumber() != cast<OpResult>(b).getResultNumber())
    return false;
  bool result = llvm::all_of(llvm::zip(x->getOperands(), y->getOperands()),
                             [&](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair), proven); });
  if (result)
    proven.insert({a, b});
  return result;
}

/// What a value was before it was given other shapes.
static Value unshaped(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getX();
  return value;
}

static bool isPrime(int64_t n) {
  for (int64_t d = 3; d * d <= n; d += 2)
    if (n % d == 0)
      return false;
  return n % 2 != 0;
}

const Selection &SelectedRows::select(Expr condition) {
  auto isHere = [&](const Selection &known) {
    Pairs proven;
    return Value(known.valid).getParentBlock() == condition.getBuilder().getInsertionBlock() &&
           isSame(unshaped(known.condition), unshaped(condition), proven);
  };
  for (const auto &known : selections)
    if (isHere(*known))
      return *known;
  const int64_t capacity = condition.dim(0);
  auto [numbers, valid] = nn::selectRows(condition, 1);
  Expr count = nn::sum(nn::cast(condition, condition.getBuilder().getI64Type()), {0});
  // Below 2^24, so that sizes in f32 hold it.
  int64_t tag = selections.empty() ? 15'485'863 : selections.back()->tag + 2;
  while (!isPrime(tag))
    tag += 2;
  selections.push_back(std::make_shared<Selection>(Selection{condition, capacity, count, valid, numbers, tag}));
  return *selections.back();
}

SelectedRows::Elements SelectedRows::selectElements(Expr condition) {
  Expr rowwise = condition;
  if (auto repeated = condition.get().getDefiningOp<nn::BroadcastOp>()) {
    Expr source = condition.with(repeated.getX());
    auto isKept = [&](int64_t dim) { // by the source as it is
      auto at = llvm::find(repeated.getDims(), dim);
      return at != repeated.getDims().end() && source.dim(at - repeated.getDims().begin()) == condition.dim(dim);
    };
    int64_t kept = 0;
    while (kept < condition.rank() && isKept(kept))
      ++kept;
    ArrayRef<int64_t> rows = condition.shape().take_front(kept);
    if (countOf(source.shape()) == countOf(rows))
      rowwise = nn::reshape(source, rows);
  }
  const int64_t inner = countOf(condition.shape().drop_front(rowwise.rank()));
  const Selection &selection = select(nn::reshape(rowwise, {countOf(rowwise.shape())}));
  Expr positions = condition.with(selection.positions);
  if (inner != 1)
    positions = nn::selectRows(condition.with(selection.condition), inner).first;
  return {&selection, inner, positions};
}

//===-- coordinates -------------------------------------------------------===//

SmallVector<Expr> lowtide::coordinates(Expr position, ArrayRef<int64_t> shape) {
  SmallVector<Expr> result(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    result[d] = d ? nn::rem(position, position.like(double(shape[d]))) : position;
    position = d ? position / double(shape[d]) : position;
  }
  return result;
}

SmallVector<Expr> SelectedRows::coordinates(const Elements &elements, ArrayRef<int64_t> shape) {
  mark(elements.positions, *elements.selection, {0, 1, elements.inner});
  mark(elements.selection->positions, *elements.selection, {});
  SmallVector<Expr> result = lowtide::coordinates(elements.positions, shape);
  for (auto [dim, coordinate] : llvm::enumerate(result))
    places[coordinate] = {elements, Shape(shape), int64_t(dim)};
  return result;
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Dimensions of more than one element: a transpose of no more than one of them leaves the order as it is.
static int64_t countLongDims(Value value) {
  return llvm::count_if(typeOf(value).getShape(), [](int64_t extent) { return extent != 1; });
}

/// Whether `op` gives numbers of rows another type that has all of them.
static bool isWideCast(Operation *op) {
  auto cast = dyn_cast<nn::CastOp>(op);
  auto type = cast ? dyn_cast<IntegerType>(cast.getY().getType().getElementType()) : IntegerType();
  return type && type.getWidth() >= 32;
}

/// The values whose elements stand side by side along dimension `dim` of `value`, one for each of its indices; none
/// where something else was done to them.
static SmallVector<Value> columnsOf(Value value, int64_t dim) {
  Operation *op = value.getDefiningOp();
  if (typeOf(value).getDimSize(dim) == 1 || !op)
    return {value};
  if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
    SmallVector<Value> all;
    for (Value operand : concat->getOperands())
      llvm::append_range(all, int64_t(concat.getDim()) == dim ? columnsOf(operand, dim) : SmallVector<Value>());
    return all;
  }
  if (isWideCast(op))
    return columnsOf(op->getOperand(0), dim);
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    const int64_t from = transpose.getPermutation()[dim];
    return countLongDims(value) <= 2 ? columnsOf(transpose.getX(), from) : SmallVector<Value>();
  }
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
    ArrayRef<int64_t> to = typeOf(value).getShape(), from = reshape.getX().getType().getShape();
    for (int64_t d = 0; d < int64_t(from.size()); ++d)
      if (from[d] == to[dim] && countOf(from.take_front(d)) == countOf(to.take_front(dim)))
        return columnsOf(reshape.getX(), d);
  }
  return {};
}

const SelectedRows::Coordinate *SelectedRows::findCoordinate(Value value) const {
  while (Operation *op = value.getDefiningOp()) {
    if (auto found = places.find(value); found != places.end())
      return &found->second;
    if (auto slice = dyn_cast<nn::SliceOp>(op)) {
      ArrayRef<int64_t> from = slice.getX().getType().getShape(), to = slice.getY().getType().getShape();
      std::optional<int64_t> cut;
      for (int64_t d = 0; d < int64_t(to.size()); ++d)
        if (from[d] != to[d]) {
          if (cut || to[d] != 1)
            return nullptr;
          cut = d;
        }
      SmallVector<Value> columns = columnsOf(slice.getX(), cut.value_or(0));
      if (!cut || int64_t(columns.size()) != from[*cut])
        return nullptr;
      value = columns[slice.getStarts()[*cut]];
    } else if (isa<nn::ReshapeOp>(op) || isWideCast(op) || (isa<nn::TransposeOp>(op) && countLongDims(value) <= 1)) {
      value = op->getOperand(0);
    } else {
      return nullptr;
    }
  }
  return nullptr;
}

bool SelectedRows::isCoordinate(Value value) const {
  while (isa_and_present<nn::BroadcastOp, nn::ReshapeOp>(value.getDefiningOp()) && !places.contains(value))
    value = value.getDefiningOp()->getOperand(0);
  return findCoordinate(value) != nullptr;
}

std::optional<SelectedRows::Elements> SelectedRows::elementsAt(Expr indices, ArrayRef<int64_t> shape) const {
  SmallVector<Value> columns = columnsOf(indices, indices.rank() - 1);
  const Elements *all = nullptr;
  for (auto [dim, column] : llvm::enumerate(columns)) {
    const Coordinate *place = findCoordinate(column);
    if (!place || place->dim != int64_t(dim) || ArrayRef<int64_t>(place->shape) != shape ||
        (all && all->positions.get() != place->elements.positions.get()))
      return std::nullopt;
    all = &place->elements;
  }
  return columns.size() == shape.size() && all ? std::optional(*all) : std::nullopt;
}

std::optional<SelectedRows::Rows> SelectedRows::find(Value value) const {
  auto found = rows.find(value);
  return found == rows.end() ? std::nullopt : std::optional(found->second);
}

Expr SelectedRows::masked(Expr x, const Rows &where, Expr filler) {
  const BatchPosition &at = where.position;
  const int64_t capacity = where.selection->capacity;
  Expr valid = x.with(where.selection->valid);
  if (at.outer != 1 || at.inner != 1)
    valid = nn::reshape(nn::broadcast(valid, {at.outer, capacity, at.inner}, {1}), {at.outer * capacity * at.inner});
  Expr result = nn::select(nn::broadcast(valid, x.shape(), {at.dim}), x, filler);
  masks.insert(result.get().getDefiningOp());
  return result;
}

Expr SelectedRows::narrowed(Expr x, int64_t dim, int64_t extent) {
  std::optional<Rows> where = find(x);
  const bool isHere = where && where->position == BatchPosition{dim} && extent > 1 && extent <= x.dim(dim);
  if (!isHere)
    return {};
  Expr result = sliceDim(x, dim, 0, extent);
  masks.insert(result.get().getDefiningOp());
  return result;
}

Expr SelectedRows::grouped(Expr x, int64_t groups) {
  std::optional<Rows> where = find(x);
  if (!where || !(where->position == BatchPosition{}) || groups < 2 || x.dim(0) < groups)
    return {};
  const int64_t capacity = x.dim(0) / groups;
  const Shape places{groups, capacity};
  Expr each = x.with(where->selection->count) / double(groups);
  Expr index = positions(x, places, 0) * nn::broadcastTo(each, places) + positions(x, places, 1);
  Expr result = nn::gather(x, nn::min(index, double(x.dim(0) - 1)), 0);
  const Selection &selection = select(nn::less(positions(x, {capacity}, 0), nn::broadcastTo(each, {capacity})));
  mark(result, selection, {1});
  return result;
}

Expr SelectedRows::withZeros(Expr x) {
  std::optional<Rows> where = find(x);
  return where ? masked(x, *where, x.like(0.0)) : x;
}

//===-- sizes -------------------------------------------------------------===//

Expr SelectedRows::countAlong(Expr x, ArrayRef<int64_t> dims) const {
  std::optional<Rows> where = find(x);
  if (!where || !llvm::is_contained(dims, where->position.dim))
    return {};
  const auto &[selection, position] = *where;
  int64_t others = position.outer * position.inner;
  for (int64_t dim : dims)
    others *= dim == position.dim ? 1 : x.dim(dim);
  return x.with(selection->count) * double(others);
}

Expr SelectedRows::extents(Expr x, int64_t start, int64_t end) {
  std::optional<Rows> where = find(x);
  if (!where || where->position.dim < start || where->position.dim >= end)
    return {};
  const auto &[selection, position] = *where;
  const int64_t others = position.outer * position.inner, at = position.dim - start;
  auto known = [&](ArrayRef<int64_t> extents) {
    return DenseElementsAttr::get(RankedTensorType::get({end - start}, x.getBuilder().getI64Type()), extents);
  };
  Shape capacity(x.shape().slice(start, end - start)), tagged(capacity);
  Shape atOne(capacity);
  tagged[at] = selection->tag * others;
  atOne[at] = others;
  Expr here = nn::constant(x.getBuilder(), x.getLoc(), known(capacity));
  Expr isData = nn::equal(positions(x, here.shape(), 0), double(at));
  Expr count = nn::broadcastTo(x.with(selection->count) * double(others), here.shape());
  Expr result = nn::select(isData, count, here);
  sizes[result] = {known(capacity), known(tagged), known(atOne)};
  return result;
}

const Sizes *SelectedRows::findSizes(Value value) const {
  auto found = sizes.find(value);
  return found == sizes.end() ? nullptr : &found->second;
}

bool SelectedRows::followSizes(Operation *op) {
  SmallVector<Attribute> atCapacity, tagged, atOne;
  bool isSize = false;
  for (Value operand : op->getOperands()) {
    const Sizes *known = findSizes(operand);
    DenseElementsAttr constant = known ? DenseElementsAttr() : LegalizeContext::constantOf(operand);
    if (!known && !constant)
      return false;
    isSize |= known != nullptr;
    atCapacity.push_back(known ? known->atCapacity : constant);
    tagged.push_back(known ? known->tagged : constant);
    atOne.push_back(known ? known->atOne : constant);
  }
  if (!isSize)
    return false;
  FailureOr<SmallVector<Attribute>> all = nn::foldConstant(op, atCapacity), tags = nn::foldConstant(op, tagged),
                                    ones = nn::foldConstant(op, atOne);
  if (failed(all) || failed(tags) || failed(ones))
    return false;
  auto results = llvm::zip(*all, *tags, *ones);
  // The smaller of a number and five is five with many rows only.
  auto isTold = [](auto result) {
    auto [a, b, c] = result;
    for (auto [x, y, z] : llvm::zip(floatsOf(cast<DenseElementsAttr>(a)), floatsOf(cast<DenseElementsAttr>(b)),
                                    floatsOf(cast<DenseElementsAttr>(c))))
      if (x == y && x != z)
        return false;
    return true;
  };
  if (!llvm::all_of(results, isTold))
    return false;
  for (auto [result, values] : llvm::zip(op->getResults(), results)) {
    auto [a, b, c] = values;
    sizes[result] = {cast<DenseElementsAttr>(a), cast<DenseElementsAttr>(b), cast<DenseElementsAttr>(c)};
  }
  return true;
}

Value SelectedRows::bare(Value value) const {
  for (Operation *op = value.getDefiningOp(); op; op = value.getDefiningOp())
    if (isa<nn::CastOp, nn::ReshapeOp>(op))
      value = op->getOperand(0);
    else if (auto select = dyn_cast<nn::SelectOp>(op); select && masks.contains(op))
      value = op->getOperand(1);
    else
      break;
  return value;
}

void SelectedRows::noteCount(Operation *op) {
  auto sum = dyn_cast<nn::ReduceSumOp>(op);
  auto type = sum ? cast<RankedTensorType>(sum.getY().getType()) : RankedTensorType();
  if (!sum || type.getNumElements() != 1 || !type.getElementType().isInteger(64))
    return;
  Value counted = bare(sum.getX());
  auto known = llvm::find_if(selections, [&](const auto &selection) {
    Pairs proven;
    return isSame(bare(selection->condition), counted, proven);
  });
  if (known != selections.end() && cast<RankedTensorType>(counted.getType()).getElementType().isInteger(1))
    sizes[sum.getY()] = {DenseElementsAttr::get(type, (*known)->capacity), DenseElementsAttr::get(type, (*known)->tag),
                         DenseElementsAttr::get(type, int64_t(1))};
}

LogicalResult SelectedRows::markStated(NodeView &n) {
  Value value = n.results.empty() ? Value() : n.results.front().tensor;
  if (!n.sizes || !value)
    return success();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  const int64_t missing = int64_t(shape.size()) - int64_t(n.sizes->atCapacity.size());
  for (auto [i, pair] : llvm::enumerate(llvm::zip(n.sizes->atCapacity, n.sizes->tagged))) {
    auto [here, tagged] = pair;
    if (here == tagged)
      continue;
    const int64_t dim = int64_t(i) + missing;
    auto selection = llvm::find_if(selections, [&](const auto &s) { return tagged % s->tag == 0; });
    std::optional<Rows> known = find(value);
    const int64_t inner = selection == selections.end() ? 1 : tagged / (*selection)->tag;
    const BatchPosition position = known ? known->position : BatchPosition{dim, 1, inner};
    if (selection == selections.end() || dim < 0 || shape[dim] != here || position.dim != dim ||
        (known && known->selection != selection->get()) ||
        tagged != (*selection)->tag * position.outer * position.inner)
      return n.refuse("dimension " + Twine(dim) +
                      " of its result is computed of the number of rows that data select; "
                      "it may be that number, or where these rows are already");
    if (!known)
      mark(value, **selection, position);
  }
  return success();
}

void SelectedRows::markLike(Value value, Value like) {
  if (std::optional<Rows> where = find(like))
    rows[value] = *where;
}

void SelectedRows::replace(Value value, Value by) {
  if (auto found = rows.find(value); found != rows.end()) {
    const Rows moved = found->second;
    rows.erase(found);
    rows[by] = moved;
  }
  sizes.erase(value);
  masks.erase(value.getDefiningOp());
}

//===-- rows --------------------------------------------------------------===//

/// What rows that are not there count as where `op` looks at rows together; nothing where there is no such number.
static std::optional<Expr> fillerOf(Operation *op, Expr x) {
  const double infinity = std::numeric_limits<double>::infinity();
  auto extreme = [&](bool lowest) {
    auto integer = dyn_cast<IntegerType>(x.elementType());
    if (!integer)
      return x.like(lowest ? -infinity : infinity);
    const unsigned bits = integer.getWidth();
    APInt value = integer.isUnsigned() || bits == 1
                      ? (lowest ? APInt::getMinValue(bits) : APInt::getMaxValue(bits))
                      : (lowest ? APInt::getSignedMinValue(bits) : APInt::getSignedMaxValue(bits));
    return nn::constant(x.getBuilder(), x.getLoc(), DenseElementsAttr::get(x.type(), value));
  };
  return llvm::TypeSwitch<Operation *, std::optional<Expr>>(op)
      .Case<nn::ReduceSumOp, nn::CumSumOp, nn::ReduceAnyOp>([&](auto) { return x.like(0.0); })
      .Case<nn::ReduceProdOp, nn::ReduceAllOp>([&](auto) { return x.like(1.0); })
      .Case<nn::ReduceMaxOp, nn::ArgMaxOp, nn::SoftmaxOp, nn::LogSoftmaxOp>([&](auto) { return extreme(true); })
      .Case<nn::ReduceMinOp, nn::ArgMinOp>([&](auto) { return extreme(false); })
      .Default([](Operation *) { return std::nullopt; });
}

bool SelectedRows::followScatter(Operation *op) {
  auto scatter = dyn_cast<ScatterInterface>(op);
  auto axisAttr = op->getAttrOfType<IntegerAttr>("axis");
  if (!scatter || !axisAttr)
    return false;
  // Places stand in front of what goes there.
  const unsigned updates = scatter.getUpdatesOperand(), places = updates - 1;
  const int64_t axis = axisAttr.getInt();
  const bool byElement = isa<nn::ScatterElementsAddOp, nn::ScatterElementsOp>(op);
  const int64_t rank = byElement ? 1 : cast<RankedTensorType>(op->getOperand(places).getType()).getRank();
  // A dimension of the places is one of the updates.
  const int64_t shift = byElement ? 0 : axis;
  std::optional<Rows> where = find(op->getOperand(updates)), place = find(op->getOperand(places));
  if (place) {
    place->position.dim += shift;
    if (where && (where->selection != place->selection || !(where->position == place->position)))
      return false;
    where = place;
  }
  const bool isDropped = where && where->position.dim >= axis && where->position.dim < axis + rank;
  // What is written over has rows, too, which are named by their numbers.
  std::optional<Rows> target = updates == 2 ? find(op->getOperand(0)) : std::nullopt;
  const bool isTarget = target && target->position.dim == axis && target->position.outer == 1;
  if ((where && !isDropped) || (target && !isTarget) || (!isDropped && !isTarget))
    return false;
  if (isDropped) {
    OpBuilder builder(op);
    Expr values(builder, op->getLoc(), op->getOperand(updates)), index = values.with(op->getOperand(places));
    Rows ofIndex = *where;
    ofIndex.position.dim -= shift;
    const int64_t extent = cast<RankedTensorType>(op->getResult(0).getType()).getDimSize(axis);
    op->setOperand(places, masked(index, ofIndex, index.like(double(extent))));
    // The cotangent of what lands nowhere is read out of bounds: it ends here.
    op->setOperand(updates, masked(values, *where, values.like(0.0)));
  }
  if (isTarget)
    rows[op->getResult(0)] = *target;
  return true;
}

LogicalResult SelectedRows::followConcat(NodeView &n, Operation *op, int64_t dim) {
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  Expr all(builder, op->getLoc(), op->getResult(0));
  SmallVector<Expr> conditions;
  for (Value operand : op->getOperands()) {
    const Shape extent{cast<RankedTensorType>(operand.getType()).getDimSize(dim)};
    std::optional<Rows> where = find(operand);
    if (where && !(where->position == BatchPosition{dim}))
      return n.refuse("it puts rows that data select after others of which they are no dimension");
    conditions.push_back(where
                             ? all.with(where->selection->valid)
                             : nn::splat(builder, op->getLoc(), RankedTensorType::get(extent, builder.getI1Type()), 1));
  }
  const Selection &selection = select(nn::concat(conditions, 0));
  Expr moved = nn::gather(all, all.with(selection.positions), dim);
  replaceResult(n, op, moved);
  mark(moved, selection, {dim});
  return success();
}

void SelectedRows::replaceResult(NodeView &n, Operation *op, Expr by) {
  Value result = op->getResult(0);
  result.replaceAllUsesExcept(by, by.get().getDefiningOp());
  for (Meaning &meaning : n.results)
    if (meaning.tensor == result)
      meaning.tensor = by;
}

void SelectedRows::refill(NodeView &n, Operation *op, const Rows &where) {
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  Expr y(builder, op->getLoc(), op->getResult(0));
  const auto &[selection, position] = where;
  const Shape spread{position.outer, selection->capacity, position.inner};
  Expr row = positions(y, {selection->capacity}, 0);
  row = nn::select(y.with(selection->valid), row, row.like(0.0));
  Expr index = nn::broadcast(row, spread, {1}) * double(position.inner) + positions(y, spread, 2) +
               positions(y, spread, 0) * double(selection->capacity * position.inner);
  Expr filled = nn::gather(y, nn::reshape(index, {y.dim(position.dim)}), position.dim);
  replaceResult(n, op, filled);
  mark(filled, *selection, position);
}

LogicalResult SelectedRows::followOp(NodeView &n, Operation *op) {
  // What is selected of rows are others.
  if (isa<nn::SelectRowsOp>(op))
    return success();
  SmallVector<std::optional<Rows>> known = llvm::map_to_vector(op->getOperands(), [&](Value v) { return find(v); });
  auto concat = dyn_cast<nn::ConcatOp>(op);
  if (concat && llvm::any_of(known, [&](const auto &k) { return k && k->position.dim == int64_t(concat.getDim()); }))
    return followConcat(n, op, concat.getDim());
  // Rows are read by their numbers, which are the program's.
  if (isa<nn::GatherOp, nn::GatherElementsOp>(op) && known[0] && known[0]->position.outer == 1 &&
      known[0]->position.dim == op->getAttrOfType<IntegerAttr>("axis").getInt())
    known[0].reset();
  const bool mayMeet = RuleTable::get().mayRowsMeet(n.op.getDomain(), n.op.getOpType());
  if (mayMeet && followScatter(op))
    return success();
  const Selection *selection = nullptr;
  SmallVector<std::optional<BatchPosition>> positions(op->getNumOperands());
  for (auto [rows, position] : llvm::zip(known, positions)) {
    if (!rows)
      continue;
    if (selection && selection != rows->selection)
      return n.refuse("it combines rows that two different conditions select");
    selection = rows->selection;
    position = rows->position;
  }
  if (!selection)
    return success();
  auto batch = dyn_cast<BatchInterface>(op);
  BatchSplit split(op, selection->capacity, positions, /*allSums=*/false);
  LogicalResult answer = batch ? batch.splitBatch(split) : split.refuse("does not say what it does with rows");
  OpBuilder builder(op);
  auto mask = [&](unsigned operand, const BatchPosition &position, std::optional<Expr> filler) {
    Expr x(builder, op->getLoc(), op->getOperand(operand));
    op->setOperand(operand, masked(x, {selection, position}, filler ? *filler : x.like(0.0)));
  };
  auto refuseOther = [&](StringRef what) {
    return n.refuse("the number of rows depends on data, and it " + what +
                    "; for the mean of x[mask], write where(mask, x, 0).sum() / mask.sum(), and export again");
  };
  if (failed(answer)) {
    std::optional<Expr> filler;
    if (op->getNumOperands() == 1 && positions[0])
      filler = fillerOf(op, Expr(builder, op->getLoc(), op->getOperand(0)));
    if (!filler || !mayMeet)
      return refuseOther(split.reason);
    mask(0, *positions[0], filler);
    if (op->getResult(0).getType() == op->getOperand(0).getType())
      refill(n, op, {selection, *positions[0]});
  } else if (llvm::any_of(split.results, [](const auto &r) { return r.kind == BatchSplit::Kind::Statistic; })) {
    return refuseOther("computes statistics of all rows");
  } else if (llvm::any_of(split.results, [](const auto &r) { return r.kind == BatchSplit::Kind::Sum; })) {
    if (!mayMeet)
      return refuseOther("sums over them");
    // One factor of a product is enough.
    for (unsigned i = op->getNumOperands(); i-- > 0;)
      if (split.required[i]) {
        mask(i, *split.required[i], std::nullopt);
        break;
      }
  } else {
    for (auto [result, state] : llvm::zip(op->getResults(), split.results))
      if (state.kind == BatchSplit::Kind::Rows)
        rows[result] = {selection, state.position};
  }
  return success();
}

LogicalResult SelectedRows::follow(NodeView &n, Operation *first) {
  for (Operation *op = first; op; op = op->getNextNode())
    if (!masks.contains(op) && !followSizes(op)) {
      noteCount(op);
      if (failed(followOp(n, op)))
        return failure();
    }
  return markStated(n);
}
