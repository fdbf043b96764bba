//===- GpuStagedEmitter.cpp - kernels around reductions, on a GPU -*- C++ -*-===//
//
// Emitters "row" and "column". All kept dimensions are independent. A row belongs to a team of threads, which keeps
// nothing between traversals: what is needed again is computed again, from operands that the caches still have. 32
// threads side by side have a column each, or neighbours that 16 bytes hold.
//
//===----------------------------------------------------------------------===//

#include "StagedBody.h"
#include "StagedPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

/// Threads of a block of several teams, of a block that is one team, and columns of a block.
static constexpr int64_t kThreads = 128, kMaxTeam = 256, kMaxTeamOfFew = 1024, kColumns = 32;
/// Thread groups of a block of columns at most, and rows below which a row gets more threads.
static constexpr int64_t kMaxGroups = 16, kFewRows = 1024;
/// Sums over a row that a thread keeps at once, four numbers and four elements of each: 18 fill more than 128
/// registers, and twelve beside what they are made of.
static constexpr size_t kMaxRowSums = 8;
/// Arrays beside which a row's rounds are not written out: what a thread reads of them at once is on its way together.
static constexpr size_t kManyArrays = 8;
/// Elements that a thread holds of all arrays while it writes neighbours: 19 arrays with four each spill, and ten with
/// eight each.
static constexpr size_t kMaxHeld = 64;
/// An operand with a smaller share of the elements, such as a row of factors, is held once for many.
static constexpr int64_t kSmallPart = 32;
/// Rows are so few, and of so many segments, that two kernels share the work.
static constexpr int64_t kFewLongRows = 64, kManySegments = 65;
/// Of the first of two kernels: threads of a block, bytes of its totals at most.
static constexpr int64_t kPartialThreads = 256, kMaxPartialBytes = int64_t(1) << 30;
/// Blocks over columns that keep a GPU busy; sums and factors of neighbouring columns that a thread holds at once, and
/// bytes that it reads ahead: beside as many, 48 of the former spill.
static constexpr int64_t kBusyBlocks = 128, kBytesAhead = 128;
static constexpr uint64_t kMaxColumnValues = 40;
/// Sums of a block in shared memory, of neighbouring columns.
static constexpr uint64_t kMaxSharedBytes = 32 << 10;

static int64_t product(ArrayRef<int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

int64_t codegen::getGpuTeamSize(const StagedDomain &domain) {
  ReductionShape shape = domain.getShape();
  int64_t most = product(domain.keptExtents) < kFewRows ? kMaxTeamOfFew : kMaxTeam;
  int64_t segments = ReductionSet::countSegments(shape.outerCount, shape.innerCount);
  return std::min<int64_t>(llvm::PowerOf2Ceil(segments) * Team::kQuad, most);
}

static int64_t getGroups(const StagedDomain &domain) {
  ReductionShape shape = domain.getShape();
  int64_t blocks = ReductionSet::countBlocks(shape.outerCount, shape.innerCount);
  return std::min<int64_t>(llvm::PowerOf2Ceil(blocks), kMaxGroups);
}

namespace {
/// Columns of a block.
struct ColumnTile {
  /// Neighbouring columns of a thread, neighbouring threads, and groups of them, which add up blocks of rows; rows that
  /// a thread reads ahead, 0: as the compiler likes.
  int64_t width = 1, lanes = kColumns, groups, rounds = 0;

  /// Where one kernel adds up, the last of two, and the first of two.
  static ColumnTile ofWhole(nn::KernelOp kernel, const StagedDomain &domain);
  static ColumnTile ofTotals(const StagedDomain &domain) { return {.groups = getGroups(domain)}; }
  static ColumnTile ofPartials(nn::KernelOp kernel, const StagedDomain &domain);

  int64_t countTiles(const StagedDomain &domain) const {
    return product(domain.keptExtents) / domain.columns * llvm::divideCeil(domain.columns, width * lanes);
  }
  static int64_t countChunks(const StagedDomain &domain, int64_t groups) {
    ReductionShape shape = domain.getShape();
    return llvm::divideCeil(ReductionSet::countBlocks(shape.outerCount, shape.innerCount), groups);
  }

private:
  /// Gives a thread as many neighbours as 16 bytes hold, if it can hold their sums, and blocks are still many; there
  /// are `blocks` of one column per thread. With `shares`, groups hand each other their sums.
  void widen(nn::KernelOp kernel, const StagedDomain &domain, ArrayRef<ReductionInterface> sums, int64_t blocks,
             bool shares);
};
} // namespace

void ColumnTile::widen(nn::KernelOp kernel, const StagedDomain &domain, ArrayRef<ReductionInterface> sums,
                       int64_t blocks, bool shares) {
  auto getBytes = [](Value value) { return elementBytes(cast<RankedTensorType>(value.getType()).getElementType()); };
  uint64_t least = 16, bytes = 0, sharedBytes = 0;
  size_t numWhole = 0, numKept = sums.size();
  for (Value value : llvm::concat<const Value>(kernel.getOperands(), kernel.getResults()))
    if (dropUnitExtents(value) == domain.extents) {
      least = std::min(least, getBytes(value));
      bytes += getBytes(value);
      ++numWhole;
    }
  for (Value operand : kernel.getOperands())
    numKept += dropUnitExtents(operand) != domain.extents && !dropUnitExtents(operand).empty();
  for (ReductionInterface sum : sums)
    sharedBytes += elementBytes(accumulatorType(cast<RankedTensorType>(sum->getResult(0).getType()).getElementType()));
  for (width = 16 / least; width > 1; width /= 2) {
    lanes = std::min<int64_t>(llvm::PowerOf2Ceil(domain.columns / width), kColumns);
    const uint64_t threads = groups * lanes;
    if (domain.keptExtents.back() % width == 0 && blocks / width >= kBusyBlocks &&
        width * numKept <= kMaxColumnValues && width * numWhole <= kMaxHeld &&
        (!shares || (threads >= kThreads && threads * width * sharedBytes <= kMaxSharedBytes))) {
      rounds = std::max<int64_t>(1, kBytesAhead / (width * bytes));
      return;
    }
  }
  lanes = kColumns;
}

ColumnTile ColumnTile::ofWhole(nn::KernelOp kernel, const StagedDomain &domain) {
  ColumnTile tile = ofTotals(domain);
  StagedPlan plan(kernel, domain);
  // Sums that later ones are made of are known for one column.
  if (plan.traversals.size() == 1)
    tile.widen(kernel, domain, plan.traversals.front(), tile.countTiles(domain), /*shares=*/true);
  return tile;
}

ColumnTile ColumnTile::ofPartials(nn::KernelOp kernel, const StagedDomain &domain) {
  ColumnTile tile{.groups = kPartialThreads / kColumns};
  StagedPlan plan(kernel, domain);
  tile.widen(kernel, domain, plan.traversals.front(), tile.countTiles(domain) * countChunks(domain, tile.groups),
             /*shares=*/false);
  tile.groups = kPartialThreads / tile.lanes;
  return tile;
}

Grid codegen::getGpuColumnGrid(const StagedDomain &domain) {
  const ColumnTile tile = ColumnTile::ofTotals(domain);
  return {tile.countTiles(domain), tile.groups * tile.lanes};
}

Grid codegen::getGpuStagedGrid(const StagedDomain &domain, unsigned processors) {
  if (!domain.getShape().trailing)
    return getGpuColumnGrid(domain);
  int64_t kept = product(domain.keptExtents);
  int64_t team = getGpuTeamSize(domain);
  int64_t threads = team > 32 ? team : std::min<int64_t>(kThreads, llvm::alignTo(kept * team, 32)),
          rows = threads / team;
  return {std::min<int64_t>(llvm::divideCeil(kept, rows), 4 * getMostBlocks(processors)), threads};
}

Grid codegen::getGpuStagedGrid(nn::KernelOp kernel, const StagedDomain &domain, unsigned processors) {
  if (domain.getShape().trailing)
    return getGpuStagedGrid(domain, processors);
  const ColumnTile tile = ColumnTile::ofWhole(kernel, domain);
  return {tile.countTiles(domain), tile.groups * tile.lanes};
}

namespace {
class GpuStagedEmitter : public StagedBody {
public:
  using StagedBody::StagedBody;
  /// With `partials`: the totals of segments, instead of the row.
  LogicalResult emitRows(Value partials);
  LogicalResult emitRowsAt(const TeamPlace &place, Value base, bool mayBeNone, Value partials);
  /// With `partials`: the totals of blocks of rows, instead of the rows.
  LogicalResult emitColumns(Value partials);
  LogicalResult emitPartials();
  LogicalResult emitRowPartials();

private:
  /// The kept elements of the columns that `lane` has of a block's tile, or of the last there are; whether they exist,
  /// null: certainly.
  std::pair<SmallVector<SmallVector<Value>>, Value> getColumns(const ColumnTile &tile, Value outerKept, Value number,
                                                               Value lane);
  /// Operands of `ops` at a position, of one column after the other.
  SmallVector<Value> getElementsOf(ArrayRef<SmallVector<Value>> columns, ArrayRef<ReductionInterface> ops, Value outer,
                                   Value inner);
  /// Position of the totals of a block of rows and the kept element.
  Value getPartialPosition(Value block);
  /// The same of a segment of the kept element's row; and how many segments all rows have.
  Value getSegmentPosition(Value segment);
  int64_t countSegments() const { return ReductionSet::countSegments(shape.outerCount, shape.innerCount); }
  int64_t countPartials() const;
  /// Calls `emit` with the sums of a traversal, a few at a time, and, with `partials`, their arrays of totals.
  void forSomeSums(ArrayRef<ReductionInterface> ops, Value partials,
                   function_ref<void(ReductionSet &, ArrayRef<ReductionInterface>, ArrayRef<Value>)> emit);
  void emitRow(const Team &team, Value active, Value partials);
  /// Operands and results whose elements a row has many of.
  size_t countArrays();
  /// Neighbours in a row that one thread writes at once.
  int64_t getLanes();
};
} // namespace

size_t GpuStagedEmitter::countArrays() {
  return llvm::count_if(
      llvm::concat<const Value>(context.kernel.getOperands(), context.kernel.getResults()), [&](Value value) {
        return kSmallPart * cast<RankedTensorType>(value.getType()).getNumElements() >= product(domain.extents);
      });
}

int64_t GpuStagedEmitter::getLanes() {
  uint64_t bytes = 8;
  size_t numWhole = 0;
  for (Value value : llvm::concat<const Value>(context.kernel.getOperands(), context.kernel.getResults()))
    if (dropUnitExtents(value) == domain.extents) {
      bytes = std::min(bytes, elementBytes(cast<RankedTensorType>(value.getType()).getElementType()));
      ++numWhole;
    }
  int64_t lanes = std::min<int64_t>(16 / bytes, 8);
  while (lanes > 1 && (shape.innerCount % lanes || lanes * numWhole > kMaxHeld))
    lanes /= 2;
  return lanes;
}

void GpuStagedEmitter::forSomeSums(
    ArrayRef<ReductionInterface> ops, Value partials,
    function_ref<void(ReductionSet &, ArrayRef<ReductionInterface>, ArrayRef<Value>)> emit) {
  SmallVector<Value> arrays;
  if (partials)
    arrays = ReductionSet(evaluator, ops, shape.outerCount, shape.innerCount).getArrays(partials, countPartials());
  const size_t share = llvm::divideCeil(ops.size(), llvm::divideCeil(ops.size(), kMaxRowSums));
  for (size_t first = 0; first < ops.size(); first += share) {
    const size_t count = std::min(share, ops.size() - first);
    ReductionSet set(evaluator, ops.slice(first, count), shape.outerCount, shape.innerCount);
    emit(set, ops.slice(first, count), partials ? ArrayRef(arrays).slice(first, count) : ArrayRef<Value>());
  }
}

void GpuStagedEmitter::emitRow(const Team &team, Value active, Value partials) {
  StagedPlan plan(context.kernel, domain);
  const int64_t given = std::exchange(function.maxRounds, countArrays() > kManyArrays ? 1 : function.maxRounds);
  for (ArrayRef<ReductionInterface> traversal : plan.traversals)
    forSomeSums(traversal, partials, [&](ReductionSet &set, ArrayRef<ReductionInterface> ops, ArrayRef<Value> arrays) {
      SmallVector<Value> values;
      if (partials)
        values =
            set.combineByTeam(team, [&](Value segment) { return set.loadAll(arrays, getSegmentPosition(segment)); });
      else
        values = set.emitTrailingByTeam(team, [&](Value outer, Value inner) { return getElements(ops, outer, inner); });
      for (auto [op, value] : llvm::zip_equal(ops, values))
        bindReduction(op, [value = value] { return value; });
    });
  // Everybody has read the whole row by now: a result may overwrite an operand.
  if (hasResults(/*full=*/true))
    evaluator.when(active, [&] {
      const int64_t lanes = getLanes(), vectors = shape.innerCount / lanes;
      evaluator.loop(team.rank, function.index(shape.outerCount * vectors), team.size, LoopKind::Parallel,
                     [&](Value vector) {
                       auto parts = function.delinearize(vector, {shape.outerCount, vectors});
                       Value first = function.mul(parts[1], function.index(lanes));
                       storeVector(/*full=*/true, lanes, [&](int64_t lane) {
                         return std::pair(parts[0], lane ? function.add(first, function.index(lane)) : first);
                       });
                     });
    });
  if (hasResults(/*full=*/false)) {
    ScalarBuilder scalars(function.builder, function.loc);
    Value one = scalars.compare(Compare::EQ, team.rank, function.index(0));
    evaluator.when(active ? scalars.logicalAnd(active, one) : one,
                   [&] { storeResults(/*full=*/false, nullptr, nullptr); });
  }
  function.maxRounds = given;
}

TeamPlace codegen::enterTeams(KernelFunction &function, int64_t size) {
  ScalarBuilder scalars(function.builder, function.loc);
  auto parts = function.delinearize(function.thread, {function.grid.threads / size, size});
  Team team{size, parts[1], nullptr};
  if (size <= 32) {
    Value lane = function.delinearize(function.thread, {int64_t(1) << 20, 32})[1];
    team.firstLane = scalars.sub(lane, team.rank);
  }
  return {team, parts[0]};
}

LogicalResult GpuStagedEmitter::emitRowsAt(const TeamPlace &place, Value base, bool mayBeNone, Value partials) {
  const int64_t kept = product(domain.keptExtents);
  ScalarBuilder scalars(function.builder, function.loc);
  Value row = function.add(base, place.number), active;
  if (mayBeNone) {
    // Teams without a row of their own go along with the last one, for the warp's shuffles, and write nothing.
    active = scalars.compare(Compare::LT, row, function.index(kept));
    row = function.min(row, function.index(kept - 1));
  }
  setKept(row, nullptr);
  emitRow(place.team, active, partials);
  return success(!failed);
}

LogicalResult GpuStagedEmitter::emitRows(Value partials) {
  const int64_t kept = product(domain.keptExtents), rows = function.grid.threads / getGpuTeamSize(domain);
  TeamPlace place = enterTeams(function, getGpuTeamSize(domain));
  Value first = function.mul(function.block, function.index(rows));
  evaluator.loop(first, function.index(kept), rows * function.grid.blocks, LoopKind::Sequential,
                 [&](Value base) { (void)emitRowsAt(place, base, kept % rows != 0, partials); });
  return success(!failed);
}

std::pair<SmallVector<SmallVector<Value>>, Value> GpuStagedEmitter::getColumns(const ColumnTile &tile, Value outerKept,
                                                                               Value number, Value lane) {
  ScalarBuilder scalars(function.builder, function.loc);
  Value column = function.mul(function.add(function.mul(number, function.index(tile.lanes)), lane),
                              function.index(tile.width)),
        active;
  if (domain.columns % (tile.lanes * tile.width)) {
    active = scalars.compare(Compare::LT, column, function.index(domain.columns));
    column = function.min(column, function.index(domain.columns - tile.width));
  }
  SmallVector<SmallVector<Value>> columns;
  for (int64_t i = 0; i < tile.width; ++i) {
    setKept(outerKept, i ? function.add(column, function.index(i)) : column);
    columns.push_back(kept);
  }
  return {std::move(columns), active};
}

SmallVector<Value> GpuStagedEmitter::getElementsOf(ArrayRef<SmallVector<Value>> columns,
                                                   ArrayRef<ReductionInterface> ops, Value outer, Value inner) {
  SmallVector<Value> elements;
  for (const SmallVector<Value> &column : columns) {
    kept = column;
    llvm::append_range(elements, getElements(ops, outer, inner));
  }
  return elements;
}

Value GpuStagedEmitter::getPartialPosition(Value block) {
  return function.add(function.mul(block, function.index(product(domain.keptExtents))),
                      function.linearize(kept, domain.keptExtents));
}

Value GpuStagedEmitter::getSegmentPosition(Value segment) {
  return function.add(function.mul(function.linearize(kept, domain.keptExtents), function.index(countSegments())),
                      segment);
}

int64_t GpuStagedEmitter::countPartials() const { return countSegments() * product(domain.keptExtents); }

LogicalResult GpuStagedEmitter::emitRowPartials() {
  const int64_t quads = function.grid.threads / Team::kQuad, count = countPartials();
  ScalarBuilder scalars(function.builder, function.loc);
  auto parts = function.delinearize(function.thread, {quads, Team::kQuad});
  Value place = function.add(function.mul(function.block, function.index(quads)), parts[0]);
  Value active = scalars.compare(Compare::EQ, parts[1], function.index(0));
  if (count % quads) {
    // Threads after the last segment go along with it, for the warp's shuffles, and write nothing.
    active = scalars.logicalAnd(active, scalars.compare(Compare::LT, place, function.index(count)));
    place = function.min(place, function.index(count - 1));
  }
  auto at = function.delinearize(place, {product(domain.keptExtents), countSegments()});
  setKept(at[0], nullptr);
  StagedPlan plan(context.kernel, domain);
  forSomeSums(plan.traversals.front(), function.getPointer(function.getNumPointers() - 1),
              [&](ReductionSet &set, ArrayRef<ReductionInterface> ops, ArrayRef<Value> arrays) {
                SmallVector<Value> totals = set.emitSegmentTotals(
                    at[1], parts[1], [&](Value outer, Value inner) { return getElements(ops, outer, inner); });
                evaluator.when(active, [&] { set.storeAll(arrays, getSegmentPosition(at[1]), totals); });
              });
  return success(!failed);
}

/// The sums of all columns of a thread, as if each had operations of its own.
static SmallVector<ReductionInterface> repeat(ArrayRef<ReductionInterface> ops, int64_t times) {
  SmallVector<ReductionInterface> all;
  for (int64_t i = 0; i < times; ++i)
    llvm::append_range(all, ops);
  return all;
}

LogicalResult GpuStagedEmitter::emitPartials() {
  StagedPlan plan(context.kernel, domain);
  ArrayRef<ReductionInterface> ops = plan.traversals.front();
  const ColumnTile tile = ColumnTile::ofPartials(context.kernel, domain);
  const int64_t numBlocks = ReductionSet::countBlocks(shape.outerCount, shape.innerCount);
  const int64_t chunks = ColumnTile::countChunks(domain, tile.groups),
                outerCount = product(domain.keptExtents) / domain.columns;
  ScalarBuilder scalars(function.builder, function.loc);
  auto place = function.delinearize(function.block, {outerCount, tile.countTiles(domain) / outerCount, chunks});
  auto parts = function.delinearize(function.thread, {tile.groups, tile.lanes});
  auto [columns, active] = getColumns(tile, place[0], place[1], parts[1]);
  Value block = function.add(function.mul(place[2], function.index(tile.groups)), parts[0]);
  ReductionSet set(evaluator, repeat(ops, tile.width), shape.outerCount, shape.innerCount);
  const bool mayBeNone = numBlocks % tile.groups != 0;
  const int64_t given = std::exchange(function.maxRounds, tile.rounds ? tile.rounds : function.maxRounds);
  SmallVector<Value> totals = set.emitBlock(
      block, mayBeNone, [&](Value outer, Value inner) { return getElementsOf(columns, ops, outer, inner); });
  function.maxRounds = given;
  if (mayBeNone) {
    Value exists = scalars.compare(Compare::LT, block, function.index(numBlocks));
    active = active ? scalars.logicalAnd(active, exists) : exists;
  }
  ReductionSet single(evaluator, ops, shape.outerCount, shape.innerCount);
  SmallVector<Value> arrays =
      single.getArrays(function.getPointer(function.getNumPointers() - 1), numBlocks * product(domain.keptExtents));
  evaluator.when(active, [&] {
    for (auto [i, column] : llvm::enumerate(columns)) {
      kept = column;
      single.storeAll(arrays, getPartialPosition(block), ArrayRef(totals).slice(i * ops.size(), ops.size()));
    }
  });
  return success(!failed);
}

LogicalResult GpuStagedEmitter::emitColumns(Value partials) {
  const ColumnTile tile = partials ? ColumnTile::ofTotals(domain) : ColumnTile::ofWhole(context.kernel, domain);
  const int64_t outerCount = product(domain.keptExtents) / domain.columns;
  ScalarBuilder scalars(function.builder, function.loc);
  auto place = function.delinearize(function.block, {outerCount, tile.countTiles(domain) / outerCount});
  auto parts = function.delinearize(function.thread, {tile.groups, tile.lanes});
  Value group = parts[0], lane = parts[1];
  auto [columns, active] = getColumns(tile, place[0], place[1], lane);
  StagedPlan plan(context.kernel, domain);
  // Rows that no sum is a part of are written where they are added up: a tile's columns are too long for the caches.
  const bool writesAtOnce = !partials && hasResults(/*full=*/true) && plan.writer == 0;
  SmallVector<Value> values;
  for (ArrayRef<ReductionInterface> ops : plan.traversals) {
    ReductionSet set(evaluator, repeat(ops, tile.width), shape.outerCount, shape.innerCount);
    if (partials) {
      const int64_t numBlocks = ReductionSet::countBlocks(shape.outerCount, shape.innerCount);
      SmallVector<Value> arrays = set.getArrays(partials, numBlocks * product(domain.keptExtents));
      values = set.combineByGroups(group, tile.groups, lane, [&](Value block) {
        if (numBlocks % tile.groups)
          block = function.min(block, function.index(numBlocks - 1));
        return set.loadAll(arrays, getPartialPosition(block));
      });
    } else {
      const int64_t given = std::exchange(function.maxRounds, tile.rounds ? tile.rounds : function.maxRounds);
      values = set.emitLeadingByGroups(group, tile.groups, lane, [&](Value outer, Value inner) {
        SmallVector<Value> elements = getElementsOf(columns, ops, outer, inner);
        if (writesAtOnce)
          evaluator.when(active, [&] {
            storeVector(/*full=*/true, tile.width, [&](int64_t i) {
              kept = columns[i];
              return std::pair(outer, inner);
            });
          });
        return elements;
      });
      function.maxRounds = given;
    }
    for (auto [op, value] : llvm::zip(ops, values))
      bindReduction(op, [value = value] { return value; });
  }
  // Sums are known for the current column.
  auto enter = [&](int64_t i) {
    kept = columns[i];
    if (tile.width > 1)
      for (auto [k, op] : llvm::enumerate(plan.traversals.front()))
        bindReduction(op, [value = values[i * plan.traversals.front().size() + k]] { return value; });
  };
  if (hasResults(/*full=*/true) && !writesAtOnce)
    evaluator.when(active, [&] {
      evaluator.loop(group, function.index(shape.outerCount * shape.innerCount), tile.groups, LoopKind::Parallel,
                     [&](Value position) {
                       auto at = function.delinearize(position, {shape.outerCount, shape.innerCount});
                       storeVector(/*full=*/true, tile.width, [&](int64_t i) {
                         enter(i);
                         return std::pair(at[0], at[1]);
                       });
                     });
    });
  if (hasResults(/*full=*/false)) {
    Value one = scalars.compare(Compare::EQ, group, function.index(0));
    evaluator.when(active ? scalars.logicalAnd(active, one) : one, [&] {
      storeVector(/*full=*/false, tile.width, [&](int64_t i) {
        enter(i);
        return std::pair(Value(), Value());
      });
    });
  }
  return success(!failed);
}

LogicalResult codegen::emitGpuRowsAt(KernelContext &context, const StagedDomain &domain, const TeamPlace &place,
                                     Value base, bool mayBeNone) {
  return GpuStagedEmitter(context, domain).emitRowsAt(place, base, mayBeNone, /*partials=*/nullptr);
}

LogicalResult codegen::emitGpuRow(KernelContext &context, const StagedDomain &domain) {
  return GpuStagedEmitter(context, domain).emitRows(/*partials=*/nullptr);
}

LogicalResult codegen::emitGpuColumn(KernelContext &context, const StagedDomain &domain) {
  return GpuStagedEmitter(context, domain).emitColumns(/*partials=*/nullptr);
}

uint64_t codegen::getPartialBytes(nn::KernelOp kernel, const StagedDomain &domain) {
  ReductionShape shape = domain.getShape();
  const int64_t kept = product(domain.keptExtents);
  const int64_t numParts = shape.trailing ? ReductionSet::countSegments(shape.outerCount, shape.innerCount)
                                          : ReductionSet::countBlocks(shape.outerCount, shape.innerCount);
  if (shape.trailing ? numParts < kManySegments || kept > kFewLongRows : numParts <= kMaxGroups)
    return 0;
  // What is written after the sums is small; rows that are written need them within one kernel.
  for (Value result : kernel.getYield().getOperands())
    if (dropUnitExtents(result) == domain.extents)
      return 0;
  StagedPlan plan(kernel, domain);
  if (plan.traversals.size() != 1)
    return 0;
  uint64_t bytes = 0;
  for (ReductionInterface op : plan.traversals.front()) {
    Type type = accumulatorType(cast<RankedTensorType>(op->getResult(0).getType()).getElementType());
    bytes += numParts * kept * elementBytes(type);
  }
  return bytes <= kMaxPartialBytes ? bytes : 0;
}

Grid codegen::getGpuPartialGrid(nn::KernelOp kernel, const StagedDomain &domain) {
  ReductionShape shape = domain.getShape();
  if (shape.trailing) {
    const int64_t count = product(domain.keptExtents) * ReductionSet::countSegments(shape.outerCount, shape.innerCount);
    return {static_cast<int64_t>(llvm::divideCeil(count, kThreads / Team::kQuad)), kThreads};
  }
  const ColumnTile tile = ColumnTile::ofPartials(kernel, domain);
  return {tile.countTiles(domain) * ColumnTile::countChunks(domain, tile.groups), kPartialThreads};
}

LogicalResult codegen::emitGpuPartials(KernelContext &context, const StagedDomain &domain) {
  GpuStagedEmitter emitter(context, domain);
  return domain.getShape().trailing ? emitter.emitRowPartials() : emitter.emitPartials();
}

LogicalResult codegen::emitGpuTotals(KernelContext &context, const StagedDomain &domain) {
  Value partials = context.function.getPointer(context.kernel.getNumOperands());
  GpuStagedEmitter emitter(context, domain);
  return domain.getShape().trailing ? emitter.emitRows(partials) : emitter.emitColumns(partials);
}
