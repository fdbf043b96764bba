//===- GpuReduction.cpp - the order of reductions, by threads together -*- C++ -*-===//
//
// The orders of ReductionOrder.cpp once more, bit for bit, for the threads of a GPU:
//
//   trailing   four threads hold the 16 lanes of a segment, four neighbouring ones each, in registers; the first two
//   steps
//              of the tree are shuffles, the others are registers. Totals of segments go around the team, and every
//              thread adds them up in order.
//   leading    32 lanes have a kept element each; the groups of 32 take blocks of 64 rows in turn and add their totals
//   up
//              in order.
//
//===----------------------------------------------------------------------===//

#include "ReductionOrder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <utility>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

/// Sums of a row whose segments are added up without a loop.
static constexpr size_t kFewSums = 4;
/// Rounds of a segment that stand in a row where that must be few.
static constexpr int64_t kFewRounds = 4;

SmallVector<Value> ReductionSet::allocateShared(int64_t count) {
  return llvm::map_to_vector(types, [&](Type type) { return function.shared(type, count); });
}

SmallVector<Value> ReductionSet::emitSegmentByThreads(Value segment, bool mayBeNone, Value quad, int64_t threads,
                                                      Elements elements) {
  OpBuilder &b = function.builder;
  Location loc = function.loc;
  const int64_t own = kLanes / threads; // lanes of this thread
  Value zero = function.index(0), count = function.index(kLanes);
  auto [line, lineEnd, inner, length] = getSegment(segment);
  if (mayBeNone && isOfOneLine()) {
    Value exists = scalars.compare(Compare::LT, segment, function.index(countSegments(outerCount, innerCount)));
    length = arith::SelectOp::create(b, loc, exists, length, zero);
  }
  // Accumulators: all lanes of the first op, then those of the next.
  SmallVector<Value> none;
  for (Value initial : initials())
    none.append(own, initial);
  auto getLane = [&](ValueRange accumulators, int64_t lane) {
    SmallVector<Value> values;
    for (size_t op = 0; op < ops.size(); ++op)
      values.push_back(accumulators[op * own + lane]);
    return values;
  };
  auto setLane = [&](SmallVector<Value> &accumulators, int64_t lane, ArrayRef<Value> values) {
    for (size_t op = 0; op < ops.size(); ++op)
      accumulators[op * own + lane] = values[op];
  };
  Value firstLane = function.mul(quad, function.index(own));
  auto accumulate = [&](Value atLine, ValueRange given) -> SmallVector<Value> {
    Value whole = function.mul(scalars.div(length, count, /*isUnsigned=*/true), count);
    SmallVector<Value> accumulators =
        evaluator.loop(zero, whole, kLanes, LoopKind::Sequential, given, [&](Value offset, ValueRange running) {
          Value start = function.add(function.add(inner, offset), firstLane);
          SmallVector<Value> next(running);
          for (int64_t lane = 0; lane < own; ++lane)
            setLane(next, lane,
                    combine(getLane(running, lane), elements(atLine, function.add(start, function.index(lane)))));
          return next;
        });
    if (innerCount % kLanes == 0)
      return accumulators;
    // The last elements of the line, for the lanes that there are.
    Value start = function.add(function.add(inner, whole), firstLane);
    for (int64_t lane = 0; lane < own; ++lane) {
      Value position = function.add(function.add(whole, firstLane), function.index(lane));
      Value inside = scalars.compare(Compare::LT, position, length);
      SmallVector<Value> running = getLane(accumulators, lane);
      auto branch = scf::IfOp::create(
          b, loc, inside,
          [&](OpBuilder &, Location) {
            RegionEvaluator::Scope scope(evaluator);
            scf::YieldOp::create(b, loc, combine(running, elements(atLine, function.add(start, function.index(lane)))));
          },
          [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, running); });
      setLane(accumulators, lane, SmallVector<Value>(branch.getResults()));
    }
    return accumulators;
  };
  // Nothing orders a conjunction: of rounds that are written out, everything is read before the first comparison.
  const bool isOrderless = ops.size() > 1 && llvm::any_of(types, [](Type type) { return type.isInteger(1); });
  const int64_t given = function.maxRounds;
  if (ops.size() > kFewSums)
    function.maxRounds = 1;
  else if (isOrderless && !given)
    function.maxRounds = kFewRounds;
  SmallVector<Value> lanes =
      isOfOneLine() ? accumulate(line, none)
                    : evaluator.loop(line, lineEnd, 1, LoopKind::Sequential, none,
                                     [&](Value at, ValueRange running) { return accumulate(at, running); });
  function.maxRounds = given;
  // Lanes l and l + 8, l and l + 4 meet in two threads, which both get the result: combining is commutative.
  int64_t half = kLanes / 2;
  for (; half >= own; half /= 2) {
    Value partner = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(half / own)));
    for (int64_t lane = 0; lane < own; ++lane) {
      SmallVector<Value> mine = getLane(lanes, lane);
      setLane(lanes, lane, combine(mine, llvm::map_to_vector(mine, [&](Value value) {
                                     return function.shuffle(value, gpu::ShuffleMode::XOR, partner);
                                   })));
    }
  }
  for (; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane)
      setLane(lanes, lane, combine(getLane(lanes, lane), getLane(lanes, lane + half)));
  return getLane(lanes, 0);
}

SmallVector<Value> ReductionSet::combineShared(ValueRange totals, ValueRange shared, Value count, int64_t stride,
                                               Value offset) {
  return evaluator.loop(function.index(0), count, 1, LoopKind::Sequential, totals, [&](Value part, ValueRange running) {
    Value at = function.add(function.mul(part, function.index(stride)), offset);
    return combine(running, loadAll(shared, at));
  });
}

SmallVector<Value> ReductionSet::combineRound(ValueRange totals, ValueRange shared, int64_t width, int64_t numSegments,
                                              Value first, Value slot, Value isWriter, ValueRange own,
                                              const Team &team) {
  const int64_t numRuns = std::max<int64_t>(1, width / kRun), ofRun = width / numRuns;
  // The same segment of all runs, then the next one: threads that each add up a run read neighbours.
  auto place = function.delinearize(slot, {numRuns, ofRun});
  evaluator.when(isWriter, [&] { storeAll(shared, function.linearize({place[1], place[0]}, {ofRun, numRuns}), own); });
  function.barrier();
  Value count = function.index(width);
  if (numSegments % width)
    count = function.min(count, scalars.sub(function.index(numSegments), first));
  if (numRuns == 1) {
    SmallVector<Value> sums = combineShared(totals, shared, count, 1, function.index(0));
    function.barrier(); // before the arrays are written again
    return sums;
  }
  // Totals of runs have places of their own, so that the next round may write the others.
  Value run = function.index(kRun);
  evaluator.when(scalars.compare(Compare::LT, team.rank, function.index(numRuns)), [&] {
    Value before = function.min(function.mul(team.rank, run), count);
    SmallVector<Value> ofOwnRun =
        combineShared(initials(), shared, function.min(run, scalars.sub(count, before)), numRuns, team.rank);
    storeAll(shared, function.add(function.index(width), team.rank), ofOwnRun);
  });
  function.barrier();
  Value runs = scalars.div(function.add(count, function.index(kRun - 1)), run, /*isUnsigned=*/true);
  return combineShared(totals, shared, runs, 1, function.index(width));
}

SmallVector<Value> ReductionSet::emitTrailingAlone(Elements elements) {
  return finish(combineRuns(countSegments(outerCount, innerCount), 1, [&](Value segment, ValueRange running) {
    return combine(running, emitSegmentByThreads(segment, /*mayBeNone=*/false, function.index(0), 1, elements));
  }));
}

SmallVector<Value> ReductionSet::emitTrailingByTeam(const Team &team, Elements elements) {
  OpBuilder &b = function.builder;
  Location loc = function.loc;
  const int64_t numSegments = countSegments(outerCount, innerCount), width = team.segments();
  auto parts = function.delinearize(team.rank, {width, Team::kQuad});
  Value slot = parts[0], quad = parts[1];
  const bool mayBeNone = numSegments % width != 0;
  if (team.size <= 32) {
    assert(numSegments <= width && "a team of a warp takes all segments at once");
    SmallVector<Value> own = emitSegmentByThreads(slot, mayBeNone, quad, Team::kQuad, elements);
    // Written out, many sums would wait for the one thread that needs them, what they add in registers until then. A
    // shuffle, though of equal values, keeps each where it is.
    const bool areMany = ops.size() > kFewSums;
    const int64_t given = std::exchange(function.maxRounds, areMany ? 1 : 0);
    const int64_t step = areMany ? 1 : numSegments;
    SmallVector<Value> totals = evaluator.loop(
        function.index(0), function.index(numSegments), step, LoopKind::Sequential, initials(),
        [&](Value first, ValueRange running) {
          SmallVector<Value> sums(running);
          for (int64_t i = 0; i < step; ++i) {
            Value holder = function.add(
                team.firstLane, function.mul(function.add(first, function.index(i)), function.index(Team::kQuad)));
            Value lane = arith::IndexCastOp::create(b, loc, b.getI32Type(), holder);
            sums = combine(sums, llvm::map_to_vector(own, [&](Value value) {
                             return width > 1 || areMany ? function.shuffle(value, gpu::ShuffleMode::IDX, lane) : value;
                           }));
          }
          return sums;
        });
    function.maxRounds = given;
    return finish(std::move(totals));
  }
  SmallVector<Value> shared = allocateRound(width);
  Value isWriter = scalars.compare(Compare::EQ, quad, function.index(0));
  return finish(combineRuns(numSegments, width, [&](Value first, ValueRange running) {
    SmallVector<Value> own = emitSegmentByThreads(function.add(first, slot), mayBeNone, quad, Team::kQuad, elements);
    return combineRound(running, shared, width, numSegments, first, slot, isWriter, own, team);
  }));
}

SmallVector<Value> ReductionSet::combineByTeam(const Team &team, SegmentTotals segmentTotals) {
  const int64_t numSegments = countSegments(outerCount, innerCount);
  SmallVector<Value> shared = allocateRound(team.size);
  return finish(combineRuns(numSegments, team.size, [&](Value first, ValueRange running) {
    Value segment = function.min(function.add(first, team.rank), function.index(numSegments - 1));
    return combineRound(running, shared, team.size, numSegments, first, team.rank, /*isWriter=*/nullptr,
                        segmentTotals(segment), team);
  }));
}

SmallVector<Value> ReductionSet::emitLeadingByGroups(Value group, int64_t groups, Value lane, Elements elements) {
  bool mayBeNone = countBlocks(outerCount, innerCount) % groups != 0;
  return combineByGroups(group, groups, lane, [&](Value block) { return emitBlock(block, mayBeNone, elements); });
}

SmallVector<Value> ReductionSet::combineByGroups(Value group, int64_t groups, Value lane, BlockTotals blockTotals) {
  const int64_t numBlocks = countBlocks(outerCount, innerCount), lanes = function.grid.threads / groups;
  SmallVector<Value> shared = groups > 1 ? allocateShared(groups * lanes) : SmallVector<Value>();
  return finish(combineRuns(numBlocks, groups, [&](Value first, ValueRange running) {
    SmallVector<Value> own = blockTotals(function.add(first, group));
    if (groups == 1)
      return combine(running, own);
    storeAll(shared, function.add(function.mul(group, function.index(lanes)), lane), own);
    function.barrier();
    Value count = function.index(groups);
    if (numBlocks % groups)
      count = function.min(count, scalars.sub(function.index(numBlocks), first));
    SmallVector<Value> totals = combineShared(running, shared, count, lanes, lane);
    function.barrier();
    return totals;
  }));
}

SmallVector<Value> ReductionSet::getArrays(Value pointer, int64_t count) {
  // Wide elements first: all are aligned, and no byte lies between two arrays, which nothing would write.
  SmallVector<Value> arrays;
  for (auto [i, type] : llvm::enumerate(types)) {
    const uint64_t width = elementBytes(type);
    uint64_t offset = 0;
    for (auto [j, other] : llvm::enumerate(types))
      if (elementBytes(other) > width || (elementBytes(other) == width && j < i))
        offset += count * elementBytes(other);
    arrays.push_back(LLVM::GEPOp::create(function.builder, function.loc, pointer.getType(),
                                         function.builder.getI8Type(), pointer,
                                         ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)}));
  }
  return arrays;
}

uint64_t ReductionSet::getArrayBytes(int64_t count) const {
  uint64_t bytes = 0;
  for (Type type : types)
    bytes += count * elementBytes(type);
  return bytes;
}
