//===- StagedPlan.cpp - what a staged kernel does in which traversal -*- C++ -*-===//
//
// Recognises the form of the body, levels its reductions, chooses the values that are kept between traversals.
//
//===----------------------------------------------------------------------===//

#include "StagedPlan.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

/// Elements per task at least; columns of a tile at least and at most.
static constexpr int64_t kTaskElements = 8192, kMinTile = 64, kMaxTile = 256, kMinRun = 16;
/// So many bytes of values that are not computed twice fit on the stack.
static constexpr int64_t kStackBytes = 64 << 10;

SmallVector<int64_t> codegen::dropUnitExtents(Value tensor) {
  SmallVector<int64_t> extents;
  for (int64_t extent : cast<RankedTensorType>(tensor.getType()).getShape())
    if (extent != 1)
      extents.push_back(extent);
  return extents;
}

/// Reduced dimensions in the numbering of dropUnitExtents.
static SmallVector<int64_t> getReducedDims(ReductionInterface op) {
  SmallVector<int64_t> dims;
  int64_t next = 0;
  for (auto [d, extent] : llvm::enumerate(cast<RankedTensorType>(op->getOperand(0).getType()).getShape()))
    if (extent != 1) {
      if (llvm::is_contained(op.getReducedDims(), static_cast<int64_t>(d)))
        dims.push_back(next);
      ++next;
    }
  return dims;
}

/// Whether dimensions `d` and `d` + 1 of the domain travel together in all that is reduced and all that is written.
static bool areGlued(nn::KernelOp kernel, const StagedDomain &domain, int64_t d) {
  auto holds = [&](Value value) {
    if (dropUnitExtents(value) != domain.extents)
      return true;
    SmallVector<int64_t> dims;
    for (auto [dim, extent] : llvm::enumerate(cast<RankedTensorType>(value.getType()).getShape()))
      if (extent != 1)
        dims.push_back(dim);
    return isGlued(value, dims[d], dims[d + 1], /*endsAtReductions=*/true);
  };
  return llvm::all_of(kernel.getBlock()->getOps<ReductionInterface>(),
                      [&](ReductionInterface op) { return holds(op->getOperand(0)); }) &&
         llvm::all_of(kernel.getYield().getOperands(), holds);
}

/// Columns that do not travel together had better be told apart outside of the loop over them.
static void cutIntoRuns(nn::KernelOp kernel, StagedDomain &domain) {
  const int64_t rank = domain.extents.size();
  domain.run = domain.columns;
  if (domain.reduced.back() + 2 >= rank)
    return;
  int64_t run = domain.extents.back(), first = rank - 1;
  for (; first - 1 > domain.reduced.back() && areGlued(kernel, domain, first - 1); --first)
    run *= domain.extents[first - 1];
  if (run == domain.columns)
    return;
  for (int64_t tile = std::min(run, kMaxTile); tile >= kMinRun; --tile)
    if (run % tile == 0) {
      domain.tile = tile;
      domain.run = run;
      domain.numRunDims = rank - first;
      return;
    }
}

FailureOr<StagedDomain> StagedDomain::get(nn::KernelOp kernel) {
  StagedDomain domain;
  for (auto reduction : kernel.getBlock()->getOps<ReductionInterface>()) {
    SmallVector<int64_t> extents = dropUnitExtents(reduction->getOperand(0)), reduced = getReducedDims(reduction);
    if (reduced.empty())
      continue;
    if (domain.reduced.empty()) {
      domain.extents = extents;
      domain.reduced = reduced;
    } else if (domain.extents != extents || domain.reduced != reduced) {
      return failure();
    }
  }
  // Rows of no elements have no stages.
  if (domain.reduced.empty() || llvm::is_contained(domain.extents, 0))
    return failure();
  int64_t kept = 1, rank = domain.extents.size();
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(domain.reduced, d)) {
      domain.kept.push_back(d);
      domain.keptExtents.push_back(domain.extents[d]);
    }
  // The columns: kept dimensions after the last reduced one.
  for (int64_t d = rank - 1; d > domain.reduced.back(); --d)
    domain.columns *= domain.extents[d];
  if (domain.reduced.back() != rank - 1) {
    for (int64_t extent : domain.keptExtents)
      kept *= extent;
    domain.tile = std::clamp(llvm::alignTo(llvm::divideCeil(kept, 8), 16), uint64_t(kMinTile), uint64_t(kMaxTile));
    domain.tile = std::min(domain.tile, domain.columns);
    cutIntoRuns(kernel, domain);
  }
  for (Value result : kernel.getYield().getOperands())
    if (auto extents = dropUnitExtents(result); extents != domain.extents && extents != domain.keptExtents)
      return failure();
  return domain;
}

unsigned StagedPlan::levelOf(Value value) {
  if (auto found = levels.find(value); found != levels.end())
    return found->second;
  unsigned level = 0;
  if (Operation *op = value.getDefiningOp()) {
    for (Value operand : op->getOperands())
      level = std::max(level, levelOf(operand));
    if (auto reduction = dyn_cast<ReductionInterface>(op); reduction && !getReducedDims(reduction).empty())
      ++level;
  }
  return levels[value] = level;
}

void StagedPlan::findLevels() {
  for (auto reduction : kernel.getBlock()->getOps<ReductionInterface>()) {
    if (getReducedDims(reduction).empty())
      continue;
    unsigned level = levelOf(reduction->getResult(0));
    traversals.resize(std::max<size_t>(traversals.size(), level));
    traversals[level - 1].push_back(reduction);
  }
}

void StagedPlan::findWriter() {
  const bool needsReductions = llvm::any_of(kernel.getYield().getOperands(), [&](Value result) {
    return dropUnitExtents(result) == domain.extents && levelOf(result) > 0;
  });
  writer = traversals.size() == 1 && !needsReductions ? 0 : traversals.size();
}

void StagedPlan::findBuffers() {
  ReductionShape shape = domain.getShape();
  llvm::MapVector<Value, SmallVector<unsigned>> needed;
  auto mark = [&](Value root, unsigned traversal) {
    SmallVector<Value> worklist{root};
    DenseSet<Value> seen;
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op || !seen.insert(value).second)
        continue;
      if (auto reduction = dyn_cast<ReductionInterface>(op); reduction && !getReducedDims(reduction).empty())
        continue;
      auto facts = dyn_cast<FactsInterface>(op);
      if (facts && facts.getFacts().isExpensive() && dropUnitExtents(value) == domain.extents)
        if (auto &at = needed[value]; at.empty() || at.back() != traversal)
          at.push_back(traversal);
      llvm::append_range(worklist, op->getOperands());
    }
  };
  for (auto [t, reductions] : llvm::enumerate(traversals))
    for (ReductionInterface reduction : reductions)
      mark(reduction->getOperand(0), t);
  for (Value result : kernel.getYield().getOperands())
    if (dropUnitExtents(result) == domain.extents)
      mark(result, writer);
  uint64_t total = 0;
  for (auto &[value, at] : needed)
    if (at.size() > 1) {
      int64_t elements = shape.outerCount * shape.innerCount * domain.tile;
      buffers[value] = {at.front(), elements, total};
      total += llvm::alignTo(elements * elementBytes(cast<RankedTensorType>(value.getType()).getElementType()), 64);
    }
  scratchBytes = total > kStackBytes ? total : 0;
}

LaunchShape codegen::getStagedShape(nn::KernelOp kernel, const StagedDomain &domain) {
  LaunchShape launch;
  int64_t elements = 1;
  for (int64_t d : domain.reduced)
    elements *= domain.extents[d];
  for (int64_t extent : domain.keptExtents)
    launch.extent *= extent;
  launch.extent = launch.extent / domain.columns * llvm::divideCeil(domain.columns, domain.tile);
  launch.grain = std::max<int64_t>(1, kTaskElements / (elements * domain.tile));
  launch.scratchBytes = StagedPlan(kernel, domain).scratchBytes;
  return launch;
}
