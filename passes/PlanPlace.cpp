//===- PlanPlace.cpp - every buffer gets an address -----------------------===//
//
// 1. Live range of each buffer: from the first to the last instruction that names
//    it, to the end if it is kept. What a repeat's body shares with what is
//    before or after it lives through all of it.
// 2. Pack (Solve/Packing), with time counted as a schedule counts it (copies and
//    the launches of one kernel op are no program points of their own), so that a step
//    takes what was promised when it was fitted, or instruction by instruction
//    where that takes less; programs share one arena, which is as
//    large as the largest needs.
// 3. Pack again with what stores read alive until their lane has read it, as
//    far as the arena and what a budget leaves have room, so that what follows
//    need not wait for its bytes.
// 4. Rewrite the slices.
//
//===----------------------------------------------------------------------===//
#include "Passes.h"
#include "PlanLayout.h"
#include "StepPass.h"
#include "StoreTails.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/RuntimeQuery/PlanProof.h"
#include "lowtide/Solve/Packing/Packing.h"
#include "llvm/ADT/StringSet.h"
#include <numeric>

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_PLANPLACE
#include "Passes.h.inc"
} // namespace lowtide

namespace {

/// The buffers of one arena in one program, as packing problems.
struct Problem {
  SmallVector<plan::BufferOp> ops;
  /// By instructions.
  std::vector<solve::Buffer> buffers;
  /// By program point: copies and what they come before are one, and so are launches of one kernel op.
  std::vector<solve::Buffer> coarse;
  /// Of buffers that a store reads, the ends of both until which it does, by their place in `ops`.
  llvm::SmallMapVector<size_t, std::pair<uint32_t, uint32_t>, 8> tails = {};
};

/// Buffers of a program in an arena, with their addresses.
struct PackedArena {
  plan::ProgramOp program;
  plan::ArenaOp arena;
  Problem problem;
  solve::PackingOptions options;
  /// Where they begin in the arena.
  uint64_t base;
  solve::Packing packing;
};

class PlanPlace : public lowtide::impl::PlanPlaceBase<PlanPlace> {
public:
  using PlanPlaceBase::PlanPlaceBase;
  void runOnOperation() override {
    if (!noteMissingPlan(getOperation(), getArgument()))
      return;
    for (auto module : getOperation().getOps<plan::ModuleOp>()) {
      std::vector<PackedArena> packed;
      for (auto program : module.getBlock().getOps<plan::ProgramOp>())
        if (failed(pack(module, program, packed)))
          return signalPassFailure();
      spareStored(module, packed);
      place(packed);
      if (failed(countPeaks(module)))
        return signalPassFailure();
    }
  }

private:
  /// In a repeat, bytes that all rounds need are dead after their last use in the last round; a buffer that is written
  /// or read in parts is alive in parts; one that is written again is dead before that: only an execution counts right.
  LogicalResult countPeaks(plan::ModuleOp module) {
    FailureOr<SmallVector<uint64_t>> peaks = countLiveBytes(module);
    if (failed(peaks))
      return failure();
    for (auto [program, peak] : llvm::zip_equal(module.getBlock().getOps<plan::ProgramOp>(), *peaks))
      program.setPeakLiveBytes(peak);
    return success();
  }

  /// Packs a program's buffers; each arena has room for them then.
  LogicalResult pack(plan::ModuleOp module, plan::ProgramOp program, std::vector<PackedArena> &packed);
  /// Packs again, with the room that arenas have and what the device's budget leaves.
  void spareStored(plan::ModuleOp module, MutableArrayRef<PackedArena> packed);
  void place(MutableArrayRef<PackedArena> packed);
};

} // namespace

/// Numbers the instructions of a block, nested ones after the repeat that they are in, and hands each to `visit`; then
/// each repeat, inner ones first, to `leave` with the numbers from itself to the one after its body. What `isMerged`
/// has the number of what follows it.
static void number(Block &block, llvm::function_ref<bool(Operation *)> isMerged, uint32_t &now,
                   llvm::function_ref<void(Operation *, uint32_t)> visit,
                   llvm::function_ref<void(uint32_t, uint32_t)> leave) {
  bool isOpen = false;
  for (Operation &op : block) {
    if (!plan::isInstruction(&op))
      continue;
    uint32_t at = now;
    visit(&op, at);
    isOpen = isMerged(&op);
    now += !isOpen;
    if (auto repeat = dyn_cast<plan::RepeatOp>(op)) {
      number(repeat.getBody().front(), isMerged, now, visit, leave);
      leave(at, now);
    }
  }
  now += isOpen;
}

using Tails = llvm::MapVector<StringAttr, Operation *>;

/// Finds the live ranges of a program's buffers, those named `liveRanges` in each problem.
static void findLifetimes(plan::ProgramOp program, llvm::MapVector<StringAttr, Problem> &problems, bool isCoarse,
                          const Tails &tails) {
  std::vector<solve::Buffer> Problem::*liveRanges = isCoarse ? &Problem::coarse : &Problem::buffers;
  llvm::StringMap<solve::Buffer *> find;
  for (auto &[arena, problem] : problems)
    for (auto [op, buffer] : llvm::zip_equal(problem.ops, problem.*liveRanges))
      find[op.getName()] = &buffer;
  // A copy to another memory is an instruction of a schedule, unlike one that a result needs.
  llvm::StringSet<> elsewhere;
  for (auto arena : program->getParentOfType<plan::ModuleOp>().getBlock().getOps<plan::ArenaOp>())
    if (arena.getSpace() != plan::ArenaSpace::Device)
      elsewhere.insert(arena.getSymName());
  for (auto buffer : program.getBlock().getOps<plan::BufferOp>())
    if (elsewhere.contains(buffer.getArena()))
      elsewhere.insert(buffer.getName());
  auto isMerged = [&](Operation *op) {
    auto copy = dyn_cast<plan::CopyOp>(op);
    return isCoarse &&
           (copy ? llvm::none_of(ArrayRef{copy.getSource(), copy.getTarget()},
                                 [&](plan::SliceAttr slice) { return elsewhere.contains(slice.getArena().getValue()); })
                 : op->hasAttr(continuedAttrName));
  };
  uint32_t now = 0;
  SmallVector<std::pair<uint32_t, uint32_t>> repeats;
  llvm::DenseMap<Operation *, uint32_t> numbers;
  number(
      program.getBlock(), isMerged, now,
      [&](Operation *op, uint32_t at) {
        numbers[op] = at;
        plan::forEachSlice(op, [&](plan::Access, plan::SliceAttr slice) {
          auto it = find.find(slice.getArena().getValue());
          if (it == find.end())
            return;
          solve::Buffer &buffer = *it->second;
          buffer.begin = std::min(buffer.begin, at);
          buffer.end = std::max(buffer.end, at + 1);
        });
      },
      [&](uint32_t begin, uint32_t end) { repeats.push_back({begin, end}); });
  for (auto &[arena, problem] : problems)
    for (auto [op, buffer] : llvm::zip_equal(problem.ops, problem.*liveRanges)) {
      if (buffer.begin == UINT32_MAX)
        buffer.begin = buffer.end = 0;
      else if (op.getKept())
        buffer.end = now + 1;
    }
  for (auto &[arena, problem] : problems)
    for (auto [i, op] : llvm::enumerate(problem.ops))
      if (auto tail = tails.find(op.getNameAttr()); tail != tails.end()) {
        const uint32_t at = numbers.lookup(tail->second);
        auto loop = llvm::find_if(repeats, [&](const auto &repeat) { return repeat.first == at; });
        auto &ends = problem.tails[i];
        (isCoarse ? ends.second : ends.first) =
            isa<plan::RepeatOp>(tail->second) && loop != repeats.end() ? loop->second : at + 1;
      }
  for (auto [begin, end] : repeats)
    for (auto &[arena, problem] : problems)
      for (solve::Buffer &buffer : problem.*liveRanges) {
        // What the repeat itself or a copy of its program point names is there before the first round.
        if (buffer.begin <= begin && buffer.end > begin && buffer.end < end)
          buffer.end = end;
        else if (buffer.begin >= begin && buffer.begin < end && buffer.end > end && buffer.begin != UINT32_MAX)
          buffer.begin = begin;
      }
}

/// Problems by arena, in the order in which buffers name the arenas.
static llvm::MapVector<StringAttr, Problem> poseProblems(plan::ProgramOp program, const Tails &tails) {
  llvm::MapVector<StringAttr, Problem> problems;
  for (auto op : program.getBlock().getOps<plan::BufferOp>()) {
    Problem &problem = problems[op.getArenaAttr().getAttr()];
    problem.ops.push_back(op);
    problem.buffers.push_back({uint64_t(op.getBytes()), UINT32_MAX, 0});
  }
  for (auto &[arena, problem] : problems)
    problem.coarse = problem.buffers;
  findLifetimes(program, problems, /*isCoarse=*/false, tails);
  findLifetimes(program, problems, /*isCoarse=*/true, tails);
  return problems;
}

/// The smaller arena; what lives longer than it must still has a place of its own.
static solve::Packing packEither(const Problem &problem, const solve::PackingOptions &options) {
  solve::Packing packing = solve::packOnce(problem.coarse, options);
  const uint64_t bound = solve::liveBound(problem.buffers, options.alignment);
  if (packing.arenaBytes > bound + bound / options.nearness &&
      !solve::areSameProblem(problem.coarse, problem.buffers, options.alignment)) {
    solve::Packing fine = solve::packOnce(problem.buffers, options);
    if (fine.arenaBytes < packing.arenaBytes)
      packing = std::move(fine);
  }
  packing.boundBytes = bound;
  return packing;
}

/// Lets what stores read live on until they are over, where at most so many bytes are alive then: all of that time, or
/// as much of it as there is room. In the order of the program, or in the opposite one: the first have the room.
static bool stretchStored(Problem &problem, uint64_t mostBytes, uint64_t alignment, bool lastFirst) {
  uint32_t length = 0;
  for (const solve::Buffer &buffer : problem.buffers)
    length = std::max(length, buffer.end);
  for (const auto &[i, ends] : problem.tails)
    length = std::max(length, ends.first);
  std::vector<uint64_t> live(length + 1, 0);
  for (const solve::Buffer &buffer : problem.buffers) {
    live[buffer.begin] += solve::alignTo(buffer.bytes, alignment);
    live[buffer.end] -= solve::alignTo(buffer.bytes, alignment);
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  bool isChanged = false;
  for (size_t number = 0; number < problem.tails.size(); ++number) {
    const auto &[i, ends] = problem.tails.begin()[lastFirst ? problem.tails.size() - 1 - number : number];
    solve::Buffer &fine = problem.buffers[i], &coarse = problem.coarse[i];
    const uint64_t bytes = solve::alignTo(fine.bytes, alignment);
    const uint32_t begin = fine.end;
    while (fine.end < ends.first && live[fine.end] + bytes <= mostBytes)
      live[fine.end++] += bytes;
    // Of two numbers of one instruction, what is left is the same.
    const uint32_t left = std::max(ends.first, fine.end) - fine.end;
    if (ends.second > left)
      coarse.end = std::max(coarse.end, fine.end > begin ? ends.second - left : 0);
    isChanged |= fine.end > begin;
  }
  return isChanged;
}

/// Of several packings in at most `mostBytes`, `packing` among them, the one with which instructions wait least for
/// stores. `leastSeconds`: where none waits.
static solve::Packing packForStores(const Problem &problem, solve::Packing packing, uint64_t mostBytes,
                                    const solve::PackingOptions &options, double leastSeconds,
                                    llvm::function_ref<double(const solve::Packing &)> countSeconds) {
  const bool isLarge = problem.ops.size() > 256;
  constexpr uint64_t shares = 16;
  double seconds = countSeconds(packing);
  // Of a large problem the first packing that fits.
  const unsigned tries = isLarge ? 4 : 8;
  for (unsigned i = 0; i < tries && seconds > leastSeconds; ++i) {
    const uint64_t less = (1u << i % 4) - 1;
    Problem longer = problem;
    if (!stretchStored(longer, mostBytes - mostBytes / shares * less, options.alignment, /*lastFirst=*/i >= 4))
      continue;
    solve::PackingOptions enough = options;
    enough.effort /= isLarge ? 64 : 8;
    const uint64_t bound = solve::liveBound(longer.buffers, options.alignment), slack = mostBytes - bound;
    enough.nearness = slack ? std::clamp<uint64_t>(bound / slack, 1, options.nearness) : options.nearness;
    solve::Packing roomy = packEither(longer, enough);
    if (roomy.arenaBytes > mostBytes)
      continue;
    if (const double found = countSeconds(roomy); found < seconds) {
      roomy.boundBytes = packing.boundBytes;
      packing = std::move(roomy);
      seconds = found;
    }
    if (isLarge)
      break;
  }
  return packing;
}

LogicalResult PlanPlace::pack(plan::ModuleOp module, plan::ProgramOp program, std::vector<PackedArena> &packed) {
  const Tails tails = findStoreTails(program, train::getTarget(getOperation()));
  for (auto &[name, problem] : poseProblems(program, tails)) {
    auto arena = dyn_cast_or_null<plan::ArenaOp>(SymbolTable::lookupSymbolIn(module, name));
    if (!arena)
      return program.emitError("buffers name arena ") << name << ", which is not there";
    solve::PackingOptions options;
    options.alignment = arena.getAlignment();
    options.effort = effort;
    if (!solve::isPackable(problem.buffers, options.alignment))
      return program.emitError("buffers together need more than 2^63 bytes");
    const uint64_t base = arena.getRole() == plan::ArenaRole::Transient ? 0 : arena.getBytes();
    solve::Packing packing = packEither(problem, options);
    arena.setBytes(std::max<uint64_t>(arena.getBytes(), base + packing.arenaBytes));
    packed.push_back({program, arena, std::move(problem), options, base, std::move(packing)});
  }
  return success();
}

void PlanPlace::spareStored(plan::ModuleOp module, MutableArrayRef<PackedArena> packed) {
  auto budget = module->getParentOp()->getAttrOfType<IntegerAttr>(deviceBudgetAttrName);
  uint64_t left = budget ? budget.getValue().getZExtValue() : 0;
  for (auto arena : module.getBlock().getOps<plan::ArenaOp>())
    if (arena.getSpace() == plan::ArenaSpace::Device)
      left -= std::min<uint64_t>(left, arena.getBytes());
  const TargetInfo target = train::getTarget(getOperation());
  for (PackedArena &each : packed) {
    if (each.problem.tails.empty())
      continue;
    // Programs share what is transient: one has the room that another needs, and what is left at most once.
    const bool isShared = each.arena.getRole() == plan::ArenaRole::Transient;
    const uint64_t given = isShared ? each.arena.getBytes() : each.packing.arenaBytes;
    const bool mayGrow = isShared && each.arena.getSpace() == plan::ArenaSpace::Device;
    auto countSeconds = [&](const solve::Packing &packing) {
      BufferOffsets offsets;
      for (auto [i, op] : llvm::enumerate(each.problem.ops))
        offsets[op.getNameAttr()] = packing.offsets[i];
      return countLaneSeconds(each.program, target, offsets);
    };
    each.packing = packForStores(each.problem, std::move(each.packing), given + (mayGrow ? left : 0), each.options,
                                 countLaneSeconds(each.program, target, BufferOffsets()), countSeconds);
    if (each.packing.arenaBytes > given) {
      left -= each.packing.arenaBytes - given;
      each.arena.setBytes(each.packing.arenaBytes);
    }
  }
}

void PlanPlace::place(MutableArrayRef<PackedArena> packed) {
  llvm::MapVector<plan::ProgramOp, llvm::StringMap<std::pair<FlatSymbolRefAttr, uint64_t>>> addresses;
  for (PackedArena &each : packed) {
    for (auto [i, op] : llvm::enumerate(each.problem.ops))
      addresses[each.program][op.getName()] = {FlatSymbolRefAttr::get(each.arena.getSymNameAttr()),
                                               each.base + each.packing.offsets[i]};
    numBuffers += each.problem.ops.size();
    each.program.emitRemark() << "@" << each.program.getSymName() << ": arena " << each.packing.arenaBytes
                              << " bytes, bound " << each.packing.boundBytes << " bytes (" << each.problem.ops.size()
                              << " buffers, " << each.packing.method << ")";
  }
  for (auto &[program, address] : addresses) {
    program.walk([&](Operation *op) {
      plan::mapSlices(op, [&](plan::SliceAttr slice) {
        auto it = address.find(slice.getArena().getValue());
        if (it == address.end())
          return slice;
        return plan::SliceAttr::get(&getContext(), it->second.first, it->second.second + slice.getOffset(),
                                    slice.getBytes(), slice.getValue());
      });
    });
    for (auto op : llvm::make_early_inc_range(program.getBlock().getOps<plan::BufferOp>()))
      op.erase();
  }
}
