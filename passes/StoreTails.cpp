//===- StoreTails.cpp - how long stores keep what they read ---------------===//
//
// Instructions that compute run one after the other; so do the copies of each lane, next to them. A load begins where
// it stands in the text, a store when its lane is free. Where addresses are known, what is written waits for stores
// that read there.
//
//===----------------------------------------------------------------------===//
#include "StoreTails.h"
#include "lowtide/Analysis/CostModel.h"

#include <map>

using namespace mlir;
using namespace lowtide;

namespace {

class LaneClock {
public:
  LaneClock(plan::ProgramOp program, const TargetInfo &target)
      : program(program), target(target), costs(CostModel::get(target)) {
    for (auto arena : program->getParentOfType<plan::ModuleOp>().getBlock().getOps<plan::ArenaOp>())
      spaces[arena.getSymNameAttr()] = arena.getSpace();
    for (auto buffer : program.getBlock().getOps<plan::BufferOp>())
      spaces[buffer.getNameAttr()] = spaces.lookup(buffer.getArenaAttr().getAttr());
  }

  /// Runs the program; its tails, with addresses where some are given.
  llvm::MapVector<StringAttr, Operation *> run(const BufferOffsets *offsets = nullptr);
  /// When the last instruction of the run has ended.
  double getEnd() const { return over; }

private:
  /// A store that runs, and the bytes that it reads.
  struct Reading {
    uint64_t begin, end;
    double until;
  };
  /// From which memory to which.
  using Lane = std::pair<plan::ArenaSpace, plan::ArenaSpace>;

  plan::ArenaSpace spaceOf(plan::SliceAttr slice) const { return spaces.lookup(slice.getArena().getAttr()); }
  Lane getLane(plan::CopyOp copy) const { return {spaceOf(copy.getSource()), spaceOf(copy.getTarget())}; }
  double getSeconds(Operation *op) const;
  double getCopySeconds(Lane lane, uint64_t bytes) const;

  plan::ProgramOp program;
  const TargetInfo &target;
  const CostModel costs;
  llvm::DenseMap<StringAttr, plan::ArenaSpace> spaces;
  double over = 0;
};

} // namespace

static StringRef nameOf(plan::ArenaSpace space) {
  return space == plan::ArenaSpace::Device ? "device" : space == plan::ArenaSpace::File ? "file" : "host";
}

double LaneClock::getCopySeconds(Lane lane, uint64_t bytes) const {
  return lowtide::getLane(target, nameOf(lane.first), nameOf(lane.second)).getSeconds(bytes);
}

double LaneClock::getSeconds(Operation *op) const {
  if (auto repeat = dyn_cast<plan::RepeatOp>(op)) {
    double seconds = 0;
    for (Operation &inner : repeat.getBody().front())
      if (plan::isInstruction(&inner))
        seconds += getSeconds(&inner);
    return double(repeat.getCount()) * seconds;
  }
  uint64_t bytes = 0;
  plan::forEachSlice(op, [&](plan::Access, plan::SliceAttr slice) { bytes += slice.getBytes(); });
  if (auto copy = dyn_cast<plan::CopyOp>(op); copy && getLane(copy).first != getLane(copy).second)
    return getCopySeconds(getLane(copy), copy.getSource().getBytes());
  const auto flops = op->getAttrOfType<IntegerAttr>("flops");
  return costs.getSeconds(/*isLibrary=*/isa<plan::CallOp>(op), flops ? flops.getValue().getZExtValue() : 0, bytes);
}

static void forEachSliceIn(Operation &op, llvm::function_ref<void(plan::Access, plan::SliceAttr)> visit) {
  op.walk([&](Operation *inner) {
    if (plan::isInstruction(inner))
      plan::forEachSlice(inner, visit);
  });
}

llvm::MapVector<StringAttr, Operation *> LaneClock::run(const BufferOffsets *offsets) {
  struct Begun {
    Operation *op;
    double start;
  };
  std::vector<Begun> begun; // what computes, and loads: they may write where a store reads
  struct Stored {
    StringAttr buffer;
    double end;
    size_t after; ///< so many of those come before it
  };
  std::vector<Stored> stores;
  double now = 0;
  std::map<Lane, double> freeAt;
  llvm::DenseMap<StringAttr, double> thereAt;
  std::map<std::pair<const void *, uint64_t>, double> leftAt; // of places in other memories
  std::vector<Reading> readings;
  auto locate = [&](plan::SliceAttr slice) -> std::pair<uint64_t, uint64_t> {
    auto offset = offsets ? offsets->find(slice.getArena().getAttr()) : BufferOffsets::const_iterator();
    if (!offsets || offset == offsets->end())
      return {0, 0};
    const uint64_t first = offset->second + slice.getOffset();
    return {first, first + slice.getBytes()};
  };
  auto waitForStores = [&](plan::SliceAttr slice, double start) {
    const auto [first, last] = locate(slice);
    for (const Reading &reading : readings)
      if (reading.begin < last && first < reading.end)
        start = std::max(start, reading.until);
    return start;
  };
  for (Operation &op : program.getBlock()) {
    if (!plan::isInstruction(&op))
      continue;
    auto copy = dyn_cast<plan::CopyOp>(&op);
    if (!copy || getLane(copy).first == getLane(copy).second) {
      llvm::erase_if(readings, [&](const Reading &reading) { return reading.until <= now; });
      forEachSliceIn(op, [&](plan::Access access, plan::SliceAttr slice) {
        now = std::max(now, access != plan::Access::Write ? thereAt.lookup(slice.getArena().getAttr()) : 0);
        now = access != plan::Access::Read ? waitForStores(slice, now) : now;
      });
      begun.push_back({&op, now});
      now += getSeconds(&op);
      continue;
    }
    double &lane = freeAt[getLane(copy)];
    const bool isStore = spaceOf(copy.getSource()) == plan::ArenaSpace::Device;
    const plan::SliceAttr there = isStore ? copy.getTarget() : copy.getSource();
    double &left = leftAt[{there.getArena().getAttr().getAsOpaquePointer(), there.getOffset()}];
    double start = std::max({lane, now, isStore ? 0.0 : left});
    start = isStore ? start : waitForStores(copy.getTarget(), start);
    lane = start + getSeconds(&op);
    over = std::max(over, lane);
    if (isStore) {
      left = lane;
      if (const auto [first, last] = locate(copy.getSource()); first < last)
        readings.push_back({first, last, lane});
      stores.push_back({copy.getSource().getArena().getAttr(), lane, begun.size()});
    } else {
      begun.push_back({&op, start});
      thereAt[copy.getTarget().getArena().getAttr()] = lane;
    }
  }
  over = std::max(over, now);
  // When the first of an instruction and those after it begins: a load may begin later than what comes after it.
  for (size_t i = begun.size(); i-- > 1;)
    begun[i - 1].start = std::min(begun[i - 1].start, begun[i].start);
  llvm::MapVector<StringAttr, Operation *> tails;
  for (const Stored &store : stores) {
    auto begin = begun.begin() + ptrdiff_t(store.after);
    auto end = std::partition_point(begin, begun.end(), [&](const Begun &each) { return each.start < store.end; });
    if (end != begin)
      tails[store.buffer] = std::prev(end)->op;
  }
  return tails;
}

llvm::MapVector<StringAttr, Operation *> lowtide::findStoreTails(plan::ProgramOp program, const TargetInfo &target) {
  return LaneClock(program, target).run();
}

double lowtide::countLaneSeconds(plan::ProgramOp program, const TargetInfo &target, const BufferOffsets &offsets) {
  LaneClock clock(program, target);
  clock.run(&offsets);
  return clock.getEnd();
}
