//===- StoreTails.cpp - how long stores keep what they read ---------------===//
//
// Instructions that compute run one after the other; so do the copies of each lane, next to them. A load begins where
// it stands in the text, a store when its lane is free. Addresses are not known yet, so that nothing waits for bytes
// that another value leaves.
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

  llvm::MapVector<StringAttr, Operation *> run();

private:
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

llvm::MapVector<StringAttr, Operation *> LaneClock::run() {
  struct Computed {
    Operation *op;
    double start;
  };
  std::vector<Computed> computed;
  struct Stored {
    StringAttr buffer;
    double end;
    size_t after; ///< so many instructions that compute come before it
  };
  std::vector<Stored> stores;
  double now = 0;
  std::map<Lane, double> freeAt;
  llvm::DenseMap<StringAttr, double> thereAt;
  std::map<std::pair<const void *, uint64_t>, double> leftAt; // of places in other memories
  for (Operation &op : program.getBlock()) {
    if (!plan::isInstruction(&op))
      continue;
    auto copy = dyn_cast<plan::CopyOp>(&op);
    if (!copy || getLane(copy).first == getLane(copy).second) {
      plan::forEachSlice(&op, [&](plan::Access access, plan::SliceAttr slice) {
        if (access != plan::Access::Write)
          now = std::max(now, thereAt.lookup(slice.getArena().getAttr()));
      });
      computed.push_back({&op, now});
      now += getSeconds(&op);
      continue;
    }
    double &lane = freeAt[getLane(copy)];
    const bool isStore = spaceOf(copy.getSource()) == plan::ArenaSpace::Device;
    const plan::SliceAttr there = isStore ? copy.getTarget() : copy.getSource();
    double &left = leftAt[{there.getArena().getAttr().getAsOpaquePointer(), there.getOffset()}];
    lane = std::max({lane, now, isStore ? 0.0 : left}) + getSeconds(&op);
    if (isStore) {
      left = lane;
      stores.push_back({copy.getSource().getArena().getAttr(), lane, computed.size()});
    } else {
      thereAt[copy.getTarget().getArena().getAttr()] = lane;
    }
  }
  llvm::MapVector<StringAttr, Operation *> tails;
  for (const Stored &store : stores) {
    auto begin = computed.begin() + ptrdiff_t(store.after);
    auto end =
        std::partition_point(begin, computed.end(), [&](const Computed &each) { return each.start < store.end; });
    if (end != begin)
      tails[store.buffer] = std::prev(end)->op;
  }
  return tails;
}

llvm::MapVector<StringAttr, Operation *> lowtide::findStoreTails(plan::ProgramOp program, const TargetInfo &target) {
  return LaneClock(program, target).run();
}
