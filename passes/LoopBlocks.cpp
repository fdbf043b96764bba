//===- LoopBlocks.cpp - the blocks of a loop over parts -------------------===//
#include "LoopBlocks.h"
#include "LastingTensors.h"
#include "lowtide/Analysis/StepStorage.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include <deque>

using namespace mlir;
using namespace lowtide;

static uint64_t countBytes(Value value) { return getTensorBytes(value.getType()).value_or(0); }

SmallVector<Value> LoopBlocks::listReads(Operation *op) {
  SmallVector<Value> reads(op->getOperands());
  if (op->getNumRegions()) {
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    llvm::append_range(reads, captured);
  }
  return reads;
}

LoopBlocks::LoopBlocks(RepeatInterface loop, const ForwardPart &forward, unsigned most)
    : loop(loop), body(loop->getRegion(0).front()), numSliced(loop.getNumSliced()) {
  findCounters();
  for (Operation &op : body.without_terminator())
    if (StepStorage::isView(&op) || costsLittle(&op))
      freeOps.insert(&op);
    else if (forward.ops.contains(&op))
      forwardOps.insert(&op);
  cutForward(most);
  if (numBlocks > 1)
    placeOthers();
}

bool LoopBlocks::isInside(Value value) const { return value.getParentBlock() == &body; }

Operation *LoopBlocks::findMaker(Value value) const {
  Operation *op = StepStorage::getRoot(value).getDefiningOp();
  return op && op->getBlock() == &body && !isFree(op) ? op : nullptr;
}

bool LoopBlocks::isCrossing(Value value) const {
  auto reader = lastReader.find(value);
  return reader != lastReader.end() && reader->second > getBlock(value.getDefiningOp());
}

/// Scalars that are made of scalars alone which rounds hand on, and of what is the same in every round.
void LoopBlocks::findCounters() {
  auto isScalar = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() && type.getNumElements() == 1;
  };
  for (unsigned number = 0; number < loop.getNumCarried(); ++number)
    if (isScalar(body.getArgument(numSliced + number)))
      counters.insert(number);
  auto follows = [&](unsigned number) {
    SmallVector<Value> worklist{body.getTerminator()->getOperand(number)};
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      if (!isInside(value))
        continue;
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        if (argument.getArgNumber() < numSliced || !isCounter(argument.getArgNumber() - numSliced))
          return false;
        continue;
      }
      if (!isScalar(value))
        return false;
      llvm::append_range(worklist, listReads(value.getDefiningOp()));
    }
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned number = 0; number < loop.getNumCarried(); ++number)
      if (isCounter(number) && !follows(number))
        changed = counters.erase(number);
  }
}

bool LoopBlocks::costsLittle(Operation *op) const {
  // As much arithmetic for an element as takes about as long as to read it.
  constexpr uint64_t littleFlops = 32;
  auto facts = dyn_cast<FactsInterface>(op);
  if (!facts || op->getNumRegions())
    return false;
  uint64_t bytes = 0, elements = 0;
  for (Value result : op->getResults()) {
    bytes += countBytes(result);
    elements += uint64_t(cast<RankedTensorType>(result.getType()).getNumElements());
  }
  return facts.getFlops() <= littleFlops * elements && llvm::all_of(op->getOperands(), [&](Value operand) -> bool {
           Value root = StepStorage::getRoot(operand);
           if (!isInside(root))
             return countBytes(root) <= bytes;
           if (auto argument = dyn_cast<BlockArgument>(root))
             return argument.getArgNumber() < numSliced || isCounter(argument.getArgNumber() - numSliced);
           return isFree(root.getDefiningOp());
         });
}

namespace {
/// What ops in a row read from around their loop, each tensor once.
class ReadWindow {
public:
  uint64_t bytes = 0;
  void add(Value tensor) { bytes += readers[tensor]++ ? 0 : countBytes(tensor); }
  void remove(Value tensor) { bytes -= --readers[tensor] ? 0 : countBytes(tensor); }

private:
  DenseMap<Value, unsigned> readers;
};
} // namespace

void LoopBlocks::cutForward(unsigned most) {
  SmallVector<Operation *> ops;
  DenseMap<Operation *, size_t> position;
  for (Operation &op : body.without_terminator())
    if (isForward(&op)) {
      position[&op] = ops.size();
      ops.push_back(&op);
    }
  // What each reads from around that could wait elsewhere, and of what is read after it, how many bytes cross each
  // place between two of them.
  SmallVector<SmallVector<Value>> outside(ops.size());
  SmallVector<int64_t> crossing(ops.size() + 1);
  DenseMap<Value, size_t> lastPlace;
  ReadWindow all;
  uint64_t largest = 0;
  for (auto [place, op] : llvm::enumerate(ops)) {
    ReadWindow own;
    for (Value read : listReads(op)) {
      Value root = StepStorage::getRoot(read);
      if (!isInside(root) && countBytes(root) >= leastMovedBytes)
        outside[place].push_back(root);
      else if (!findMaker(root))
        continue;
      lastPlace[root] = place;
    }
    for (Value tensor : outside[place]) {
      own.add(tensor);
      all.add(tensor);
    }
    largest = std::max(largest, own.bytes);
  }
  for (auto [value, place] : lastPlace) {
    if (!isInside(value))
      continue;
    crossing[position.lookup(value.getDefiningOp()) + 1] += int64_t(countBytes(value));
    crossing[place + 1] -= int64_t(countBytes(value));
  }
  for (size_t place = 1; place < crossing.size(); ++place)
    crossing[place] += crossing[place - 1];
  // The cheapest cuts before each place, the last one there. The places where a block that ends there may begin are a
  // window that only moves on; `cheapest` holds those of them that a later one does not undercut.
  const uint64_t limit = std::max(largest, all.bytes / std::max(1u, most));
  SmallVector<int64_t> cost(ops.size() + 1);
  SmallVector<size_t> start(ops.size() + 1);
  std::deque<size_t> cheapest;
  ReadWindow window;
  size_t first = 0;
  for (size_t place = 1; place <= ops.size(); ++place) {
    while (!cheapest.empty() && cost[cheapest.back()] >= cost[place - 1])
      cheapest.pop_back();
    cheapest.push_back(place - 1);
    llvm::for_each(outside[place - 1], [&](Value tensor) { window.add(tensor); });
    for (; window.bytes > limit; ++first)
      llvm::for_each(outside[first], [&](Value tensor) { window.remove(tensor); });
    while (cheapest.front() < first)
      cheapest.pop_front();
    start[place] = cheapest.front();
    cost[place] = cost[cheapest.front()] + crossing[place];
  }
  SmallVector<size_t> cuts;
  for (size_t place = ops.size(); place; place = start[place])
    cuts.push_back(start[place]);
  numBlocks = unsigned(cuts.size());
  for (auto [place, op] : llvm::enumerate(ops)) {
    while (cuts.size() > 1 && place >= cuts[cuts.size() - 2])
      cuts.pop_back();
    blockOf[op] = numBlocks - unsigned(cuts.size());
  }
  for (auto [value, place] : lastPlace)
    lastReader[value] = blockOf.lookup(ops[place]);
}

void LoopBlocks::placeOthers() {
  for (Operation &op : body.without_terminator()) {
    if (isFree(&op) || isForward(&op))
      continue;
    unsigned block = numBlocks - 1;
    for (Value read : listReads(&op)) {
      Value root = StepStorage::getRoot(read);
      // What reads a parameter belongs where the forward part reads it.
      if (auto reader = lastReader.find(root); reader != lastReader.end())
        block = std::min(block, reader->second);
      else if (Operation *maker = findMaker(root))
        block = std::min(block, getBlock(maker));
    }
    blockOf[&op] = block;
  }
}
