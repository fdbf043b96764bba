//===- GpuSearchEmitter.cpp - additions by the row they land in -*- C++ -*-===//
//
// The gradient of a gather: many updates, each a row to be added at a computed place. No sort and no atomics: a warp
// owns a row of the result, holds its columns in registers, and looks through all places, 128 at a time. Most of the
// time nothing has found anything, which one round of shuffles tells.
//
//===----------------------------------------------------------------------===//

#include "GpuLowering.h"
#include "GpuSearch.h"
#include "ScatterStart.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

static constexpr int64_t kWarp = kSearchWarp, kWarps = kSearchWarps;
/// Places that a lane looks at in one round.
static constexpr int64_t kLooks = 4;
/// Bits that are tested one after another between two jumps. Where an update takes no load, all 32 tests would be
/// written out; ptxas moves so many bits into its seven predicate registers at once, and fails to allocate them.
static constexpr int64_t kBitRounds = 4;
/// Updates that are read before the first of them is added, where few rows receive them.
static constexpr int64_t kRowsAhead = 8;

static int64_t product(ArrayRef<int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

SearchShape::SearchShape(ScatterInterface op)
    : updates(cast<RankedTensorType>(op->getOperand(op.getUpdatesOperand()).getType())),
      result(cast<RankedTensorType>(op->getResult(0).getType())), passed(op.getPassedDims()) {
  for (int64_t d = 0; d < result.getRank(); ++d)
    (passed[d] < 0 ? decided : copied).push_back(d);
  for (int64_t d = 0; d < updates.getRank(); ++d)
    if (!llvm::is_contained(passed, d))
      free.push_back(d);
  rows = product(extents(result, decided));
  columns = product(extents(result, copied));
  count = product(extents(updates, free));
}

SmallVector<int64_t> SearchShape::extents(RankedTensorType type, ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [&](int64_t d) { return type.getDimSize(d); });
}
int64_t SearchShape::columnsPerLane() const {
  // A warp that nearly every update concerns waits for memory alone: there are to be many.
  if (hasFewRows())
    return 1;
  return std::min<int64_t>(llvm::divideCeil(columns, kWarp), kSearchColumns);
}
int64_t SearchShape::pieces() const { return llvm::divideCeil(columns, kWarp * columnsPerLane()); }
int64_t SearchShape::rowBlocks() const { return llvm::divideCeil(rows, kWarps); }

Grid codegen::getGpuSearchGrid(ScatterInterface op) {
  SearchShape shape(op);
  return {shape.rowBlocks() * shape.pieces(), kWarp * kWarps};
}

ScatterInterface codegen::findScatter(nn::KernelOp kernel) {
  if (ScatterInterface alone = getScatter(kernel))
    return alone;
  ScatterInterface scatter;
  if (kernel.getEmitter() != nn::Emitter::scatter || kernel.getNumResults() != 1)
    return {};
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>() || op.hasTrait<OpTrait::Elementwise>())
      continue;
    if (op.getNumResults() != 1 || isa<ReductionInterface>(op) || !isa<ElementInterface>(op))
      return {};
    if (!isa<ScatterInterface>(op))
      continue;
    if (scatter)
      return {};
    scatter = cast<ScatterInterface>(op);
  }
  if (!scatter || !canSearch(kernel, scatter))
    return {};
  // Elements of its result are known where they are written, and nowhere else.
  auto type = scatter->getResult(0).getType();
  for (Operation *user : scatter->getResult(0).getUsers())
    if (!isa<nn::YieldOp>(user) && llvm::any_of(user->getOperandTypes(), [&](Type other) { return other != type; }))
      return {};
  return scatter;
}

bool codegen::canSearch(nn::KernelOp kernel, ScatterInterface op) {
  SearchShape shape(op);
  if (shape.rows == 0 || shape.columns == 0 || shape.count == 0)
    return false;
  // The target's code for indices that nothing is known of: which of them does it read?
  OwningOpRef<ModuleOp> trial = ModuleOp::create(kernel.getLoc());
  addGpuModule(*trial);
  SmallVector<bool> mayAlias(kernel.getNumOperands() + kernel.getNumResults(), false);
  KernelFunction function(getGpuModule(*trial), "trial", mayAlias, /*hasScratch=*/false, {1, kWarp});
  RegionEvaluator evaluator(function);
  for (auto [i, argument] : llvm::enumerate(kernel.getBlock()->getArguments()))
    evaluator.bindArray(argument, function.getPointer(i));
  SmallVector<Value> index, target;
  llvm::DenseSet<Value> copied;
  for (int64_t d = 0; d < shape.updates.getRank(); ++d) {
    Type type = function.builder.getIndexType();
    index.push_back(function.function.getFunctionBody().front().addArgument(type, function.loc));
    if (llvm::is_contained(shape.passed, d))
      copied.insert(index.back());
  }
  SmallVector<Value> worklist;
  evaluator.withOperands(op,
                         [&](ElementBuilder &builder) { worklist.push_back(op.emitTarget(builder, index, target)); });
  for (int64_t d : shape.decided)
    worklist.push_back(target[d]);
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (copied.contains(value))
      return false;
    Operation *definition = value.getDefiningOp();
    if (!definition || !seen.insert(value).second)
      continue;
    definition->walk([&](Operation *part) { llvm::append_range(worklist, part->getOperands()); });
  }
  return true;
}

Value SearchEmitter::i32(int32_t value) {
  return arith::ConstantOp::create(function.builder, function.loc, function.builder.getI32IntegerAttr(value));
}
Value SearchEmitter::toWord(Value index) {
  return arith::IndexCastOp::create(function.builder, function.loc, function.builder.getI32Type(), index);
}
Value SearchEmitter::toIndex(Value word) {
  return arith::IndexCastOp::create(function.builder, function.loc, function.builder.getIndexType(), word);
}

SmallVector<Value> SearchEmitter::when(Value condition, ValueRange otherwise, function_ref<SmallVector<Value>()> body) {
  auto branch = scf::IfOp::create(
      function.builder, function.loc, condition,
      [&](OpBuilder &builder, Location loc) {
        RegionEvaluator::Scope scope(evaluator);
        SmallVector<Value> results = body();
        scf::YieldOp::create(builder, loc, results);
      },
      [&](OpBuilder &builder, Location loc) { scf::YieldOp::create(builder, loc, otherwise); });
  return SmallVector<Value>(branch.getResults());
}

Value SearchEmitter::gather(Value bits) {
  for (int32_t step = 1; step < kWarp; step *= 2)
    bits = arith::OrIOp::create(function.builder, function.loc, bits,
                                function.shuffle(bits, gpu::ShuffleMode::XOR, i32(step)));
  return bits;
}

std::pair<Value, Value> SearchEmitter::target(Value place) {
  SmallVector<Value> index(shape.updates.getRank(), function.index(0)), target;
  for (auto [d, i] : llvm::zip_equal(shape.free, function.delinearize(place, shape.extents(shape.updates, shape.free))))
    index[d] = i;
  Value lands;
  evaluator.withOperands(op, [&](ElementBuilder &builder) { lands = op.emitTarget(builder, index, target); });
  SmallVector<Value> decided = llvm::map_to_vector(shape.decided, [&](int64_t d) { return target[d]; });
  return {function.linearize(decided, shape.extents(shape.result, shape.decided)), lands};
}

/// Whether the update at `place` lands in this row.
Value SearchEmitter::found(Value place) {
  Value inside, at = place;
  if (shape.count % (kWarp * kLooks)) {
    inside = scalars.compare(Compare::LT, place, function.index(shape.count));
    at = function.min(place, function.index(shape.count - 1));
  }
  auto [targetRow, lands] = target(at);
  Value here = scalars.logicalAnd(scalars.compare(Compare::EQ, targetRow, row), lands);
  return inside ? scalars.logicalAnd(here, inside) : here;
}

SmallVector<Value> SearchEmitter::addUpdate(Value place, ValueRange sums) {
  SmallVector<Value> index(shape.updates.getRank());
  for (auto [d, i] : llvm::zip_equal(shape.free, function.delinearize(place, shape.extents(shape.updates, shape.free))))
    index[d] = i;
  SmallVector<Value> next;
  for (auto [column, sum] : llvm::zip_equal(columns, sums)) {
    auto parts = function.delinearize(column, shape.extents(shape.result, shape.copied));
    for (auto [d, i] : llvm::zip_equal(shape.copied, parts))
      index[shape.passed[d]] = i;
    next.push_back(meetThere(scalars, op, sum, evaluator.element(op->getOperand(op.getUpdatesOperand()), index)));
  }
  return next;
}

/// Adds the updates at `firstPlace` + the numbers of the bits that are set, in ascending order.
SmallVector<Value> SearchEmitter::addHits(Value bits, Value firstPlace, ValueRange sums) {
  OpBuilder &b = function.builder;
  Location loc = function.loc;
  const int64_t given = std::exchange(function.maxRounds, shape.hasFewRows() ? kRowsAhead : kBitRounds);
  SmallVector<Value> added = evaluator.loop(
      function.index(0), function.index(kWarp), 1, LoopKind::Sequential, sums,
      [&](Value number, ValueRange running) -> SmallVector<Value> {
        Value shifted = arith::ShRUIOp::create(b, loc, bits, toWord(number));
        Value isHit = scalars.compare(Compare::NE, arith::AndIOp::create(b, loc, shifted, i32(1)), i32(0));
        Value place = function.add(firstPlace, number);
        if (!shape.hasFewRows())
          return when(isHit, running, [&] { return addUpdate(place, running); });
        // What is read whether or not it lands here does not wait for the sum before it.
        if (shape.count % (kWarp * kLooks))
          place = function.min(place, function.index(shape.count - 1));
        return llvm::map_to_vector(llvm::zip_equal(addUpdate(place, running), running), [&](auto pair) -> Value {
          auto [next, sum] = pair;
          return arith::SelectOp::create(b, loc, isHit, next, sum);
        });
      });
  function.maxRounds = given;
  return added;
}

SmallVector<Value> SearchEmitter::enterRow() {
  auto place = function.delinearize(function.block, {shape.pieces(), shape.rowBlocks()});
  auto parts = function.delinearize(function.thread, {kWarps, kWarp});
  lane = parts[1];
  row = function.add(function.mul(place[1], function.index(kWarps)), parts[0]);
  if (shape.rows % kWarps) {
    active = scalars.compare(Compare::LT, row, function.index(shape.rows));
    row = function.min(row, function.index(shape.rows - 1));
  }
  const int64_t perLane = shape.columnsPerLane();
  Value firstColumn = function.add(function.mul(place[0], function.index(perLane * kWarp)), lane);
  SmallVector<Value> sums;
  for (int64_t i = 0; i < perLane; ++i) {
    wanted.push_back(function.add(firstColumn, function.index(i * kWarp)));
    columns.push_back(function.min(wanted.back(), function.index(shape.columns - 1)));
    sums.push_back(emitStart(evaluator, scalars, op, getIndex(columns.back())));
  }
  return sums;
}

/// Index into the result of the warp's row in `column`.
SmallVector<Value> SearchEmitter::getIndex(Value column) {
  SmallVector<Value> index(shape.result.getRank());
  auto rowIndex = function.delinearize(row, shape.extents(shape.result, shape.decided));
  for (auto [d, at] : llvm::zip_equal(shape.decided, rowIndex))
    index[d] = at;
  for (auto [d, at] :
       llvm::zip_equal(shape.copied, function.delinearize(column, shape.extents(shape.result, shape.copied))))
    index[d] = at;
  return index;
}

void SearchEmitter::writeRow(ValueRange sums) {
  for (auto [i, sum] : llvm::enumerate(sums)) {
    Value inside = scalars.compare(Compare::LT, wanted[i], function.index(shape.columns));
    if (active)
      inside = scalars.logicalAnd(inside, active);
    when(inside, {}, [&, i = i, sum = sum]() -> SmallVector<Value> {
      SmallVector<Value> index = getIndex(columns[i]);
      Value value = sum;
      if (yielded != op->getResult(0)) {
        evaluator.bind(op->getResult(0), [&](ValueRange) { return sum; });
        value = evaluator.element(yielded, index);
        evaluator.bind(op->getResult(0), nullptr);
      }
      function.store(pointer, getElementTypeOrSelf(yielded), function.linearize(index, shape.result.getShape()), value);
      return {};
    });
  }
}

void SearchEmitter::emitSearch() {
  OpBuilder &b = function.builder;
  Location loc = function.loc;
  SmallVector<Value> sums = enterRow();
  Value laneBit = arith::ShLIOp::create(b, loc, i32(1), toWord(lane));
  sums = evaluator.loop(
      function.index(0), function.index(shape.count), kWarp * kLooks, LoopKind::Sequential, sums,
      [&](Value base, ValueRange running) {
        SmallVector<Value> bits;
        Value any;
        for (int64_t look = 0; look < kLooks; ++look) {
          Value first = function.add(base, function.index(look * kWarp));
          bits.push_back(arith::SelectOp::create(b, loc, found(function.add(first, lane)), laneBit, i32(0)));
          any = any ? arith::OrIOp::create(b, loc, any, bits.back()).getResult() : bits.back();
        }
        return when(scalars.compare(Compare::NE, gather(any), i32(0)), running, [&] {
          SmallVector<Value> next(running);
          for (int64_t look = 0; look < kLooks; ++look)
            next = addHits(gather(bits[look]), function.add(base, function.index(look * kWarp)), next);
          return next;
        });
      });
  writeRow(sums);
}

void codegen::emitGpuSearch(KernelContext &context, ScatterInterface op) { SearchEmitter(context, op).emitSearch(); }
