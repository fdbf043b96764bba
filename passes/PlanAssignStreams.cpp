//===- PlanAssignStreams.cpp - copies between memories get lanes ----------===//
//
// 1. Stream 0 computes. What leaves the device for another memory goes on a stream of its own, and so does what comes
//    back: a device has an engine for each, and a file does not hold up memory of the host. Instructions of a repeat
//    stay together on stream 0, for there are no events in a repeat. Copies from a file (to a file) pass through one
//    piece of memory: where a repeat has some, all of that direction are on stream 0.
// 2. In the order of the text, each instruction waits for those of other streams that it must come after: the writers
//    of what it reads, the writers and readers of what it overwrites. Vector clocks say what a stream knows already,
//    so that no wait says again what another has said, and each event is needed.
//
// Addresses decide, not values: bytes that one value leaves to another are waited for like any others.
//
//===----------------------------------------------------------------------===//
#include "Passes.h"
#include "StepPass.h"
#include "lowtide/Dialect/Plan/Plan.h"
#include "llvm/ADT/StringMap.h"

#include <map>

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_PLANASSIGNSTREAMS
#include "Passes.h.inc"
} // namespace lowtide

namespace {

/// An instruction of the program as its stream counts it, from 1.
struct StreamPoint {
  uint32_t stream = 0;
  uint32_t number = 0;
};

/// Who touched bytes last: up to `end`, from the key that the cell is found by.
struct Cell {
  uint64_t end = 0;
  StreamPoint writer;
  SmallVector<StreamPoint, 2> readers; ///< the last of each stream since then
};

/// The bytes of one arena; those that nothing touched have no cell.
class Touches {
public:
  /// Calls `visit` for every cell of a range, cut at its ends; makes cells for what has none.
  void forEach(uint64_t begin, uint64_t end, llvm::function_ref<void(Cell &)> visit) {
    if (begin == end)
      return;
    split(begin);
    split(end);
    uint64_t at = begin;
    for (auto it = cells.lower_bound(begin); at < end;) {
      if (it == cells.end() || it->first > at) {
        const uint64_t next = it == cells.end() ? end : std::min(end, it->first);
        it = cells.emplace_hint(it, at, Cell{next, {}, {}});
      }
      visit(it->second);
      at = it->second.end;
      ++it;
    }
  }

private:
  void split(uint64_t at) {
    auto it = cells.lower_bound(at);
    if (it == cells.begin())
      return;
    --it;
    if (it->second.end <= at)
      return;
    Cell tail = it->second;
    it->second.end = at;
    cells.emplace(at, std::move(tail));
  }

  std::map<uint64_t, Cell> cells;
};

/// A range that an instruction touches.
struct Touch {
  StringRef arena;
  uint64_t begin, end;
  bool isWritten;
};

class StreamAssignment {
public:
  StreamAssignment(plan::ModuleOp module, plan::ProgramOp program) : program(program) {
    for (auto arena : module.getBlock().getOps<plan::ArenaOp>())
      spaces[arena.getSymName()] = arena.getSpace();
  }

  LogicalResult run();
  unsigned getNumEvents() const { return events; }

private:
  /// From which memory to which.
  using Lane = std::pair<plan::ArenaSpace, plan::ArenaSpace>;
  static constexpr Lane computes{plan::ArenaSpace::Device, plan::ArenaSpace::Device};

  Lane getLane(Operation *op) const;
  void collect(Operation *op, int64_t rounds, SmallVectorImpl<Touch> &touches) const;
  void await(StreamPoint point, Operation *before, uint32_t stream);
  void visit(Operation *op, uint32_t stream);

  plan::ProgramOp program;
  llvm::StringMap<plan::ArenaSpace> spaces;
  llvm::StringMap<Touches> arenas;
  unsigned events = 0;
  /// How many instructions of each stream a stream knows to be over.
  SmallVector<SmallVector<uint32_t>> clocks;
  /// Of every instruction of a stream: itself, what its stream knew after it, and the event that marks it.
  struct Issued {
    Operation *op;
    SmallVector<uint32_t> clock;
    std::optional<unsigned> event;
  };
  SmallVector<SmallVector<Issued>> issued;
};

class PlanAssignStreams : public lowtide::impl::PlanAssignStreamsBase<PlanAssignStreams> {
public:
  using PlanAssignStreamsBase::PlanAssignStreamsBase;
  void runOnOperation() override {
    if (!noteMissingPlan(getOperation(), getArgument()))
      return;
    for (auto module : getOperation().getOps<plan::ModuleOp>())
      for (auto program : module.getBlock().getOps<plan::ProgramOp>()) {
        StreamAssignment assignment(module, program);
        if (failed(assignment.run()))
          return signalPassFailure();
        numEvents += assignment.getNumEvents();
      }
  }
};

} // namespace

StreamAssignment::Lane StreamAssignment::getLane(Operation *op) const {
  auto copy = dyn_cast<plan::CopyOp>(op);
  if (!copy)
    return computes;
  return {spaces.lookup(copy.getSource().getArena().getValue()), spaces.lookup(copy.getTarget().getArena().getValue())};
}

/// Everything that an instruction touches, in all rounds of the repeats in it.
void StreamAssignment::collect(Operation *op, int64_t rounds, SmallVectorImpl<Touch> &touches) const {
  auto add = [&](plan::SliceAttr slice, bool isWritten, int64_t step) {
    const uint64_t moved = uint64_t(std::abs(step)) * uint64_t(rounds - 1);
    uint64_t begin = slice.getOffset(), end = begin + slice.getBytes();
    (step < 0 ? begin : end) += step < 0 ? -moved : moved;
    touches.push_back({slice.getArena().getValue(), begin, end, isWritten});
  };
  if (auto copy = dyn_cast<plan::CopyOp>(op)) {
    add(copy.getSource(), false, copy.getSourceStep());
    add(copy.getTarget(), true, copy.getTargetStep());
    return;
  }
  plan::forEachSlice(
      op, [&](plan::Access access, plan::SliceAttr slice) { add(slice, access != plan::Access::Read, /*step=*/0); });
  if (auto repeat = dyn_cast<plan::RepeatOp>(op))
    for (Operation &inner : repeat.getBody().front())
      if (plan::isInstruction(&inner))
        collect(&inner, repeat.getCount(), touches);
}

/// Lets `before`, on `stream`, come after an instruction of another stream.
void StreamAssignment::await(StreamPoint point, Operation *before, uint32_t stream) {
  Issued &other = issued[point.stream][point.number - 1];
  OpBuilder builder(before);
  if (!other.event) {
    other.event = events++;
    builder.setInsertionPointAfter(other.op);
    plan::RecordOp::create(builder, other.op->getLoc(), *other.event, point.stream);
    builder.setInsertionPoint(before);
  }
  plan::WaitOp::create(builder, before->getLoc(), *other.event, stream);
  for (auto [known, there] : llvm::zip_equal(clocks[stream], other.clock))
    known = std::max(known, there);
}

void StreamAssignment::visit(Operation *op, uint32_t stream) {
  SmallVector<Touch> touches;
  collect(op, /*rounds=*/1, touches);
  // The latest instruction of each other stream that has to be over.
  SmallVector<uint32_t> due(clocks.size(), 0);
  auto need = [&](StreamPoint point) { due[point.stream] = std::max(due[point.stream], point.number); };
  for (const Touch &touch : touches)
    arenas[touch.arena].forEach(touch.begin, touch.end, [&](Cell &cell) {
      need(cell.writer);
      if (touch.isWritten)
        llvm::for_each(cell.readers, need);
    });
  // One wait may bring news of a third stream.
  for (bool isDone = false; !isDone;) {
    isDone = true;
    for (uint32_t other = 0; other < due.size(); ++other)
      if (other != stream && due[other] > clocks[stream][other]) {
        bool isToldBy = false;
        for (uint32_t third = 0; third < due.size() && !isToldBy; ++third)
          isToldBy = third != other && third != stream && due[third] > clocks[stream][third] &&
                     issued[third][due[third] - 1].clock[other] >= due[other];
        if (isToldBy)
          continue;
        await({other, due[other]}, op, stream);
        isDone = false;
      }
  }
  const StreamPoint now{stream, ++clocks[stream][stream]};
  issued[stream].push_back({op, clocks[stream], std::nullopt});
  for (const Touch &touch : touches)
    arenas[touch.arena].forEach(touch.begin, touch.end, [&](Cell &cell) {
      if (touch.isWritten) {
        cell.writer = now;
        cell.readers.clear();
        return;
      }
      auto mine = llvm::find_if(cell.readers, [&](StreamPoint reader) { return reader.stream == stream; });
      if (mine == cell.readers.end())
        cell.readers.push_back(now);
      else
        *mine = now;
    });
}

LogicalResult StreamAssignment::run() {
  // Streams are numbered as lanes are met.
  std::map<Lane, uint32_t> streamOf{{computes, 0}};
  SmallVector<Operation *> instructions;
  for (Operation &op : program.getBlock()) {
    if (isa<plan::BufferOp>(op))
      return op.emitOpError("has no address: run plan-place first");
    if (isa<plan::RecordOp, plan::WaitOp>(op))
      return op.emitOpError("is there already: streams are assigned once");
    if (!plan::isInstruction(&op))
      continue;
    instructions.push_back(&op);
    if (isa<plan::RepeatOp>(op))
      op.walk([&](Operation *inner) {
        if (const Lane lane = getLane(inner);
            lane.first == plan::ArenaSpace::File || lane.second == plan::ArenaSpace::File)
          streamOf[lane] = 0;
      });
  }
  uint32_t streams = 1;
  for (Operation *op : instructions)
    if (streamOf.try_emplace(getLane(op), streams).second)
      ++streams;
  if (streams == 1)
    return success();
  clocks.assign(streams, SmallVector<uint32_t>(streams, 0));
  issued.resize(streams);
  for (Operation *op : instructions) {
    const uint32_t stream = streamOf.at(getLane(op));
    op->setAttr("stream", IntegerAttr::get(IntegerType::get(op->getContext(), 64), stream));
    visit(op, stream);
  }
  program.setStreams(streams);
  program.setEvents(events);
  program.emitRemark("@") << program.getSymName() << ": " << streams << " streams, " << events << " events";
  return success();
}
