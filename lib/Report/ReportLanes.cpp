//===- ReportLanes.cpp - what waits elsewhere, and its ways ---------------===//
//
// Bytes in other memories over the instructions, and the lanes over estimated time: what computes, what is on its way,
// and when nothing computes for that.
//
//===----------------------------------------------------------------------===//
#include "ReportPicture.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <optional>

using namespace lowtide;
using namespace lowtide::report;

void Picture::otherMemory(const SpaceBytes &memory) {
  constexpr double above = 1.5 * line;
  open("memory", above + plotHeight + 1.5 * line, /*alone=*/false);
  Frame frame{left, width, double(entry.instructions.size()), std::max<uint64_t>(memory.bytes, 1), above};
  bytesAxis(frame);
  instructionsAxis(frame, entry.instructions.size());
  auto draw = [&](const char *style, llvm::function_ref<uint64_t(size_t)> get, const std::string &title) {
    os << "<path class=\"mark " << style << "\" tabindex=\"0\" d=\"M" << f(frame.x(0)) << " " << f(frame.y(0));
    for (size_t i = 0; i < memory.waiting.size(); ++i)
      os << "L" << f(frame.x(double(i))) << " " << f(frame.y(double(get(i)))) << "H" << f(frame.x(double(i + 1)));
    os << "V" << f(frame.y(0)) << "Z\"><title>" << escape(title) << "</title></path>\n";
  };
  const uint64_t lasting = memory.lastingBytes;
  if (llvm::any_of(memory.waiting, [](uint64_t bytes) { return bytes != 0; }))
    draw("c0", [&](size_t i) { return lasting + memory.waiting[i]; }, "values that wait");
  if (lasting)
    draw("c3", [&](size_t) { return lasting; }, "from step to step: " + formatBytes(lasting));
  note(left, 16, "start", formatBytes(memory.bytes) + " in space " + memory.space);
  os << "</svg>\n";
}

void Picture::lanes() {
  // Lane 0 computes; copies of one direction have one of their own.
  std::map<uint32_t, std::string> names{{0, "computes"}};
  std::map<unsigned, const Move *> moveOf;
  for (const Move &move : entry.moves) {
    names[entry.instructions[move.instruction].stream] = (move.isStore ? "stores to " : "loads from ") + move.space;
    moveOf[move.instruction] = &move;
  }
  const double whole = std::max(entry.getSeconds(), 1e-12), bar = 26, step = bar + line + 6;
  auto x = [&](double seconds) { return left + (width - left) * seconds / whole; };
  auto microseconds = [](double seconds) { return llvm::formatv("{0:F1} µs", seconds * 1e6).str(); };
  open("lanes", step * double(names.size()) + 1.5 * line, /*alone=*/false);
  double y = 6;
  for (const auto &[lane, name] : names) {
    note(left - 6, y + bar / 2 + 5, "end", name.substr(0, name.find(' ')));
    os << "<line class=\"axis\" x1=\"" << f(left) << "\" x2=\"" << f(width) << "\" y1=\"" << f(y + bar) << "\" y2=\""
       << f(y + bar) << "\"/>\n";
    // What is narrower than a pixel joins what comes next to it, so that long steps have short pictures.
    struct Box {
      const char *style;
      double begin, end;
      std::string title;
      unsigned count;
    };
    std::optional<Box> last;
    auto close = [&] {
      if (last)
        os << "<rect class=\"mark " << last->style << "\" tabindex=\"0\" x=\"" << f(x(last->begin)) << "\" y=\"" << f(y)
           << "\" width=\"" << f(x(last->end) - x(last->begin)) << "\" height=\"" << f(bar) << "\"><title>"
           << escape(last->title) << (last->count > 1 ? " and " + std::to_string(last->count - 1) + " more" : "")
           << "</title></rect>\n";
      last.reset();
    };
    auto box = [&](const char *style, double begin, double end, const std::string &title) {
      const bool joins = last && last->style == llvm::StringRef(style) && x(begin) - x(last->end) < 0.5 &&
                         (x(last->end) - x(last->begin) < 1 || x(end) - x(begin) < 1);
      if (joins) {
        last->end = end;
        ++last->count;
        return;
      }
      close();
      last = Box{style, begin, end, title, 1};
    };
    double free = 0, busy = 0;
    uint64_t bytes = 0;
    for (auto [i, instruction] : llvm::enumerate(entry.instructions)) {
      if (instruction.stream != lane)
        continue;
      if (lane == 0 && instruction.start > free)
        box("waits", free, instruction.start, "waits " + microseconds(instruction.start - free) + " for a copy");
      auto move = moveOf.find(unsigned(i));
      if (move != moveOf.end())
        bytes += move->second->bytes;
      const char *style = lane ? "c4" : instruction.recomputed ? "c1" : "c0";
      box(style, instruction.start, instruction.start + instruction.seconds,
          instruction.label + ", " + microseconds(instruction.seconds) +
              (move == moveOf.end() ? "" : ", " + formatBytes(move->second->bytes)));
      free = instruction.start + instruction.seconds;
      busy += instruction.seconds;
    }
    if (lane == 0 && free < whole)
      box("waits", free, whole, "waits " + microseconds(whole - free) + " for copies to end");
    close();
    note(left, y + bar + line - 2, "start",
         lane ? name + ": " + formatBytes(bytes) + " in " + microseconds(busy)
              : microseconds(busy) + " of " + microseconds(whole) + "; waits " +
                    microseconds(entry.getExposedSeconds()));
    y += step;
  }
  note(left, y + line - 4, "start", "0");
  note(width, y + line - 4, "end", microseconds(whole) + ", estimated");
  os << "</svg>\n";
}
