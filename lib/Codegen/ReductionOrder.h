//===- ReductionOrder.h - the order in which reductions combine -*- C++ -*-===//
//
// The one definition of every reduction's order (docs/rationale/kernels.md, "Order of reductions"). All emitters
// build their loops from these parts, so that a fused and a lone reduction give the same bits.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RegionEvaluator.h"

namespace lowtide::codegen {

/// Lanes of a trailing reduction; elements of one of its segments; rows of one block of a leading reduction; segments
/// or blocks of a run, whose totals are combined before those of the next.
inline constexpr int64_t kLanes = 16, kSegment = 256, kBlock = 64, kRun = 64;

/// The loops that a reduction stands for. Dimensions of extent 1 are left out of both lists.
struct ReductionShape {
  /// Reduced dimensions of the operand, ascending, without those in `inner`.
  llvm::SmallVector<int64_t> outer;
  /// The last contiguous run of reduced dimensions.
  llvm::SmallVector<int64_t> inner;
  int64_t outerCount = 1, innerCount = 1;
  /// Whether no kept dimension follows.
  bool trailing = true;

  static ReductionShape get(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> reduced);
};

/// The type that partial results are held in: f32 for 16-bit floats.
mlir::Type accumulatorType(mlir::Type elementType);

/// Threads of a GPU that reduce together. Up to a warp, whose teams are neighbours, or a whole block.
struct Team {
  int64_t size;
  /// Of a thread: its number in the team, and that of the team's first thread in the warp.
  mlir::Value rank, firstLane;

  /// Threads that hold the lanes of one segment.
  static constexpr int64_t kQuad = 4;
  int64_t segments() const { return size / kQuad; }
};

/// Reductions over the same dimensions of operands of the same shape, computed in one traversal.
class ReductionSet {
public:
  ReductionSet(RegionEvaluator &evaluator, llvm::ArrayRef<ReductionInterface> ops, int64_t outerCount,
               int64_t innerCount);

  /// One operand element per op, at linear positions in the outer and inner reduced dimensions (and, in a tile, at a
  /// column). Called at the place of the loop body, once per element.
  using Elements = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value outer, mlir::Value inner)>;
  using TileElements =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value outer, mlir::Value inner, mlir::Value column)>;

  /// The order named "trailing"; one result per op.
  llvm::SmallVector<mlir::Value> emitTrailing(Elements elements);
  /// The order named "leading", for one kept element.
  llvm::SmallVector<mlir::Value> emitLeading(Elements elements);
  /// The same for `width` ≤ `maxWidth` neighbouring kept elements at once. Returns arrays of accumulators;
  /// `loadTile` reads one.
  llvm::SmallVector<mlir::Value> emitLeadingTile(mlir::Value width, int64_t maxWidth, TileElements elements);
  mlir::Value loadTile(unsigned op, mlir::Value array, mlir::Value column);

  /// GPU: the order named "trailing", by a team; every thread of it gets the results.
  llvm::SmallVector<mlir::Value> emitTrailingByTeam(const Team &team, Elements elements);
  /// The same when the totals of segments are known: `totals` gives those of one. The team is a block.
  using SegmentTotals = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value segment)>;
  llvm::SmallVector<mlir::Value> combineByTeam(const Team &team, SegmentTotals totals);
  /// The totals of one segment, by four threads; `quad` is the thread's number.
  llvm::SmallVector<mlir::Value> emitSegmentTotals(mlir::Value segment, mlir::Value quad, Elements elements) {
    return emitSegmentByThreads(segment, /*mayBeNone=*/false, quad, Team::kQuad, elements);
  }
  /// GPU: the order named "leading" by a block of `groups` × lanes threads, for one kept element per lane. Thread group
  /// g adds up blocks g, g + groups, … of the reduced dimensions; every group gets the results.
  llvm::SmallVector<mlir::Value> emitLeadingByGroups(mlir::Value group, int64_t groups, mlir::Value lane,
                                                     Elements elements);
  /// The same when the totals of blocks are known: `totals` gives those of one, which may be one after the last when
  /// they are not used.
  using BlockTotals = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value block)>;
  llvm::SmallVector<mlir::Value> combineByGroups(mlir::Value group, int64_t groups, mlir::Value lane,
                                                 BlockTotals totals);
  /// The total of one block of rows, one kept element; of none where there is no such block.
  llvm::SmallVector<mlir::Value> emitBlock(mlir::Value block, bool mayBeNone, Elements elements);
  /// What totals start from, and a total with one more element; one per op.
  llvm::SmallVector<mlir::Value> initials();
  llvm::SmallVector<mlir::Value> combine(mlir::ValueRange accumulators, mlir::ValueRange elements);
  /// Arrays of accumulators, `count` each, at `pointer`, without a byte between them; and their bytes.
  llvm::SmallVector<mlir::Value> getArrays(mlir::Value pointer, int64_t count);
  uint64_t getArrayBytes(int64_t count) const;
  llvm::SmallVector<mlir::Value> loadAll(mlir::ValueRange arrays, mlir::Value offset);
  void storeAll(mlir::ValueRange arrays, mlir::Value offset, mlir::ValueRange values);
  /// GPU: the order named "trailing", by one thread.
  llvm::SmallVector<mlir::Value> emitTrailingAlone(Elements elements);

  /// Segments of the order "trailing", blocks of the order "leading".
  static int64_t countSegments(int64_t outerCount, int64_t innerCount);
  static int64_t countBlocks(int64_t outerCount, int64_t innerCount);

private:
  /// Elements of a segment: `length` from `inner` on of each of some lines.
  struct Segment {
    mlir::Value line, lineEnd, inner, length;
  };
  Segment getSegment(mlir::Value segment);
  /// Whether the elements of a segment are all of one line.
  bool isOfOneLine() const { return innerCount >= kSegment; }

  /// Rows of a block: `length` from `first` on of the last reduced dimensions.
  struct Rows {
    mlir::Value outer, first, length;
  };
  Rows getRows(mlir::Value block);

  /// Combines the totals of `count` segments or blocks in the order named "runs". `add` combines those of a round,
  /// `width` from `first` on, with what is given. `width` divides a run, or takes several, which `add` combines run by
  /// run itself.
  using AddRound = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value first, mlir::ValueRange running)>;
  llvm::SmallVector<mlir::Value> combineRuns(int64_t count, int64_t width, AddRound add);

  /// Of segment `segment`: per op, the total of `threads` (1 or 4) threads' lanes; `quad` is the thread's number.
  llvm::SmallVector<mlir::Value> emitSegmentByThreads(mlir::Value segment, bool mayBeNone, mlir::Value quad,
                                                      int64_t threads, Elements elements);
  /// Adds what `parts` threads have written to `shared` arrays at stride `stride` to `totals`, in order.
  llvm::SmallVector<mlir::Value> combineShared(mlir::ValueRange totals, mlir::ValueRange shared, mlir::Value count,
                                               int64_t stride, mlir::Value offset);
  /// GPU: combines a round of `width` segments from `first` on with `totals`, run by run; all runs at once, by the
  /// threads of a block. Those for which `isWriter` holds (none given: all) have the total of one, number `slot`.
  llvm::SmallVector<mlir::Value> combineRound(mlir::ValueRange totals, mlir::ValueRange shared, int64_t width,
                                              int64_t numSegments, mlir::Value first, mlir::Value slot,
                                              mlir::Value isWriter, mlir::ValueRange own, const Team &team);
  /// Shared arrays for it.
  llvm::SmallVector<mlir::Value> allocateRound(int64_t width) {
    return allocateShared(width > kRun ? width + width / kRun : width);
  }
  llvm::SmallVector<mlir::Value> allocateShared(int64_t count);
  llvm::SmallVector<mlir::Value> emitSegment(const Segment &segment, mlir::ValueRange lanes, Elements elements);
  llvm::SmallVector<mlir::Value> allocate(int64_t count);
  llvm::SmallVector<mlir::Value> finish(llvm::SmallVector<mlir::Value> totals);

  RegionEvaluator &evaluator;
  KernelFunction &function;
  llvm::SmallVector<ReductionInterface> ops;
  int64_t outerCount, innerCount;
  ScalarBuilder scalars;
  /// Per op: type of the result's elements, type of the accumulator.
  llvm::SmallVector<mlir::Type> resultTypes, types;
};

/// One element of one reduction's result: loops over the reduced elements of operand 0.
mlir::Value emitReduction(RegionEvaluator &evaluator, ReductionInterface op, mlir::ValueRange index);

} // namespace lowtide::codegen
