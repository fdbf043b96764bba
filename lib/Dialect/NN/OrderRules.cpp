//===- OrderRules.cpp - nn ops on tensors in another order ------*- C++ -*-===//
//
// Each rule first says which orders of operands and results belong together. With a builder at hand, it builds the op
// on the stored operands: dimensions that attributes list become places in memory.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/OrderRules.h"
#include "lowtide/Dialect/NN/NN.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

using Shape = SmallVector<int64_t>;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static ArrayRef<int64_t> listOf(Operation *op, StringRef name) {
  return op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef();
}

Value nn::reshapeTo(OpBuilder &builder, Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  auto type = cast<RankedTensorType>(value.getType()).clone(shape);
  return ReshapeOp::create(builder, value.getLoc(), type, value);
}

static Value transposeTo(OpBuilder &builder, Value value, ArrayRef<int64_t> permutation) {
  Shape shape = llvm::map_to_vector(permutation, [&](int64_t dim) { return shapeOf(value)[dim]; });
  auto type = cast<RankedTensorType>(value.getType()).clone(shape);
  return TransposeOp::create(builder, value.getLoc(), type, value, permutation);
}

Value nn::storeInOrder(OpBuilder &builder, Value value, const DimensionOrder &order) {
  if (order.isNatural())
    return value;
  std::optional<PlacedOrder> placed = PlacedOrder::get(order, shapeOf(value));
  Value ordered = transposeTo(builder, reshapeTo(builder, value, order.extents), order.order);
  return reshapeTo(builder, ordered, placed->getStoredShape());
}

Value nn::storeNaturally(OpBuilder &builder, Value value, const DimensionOrder &order, ArrayRef<int64_t> shape) {
  if (order.isNatural())
    return reshapeTo(builder, value, shape);
  Shape stored, inverse(order.order.size());
  for (auto [place, factor] : llvm::enumerate(order.order)) {
    stored.push_back(order.extents[factor]);
    inverse[factor] = place;
  }
  return reshapeTo(builder, transposeTo(builder, reshapeTo(builder, value, stored), inverse), shape);
}

//===-- orders that are the same everywhere -------------------------------===//

LogicalResult nn::orderNatural(Operation *, OrderFlow &) { return failure(); }

static std::optional<DimensionOrder> firstKnown(const OrderFlow &flow) {
  for (const auto &order : llvm::concat<const std::optional<DimensionOrder>>(flow.operands, flow.results))
    if (order)
      return order;
  return std::nullopt;
}

static LogicalResult setAll(OrderFlow &flow, const DimensionOrder &order) {
  for (unsigned i = 0; i < flow.operands.size(); ++i)
    if (failed(flow.setOperand(i, order)))
      return failure();
  for (unsigned i = 0; i < flow.results.size(); ++i)
    if (failed(flow.setResult(i, order)))
      return failure();
  return success();
}

static Shape storedShape(const DimensionOrder &order, ArrayRef<int64_t> shape) {
  return PlacedOrder::get(order, shape)->getStoredShape();
}

LogicalResult nn::orderElementwise(Operation *op, OrderFlow &flow) {
  std::optional<DimensionOrder> order = firstKnown(flow);
  if (!order || failed(setAll(flow, *order)))
    return failure();
  if (flow.builder)
    flow.made =
        flow.make(flow.stored, SmallVector<Shape>(op->getNumResults(), storedShape(*order, shapeOf(op->getResult(0)))));
  return success();
}

LogicalResult nn::orderConstant(Operation *op, OrderFlow &flow) {
  auto constant = cast<ConstantOp>(op);
  auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
  if (!splat || !flow.results[0])
    return failure();
  if (flow.builder) {
    Shape shape = storedShape(*flow.results[0], shapeOf(constant));
    NamedAttribute value(flow.builder->getStringAttr("value"), splat.resizeSplat(constant.getType().clone(shape)));
    flow.made = flow.make({}, {shape}, value);
  }
  return success();
}

LogicalResult nn::orderReshape(Operation *, OrderFlow &flow) {
  std::optional<DimensionOrder> order = firstKnown(flow);
  if (!order || failed(setAll(flow, *order)))
    return failure();
  flow.isView = true;
  if (flow.builder)
    flow.made = {flow.stored[0]};
  return success();
}

//===-- dimensions that come, go and change places ------------------------===//

LogicalResult nn::orderBroadcast(Operation *op, OrderFlow &flow) {
  ArrayRef<int64_t> dims = listOf(op, "dims"), to = shapeOf(op->getResult(0)), from = shapeOf(op->getOperand(0));
  std::optional<PlacedOrder> placed = flow.results[0] ? PlacedOrder::get(*flow.results[0], to) : std::nullopt;
  if (!placed || llvm::is_contained(from, 1) || failed(flow.setOperand(0, placed->restrictTo(dims))))
    return failure();
  if (!flow.builder)
    return success();
  Shape read, places;
  for (auto [place, factor] : llvm::enumerate(placed->order))
    if (llvm::is_contained(dims, placed->dims[factor])) {
      read.push_back(placed->extents[factor]);
      places.push_back(place);
    }
  NamedAttribute changed(flow.builder->getStringAttr("dims"), flow.builder->getDenseI64ArrayAttr(places));
  flow.made = flow.make(reshapeTo(*flow.builder, flow.stored[0], read), {placed->getStoredShape()}, changed);
  return success();
}

/// The order of the transpose of a tensor: in memory nothing moves.
static DimensionOrder transposed(const PlacedOrder &placed, ArrayRef<int64_t> permutation) {
  Shape extents, numbers(placed.extents.size());
  for (int64_t dim : permutation)
    for (auto [factor, own] : llvm::enumerate(placed.dims))
      if (own == dim) {
        numbers[factor] = extents.size();
        extents.push_back(placed.extents[factor]);
      }
  return DimensionOrder(extents, llvm::map_to_vector(placed.order, [&](int64_t factor) { return numbers[factor]; }));
}

LogicalResult nn::orderTranspose(Operation *op, OrderFlow &flow) {
  ArrayRef<int64_t> permutation = listOf(op, "permutation");
  Shape inverse(permutation.size());
  for (auto [i, dim] : llvm::enumerate(permutation))
    inverse[dim] = i;
  const bool isForward = flow.operands[0].has_value();
  if (!isForward && !flow.results[0])
    return failure();
  std::optional<PlacedOrder> placed = PlacedOrder::get(isForward ? *flow.operands[0] : *flow.results[0],
                                                       shapeOf(isForward ? op->getOperand(0) : op->getResult(0)));
  if (!placed || failed(isForward ? flow.setResult(0, transposed(*placed, permutation))
                                  : flow.setOperand(0, transposed(*placed, inverse))))
    return failure();
  flow.isView = true;
  if (flow.builder)
    flow.made = {flow.stored[0]};
  return success();
}

/// Elements that one task of a kernel adds up, one block after the other, at most, and at least.
static constexpr int64_t kLongRun = 1 << 14, kShortRun = 32;

/// Divides runs of reduced places, so that long columns are added up by many tasks: the inner places first, such as the
/// positions of each image, then the images.
static SmallVector<SmallVector<int64_t>> divideLongRuns(ArrayRef<SmallVector<int64_t>> runs, ArrayRef<int64_t> shape) {
  SmallVector<SmallVector<int64_t>> divided;
  auto count = [&](ArrayRef<int64_t> places) {
    int64_t product = 1;
    for (int64_t place : places)
      product *= shape[place];
    return product;
  };
  for (ArrayRef<int64_t> run : runs) {
    // Rows, which end at the last place, are shared among threads as they are.
    while (run.back() + 1 != int64_t(shape.size()) && count(run) > kLongRun) {
      size_t first = 1;
      while (first < run.size() && count(run.drop_front(first)) > kLongRun)
        ++first;
      if (first == run.size() || count(run.drop_front(first)) < kShortRun)
        break;
      divided.emplace_back(run.drop_front(first));
      run = run.take_front(first);
    }
    divided.emplace_back(run);
  }
  return divided;
}

LogicalResult nn::orderReduce(Operation *op, OrderFlow &flow) {
  ArrayRef<int64_t> dims = listOf(op, "dims"), from = shapeOf(op->getOperand(0));
  std::optional<PlacedOrder> placed = flow.operands[0] ? PlacedOrder::get(*flow.operands[0], from) : std::nullopt;
  if (!placed)
    return failure();
  Shape kept;
  for (int64_t dim = 0; dim < int64_t(from.size()); ++dim)
    if (!llvm::is_contained(dims, dim))
      kept.push_back(dim);
  if (failed(flow.setResult(0, placed->restrictTo(kept))))
    return failure();
  SmallVector<SmallVector<int64_t>> runs;
  for (auto [place, factor] : llvm::enumerate(placed->order)) {
    if (!llvm::is_contained(dims, placed->dims[factor]))
      continue;
    if (runs.empty() || runs.back().back() + 1 != int64_t(place))
      runs.emplace_back();
    runs.back().push_back(place);
  }
  // A sum of rounded sums would be less exact.
  const bool isNarrow = getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() < 32;
  if (runs.empty() || (runs.size() > 1 && isNarrow))
    return failure();
  if (!flow.builder)
    return success();
  const size_t numRuns = runs.size();
  if (!isNarrow)
    runs = divideLongRuns(runs, placed->getStoredShape());
  const bool isDivided = runs.size() > numRuns;
  // What lies between two runs stays: one after the other, each as columns or as rows.
  Shape shape = placed->getStoredShape();
  Value value = flow.stored[0];
  llvm::SmallDenseSet<int64_t> gone;
  for (ArrayRef<int64_t> run : runs) {
    Shape places = llvm::map_to_vector(run, [&](int64_t place) {
      return place - int64_t(llvm::count_if(gone, [&](int64_t earlier) { return earlier < place; }));
    });
    shape.erase(shape.begin() + places.front(), shape.begin() + places.back() + 1);
    NamedAttribute changed(flow.builder->getStringAttr("dims"), flow.builder->getDenseI64ArrayAttr(places));
    value = flow.make(value, {shape}, changed)[0];
    if (isDivided)
      value.getDefiningOp()->setAttr(dividedAttrName, flow.builder->getUnitAttr());
    gone.insert(run.begin(), run.end());
  }
  flow.made = {value};
  return success();
}

//===-- parts of a dimension ----------------------------------------------===//

/// `placed` of a tensor of shape `from` that has `to` where it differs: such a dimension is one factor. Nothing where
/// one is divided, or is 1 and so has no place.
static std::optional<PlacedOrder> resized(PlacedOrder placed, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  for (auto [dim, extents] : llvm::enumerate(llvm::zip_equal(from, to))) {
    auto [before, after] = extents;
    Shape places = placed.getPlaces(dim);
    if (before == after)
      continue;
    if (places.size() != 1 || before == 1)
      return std::nullopt;
    placed.extents[placed.order[places[0]]] = after;
  }
  return placed;
}

static DimensionOrder orderOf(const PlacedOrder &placed) { return DimensionOrder(placed.extents, placed.order); }

/// For an op between tensors that differ in the extents of some dimensions: the placed order of the value whose order
/// is known, of which all others follow.
static std::optional<PlacedOrder> relate(Operation *op, OrderFlow &flow, bool resultFirst) {
  std::optional<PlacedOrder> main;
  ArrayRef<int64_t> shape;
  auto look = [&](Value value, const std::optional<DimensionOrder> &order) {
    if (main || !order)
      return;
    main = PlacedOrder::get(*order, shapeOf(value));
    shape = shapeOf(value);
  };
  if (resultFirst)
    look(op->getResult(0), flow.results[0]);
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    look(operand, flow.operands[i]);
  look(op->getResult(0), flow.results[0]);
  if (!main)
    return std::nullopt;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    std::optional<PlacedOrder> own = resized(*main, shape, shapeOf(operand));
    if (!own || failed(flow.setOperand(i, orderOf(*own))))
      return std::nullopt;
  }
  std::optional<PlacedOrder> own = resized(*main, shape, shapeOf(op->getResult(0)));
  if (!own || failed(flow.setResult(0, orderOf(*own))))
    return std::nullopt;
  return main;
}

/// A list of one entry per dimension as one of an entry per place; `rest` where a dimension has several.
static NamedAttribute placedList(OrderFlow &flow, StringRef name, const PlacedOrder &placed, int64_t rest) {
  ArrayRef<int64_t> list = listOf(flow.op, name);
  Shape entries(placed.order.size(), rest);
  for (int64_t dim = 0; dim < int64_t(list.size()); ++dim)
    if (Shape places = placed.getPlaces(dim); places.size() == 1)
      entries[places[0]] = list[dim];
  return {flow.builder->getStringAttr(name), flow.builder->getDenseI64ArrayAttr(entries)};
}

LogicalResult nn::orderSlice(Operation *op, OrderFlow &flow) {
  std::optional<PlacedOrder> main = relate(op, flow, /*resultFirst=*/false);
  if (!main)
    return failure();
  if (!flow.builder)
    return success();
  ArrayRef<int64_t> from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
  // With the operand's order known, its own is the main one.
  PlacedOrder result = *resized(*main, from, to);
  flow.made = flow.make(reshapeTo(*flow.builder, flow.stored[0], main->getStoredShape()), {result.getStoredShape()},
                        {placedList(flow, "starts", *main, 0), placedList(flow, "strides", *main, 1)});
  return success();
}

LogicalResult nn::orderPad(Operation *op, OrderFlow &flow) {
  std::optional<PlacedOrder> main = relate(op, flow, /*resultFirst=*/true);
  if (!main)
    return failure();
  if (!flow.builder)
    return success();
  PlacedOrder operand = *resized(*main, shapeOf(op->getResult(0)), shapeOf(op->getOperand(0)));
  flow.made = flow.make(
      reshapeTo(*flow.builder, flow.stored[0], operand.getStoredShape()), {main->getStoredShape()},
      {placedList(flow, "low", *main, 0), placedList(flow, "high", *main, 0), placedList(flow, "interior", *main, 0)});
  return success();
}

LogicalResult nn::orderConcat(Operation *op, OrderFlow &flow) {
  const int64_t dim = cast<ConcatOp>(op).getDim();
  std::optional<PlacedOrder> main = relate(op, flow, /*resultFirst=*/true);
  if (!main || main->getPlaces(dim).size() != 1)
    return failure();
  if (!flow.builder)
    return success();
  ArrayRef<int64_t> whole = shapeOf(op->getResult(0));
  SmallVector<Value> parts;
  for (auto [part, operand] : llvm::zip_equal(flow.stored, op->getOperands()))
    parts.push_back(reshapeTo(*flow.builder, part, resized(*main, whole, shapeOf(operand))->getStoredShape()));
  NamedAttribute changed(flow.builder->getStringAttr("dim"), flow.builder->getI64IntegerAttr(main->getPlaces(dim)[0]));
  flow.made = flow.make(parts, {main->getStoredShape()}, changed);
  return success();
}

//===-- windows -----------------------------------------------------------===//

LogicalResult nn::orderWindowed(Operation *op, OrderFlow &flow) {
  if (op->hasAttr("channels_last"))
    return failure();
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (failed(flow.setOperand(i, DimensionOrder::channelsLast(shapeOf(operand)))))
      return failure();
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (failed(flow.setResult(i, DimensionOrder::channelsLast(shapeOf(result)))))
      return failure();
  if (!flow.builder)
    return success();
  auto channelsLast = [](Value value) {
    Shape shape(shapeOf(value));
    std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
    return shape;
  };
  SmallVector<Value> operands;
  for (auto [stored, operand] : llvm::zip_equal(flow.stored, op->getOperands()))
    operands.push_back(reshapeTo(*flow.builder, stored, channelsLast(operand)));
  NamedAttribute changed(flow.builder->getStringAttr("channels_last"), flow.builder->getUnitAttr());
  flow.made =
      flow.make(operands, llvm::map_to_vector(op->getResults(), [&](Value y) { return channelsLast(y); }), changed);
  return success();
}
