//===- ReportTraces.cpp - a plan for the viewers that people have ---------===//
//
// Chrome's trace format, which Perfetto opens, and the snapshot of PyTorch's memory viewer. Time is the cost model's,
// and in a trace also a run's.
//
//===----------------------------------------------------------------------===//
#include "PickleWriter.h"
#include "lowtide/Report/Report.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

#include <map>

using namespace lowtide;
using namespace lowtide::report;

/// Names come from files; JSON and pickles want UTF-8.
static std::string utf8(llvm::StringRef text) {
  return llvm::json::isUTF8(text) ? text.str() : llvm::json::fixUTF8(text);
}

namespace {

/// Writes the events of a trace. Each entry is a process, each lane a thread of it; copies to another memory and back
/// have lanes of their own.
class TraceWriter {
public:
  TraceWriter(const Report &report, llvm::raw_ostream &os) : report(report), json(os) {}

  void write() {
    json.object([&] {
      json.attribute("displayTimeUnit", "ms");
      json.attributeArray("traceEvents", [&] { writeEvents(); });
    });
  }

private:
  void writeEvents() {
    for (auto [process, entry] : llvm::enumerate(report.entries)) {
      beginProcess(int64_t(process), entry, report.title + " @" + entry.name);
      for (unsigned i = 0; i < entry.instructions.size(); ++i) {
        const Instruction &instruction = entry.instructions[i];
        const double now = instruction.start * 1e6;
        slice(int64_t(process), entry, i, instruction.stream, now, instruction.seconds * 1e6,
              [&] { json.attribute("flops", int64_t(instruction.flops)); });
        event("C", "transient bytes", int64_t(process), 0, now, [&] {
          json.attributeObject("args", [&] {
            for (unsigned c = 0; c < numTransientComponents; ++c)
              json.attribute(getName(MemoryComponent(c)), int64_t(entry.live[i][c]));
          });
        });
      }
      if (report.profile) // a process comes right after the one that it belongs to
        sortIndex(int64_t(process), 2 * int64_t(process));
      if (report.profile && report.profile->entry == entry.name) {
        sortIndex(int64_t(report.entries.size()), 2 * int64_t(process) + 1);
        writeMeasured(int64_t(report.entries.size()), entry);
      }
    }
  }

  void writeMeasured(int64_t process, const Entry &entry) {
    beginProcess(process, entry, report.title + " @" + entry.name + ", measured");
    std::vector<int64_t> rounds(entry.instructions.size());
    for (const MeasuredSpan &span : report.profile->spans)
      slice(process, entry, span.instruction, span.lane, span.begin, span.end - span.begin,
            [&] { json.attribute("round", rounds[span.instruction]++); });
  }

  void slice(int64_t process, const Entry &entry, unsigned number, uint32_t lane, double microseconds, double duration,
             llvm::function_ref<void()> more) {
    const Instruction &instruction = entry.instructions[number];
    const bool isMove = moved.contains(number);
    event("X", instruction.label, process, lane, microseconds, [&] {
      json.attribute("dur", duration);
      json.attribute("cat", isMove ? "moved" : instruction.recomputed ? "recomputed" : "computed");
      json.attributeObject("args", [&] {
        json.attribute("instruction", int64_t(number));
        more();
      });
    });
  }

  void beginProcess(int64_t process, const Entry &entry, const std::string &title) {
    auto nameIt = [&](const char *what, uint32_t lane, const std::string &name) {
      event("M", what, process, lane, 0,
            [&] { json.attributeObject("args", [&] { json.attribute("name", utf8(name)); }); });
    };
    nameIt("process_name", 0, title);
    std::map<uint32_t, std::string> lanes;
    moved.clear();
    for (const Move &move : entry.moves) {
      moved.insert(move.instruction);
      lanes[entry.instructions[move.instruction].stream] =
          (move.isStore ? "stores in space " : "loads from space ") + move.space;
    }
    lanes[0] = "computes";
    if (lanes.size() > 1)
      for (const auto &[lane, name] : lanes)
        nameIt("thread_name", lane, name);
  }

  void sortIndex(int64_t process, int64_t index) {
    event("M", "process_sort_index", process, 0, 0,
          [&] { json.attributeObject("args", [&] { json.attribute("sort_index", index); }); });
  }

  void event(const char *phase, llvm::StringRef name, int64_t process, uint32_t lane, double microseconds,
             llvm::function_ref<void()> more) {
    json.object([&] {
      json.attribute("ph", phase);
      json.attribute("name", utf8(name));
      json.attribute("pid", process);
      json.attribute("tid", int64_t(lane));
      json.attribute("ts", microseconds);
      more();
    });
  }

  const Report &report;
  llvm::json::OStream json;
  /// Copies to another memory or from it, of the process that is written.
  llvm::DenseSet<unsigned> moved;
};

} // namespace

void report::printChromeTrace(const Report &report, llvm::raw_ostream &os) {
  TraceWriter(report, os).write();
  os << "\n";
}

namespace {

/// Writes the dictionary that torch.cuda.memory._snapshot returns; the arenas are its segments.
class SnapshotWriter {
public:
  SnapshotWriter(const Report &report, const Entry &entry, llvm::raw_ostream &os)
      : report(report), entry(entry), pickle(os) {}

  void write() {
    pickle.dictionary([&] {
      pickle.key("segments");
      pickle.list([&] { writeSegments(); });
      pickle.key("device_traces");
      pickle.list([&] { pickle.list([&] { writeTrace(); }); });
    });
    pickle.stop();
  }

private:
  /// Addresses that no real allocator gives, one range for each arena.
  static uint64_t base(unsigned arena) { return uint64_t(arena + 1) << 44; }
  static constexpr unsigned transient = 3, exchange = 4;

  void frames(llvm::StringRef name, llvm::StringRef place) {
    pickle.key("frames");
    pickle.list([&] {
      pickle.dictionary([&] {
        pickle.field("filename", place.empty() ? "plan" : utf8(place));
        pickle.field("line", int64_t(0));
        pickle.field("name", utf8(name));
      });
    });
  }

  void block(uint64_t address, uint64_t bytes, bool active, llvm::StringRef name, llvm::StringRef place) {
    pickle.dictionary([&] {
      pickle.field("address", int64_t(address));
      pickle.field("size", int64_t(bytes));
      pickle.field("requested_size", int64_t(bytes));
      pickle.field("state", active ? "active_allocated" : "inactive");
      frames(name, place);
    });
  }

  void segment(unsigned arena, uint64_t bytes, uint64_t activeBytes, llvm::function_ref<void()> blocks) {
    if (!bytes)
      return;
    pickle.dictionary([&] {
      pickle.field("device", int64_t(0));
      pickle.field("address", int64_t(base(arena)));
      pickle.field("total_size", int64_t(bytes));
      pickle.field("allocated_size", int64_t(activeBytes));
      pickle.field("active_size", int64_t(activeBytes));
      pickle.field("requested_size", int64_t(activeBytes));
      pickle.field("stream", int64_t(0));
      pickle.field("segment_type", "large");
      pickle.key("segment_pool_id");
      pickle.pair(0, 0);
      pickle.field("is_expandable", false);
      pickle.key("frames");
      pickle.list([] {});
      pickle.key("blocks");
      pickle.list(blocks);
    });
  }

  /// The arenas at the end of the step: what is kept is active, the rest is free.
  void writeSegments() {
    const std::pair<const char *, uint64_t> arenas[] = {{"parameters", report.statics.parameters},
                                                        {"optimizer state", report.statics.state},
                                                        {"input and output", report.statics.batch}};
    for (auto [i, arena] : llvm::enumerate(arenas))
      segment(unsigned(i), arena.second, arena.second,
              [&, i = i] { block(base(unsigned(i)), arenas[i].second, true, arenas[i].first, ""); });
    segment(exchange, report.statics.exchange, report.statics.exchange,
            [&] { block(base(exchange), report.statics.exchange, true, report.getExchangeName(), ""); });
    std::vector<const Tensor *> kept;
    uint64_t keptBytes = 0;
    for (const Tensor &tensor : entry.tensors)
      if (tensor.bytes && tensor.end >= entry.instructions.size()) {
        kept.push_back(&tensor);
        keptBytes += tensor.bytes;
      }
    llvm::sort(kept, [](const Tensor *a, const Tensor *b) { return a->offset < b->offset; });
    segment(transient, report.transientBytes, keptBytes, [&] {
      uint64_t position = 0;
      for (const Tensor *tensor : kept) {
        if (tensor->offset > position)
          block(base(transient) + position, tensor->offset - position, false, "free", "");
        block(base(transient) + tensor->offset, tensor->bytes, true, tensor->maker, tensor->place);
        position = tensor->offset + tensor->bytes;
      }
      if (position < report.transientBytes)
        block(base(transient) + position, report.transientBytes - position, false, "free", "");
    });
  }

  void traced(const char *action, const Tensor &tensor, double microseconds) {
    pickle.dictionary([&] {
      pickle.field("action", action);
      pickle.field("addr", int64_t(base(transient) + tensor.offset));
      pickle.field("size", int64_t(tensor.bytes));
      pickle.field("stream", int64_t(0));
      pickle.field("time_us", int64_t(microseconds));
      frames(tensor.maker, tensor.place);
    });
  }

  /// Frees come before allocations: an address may be handed on at once.
  void writeTrace() {
    std::vector<std::vector<const Tensor *>> born(entry.instructions.size() + 1), dead(entry.instructions.size() + 1);
    for (const Tensor &tensor : entry.tensors) {
      if (!tensor.bytes || tensor.begin >= tensor.end)
        continue;
      born[tensor.begin].push_back(&tensor);
      if (tensor.end < entry.instructions.size())
        dead[tensor.end].push_back(&tensor);
    }
    double now = 0;
    for (size_t i = 0; i < entry.instructions.size(); ++i) {
      for (const Tensor *tensor : dead[i]) {
        traced("free_requested", *tensor, now);
        traced("free_completed", *tensor, now);
      }
      for (const Tensor *tensor : born[i])
        traced("alloc", *tensor, now);
      now += entry.instructions[i].seconds * 1e6;
    }
  }

  const Report &report;
  const Entry &entry;
  PickleWriter pickle;
};

} // namespace

void report::printTorchSnapshot(const Report &report, llvm::raw_ostream &os) {
  static const Entry none;
  const Entry *entry = findMainEntry(report);
  SnapshotWriter(report, entry ? *entry : none, os).write();
}
