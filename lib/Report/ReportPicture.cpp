//===- ReportPicture.cpp - an entry's memory as SVG -----------------------===//
//
// Waterline, before and after, address map.
//
//===----------------------------------------------------------------------===//
#include "ReportPicture.h"
#include "lowtide/Support/StableSort.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace lowtide;
using namespace lowtide::report;

static constexpr double width = 720, height = 320, left = 90, bottom = 28;
/// Of one letter, about; pictures are read on telephones, too.
static constexpr double letter = 7.2, line = 16;
/// Marks drawn at most; the JSON has all.
static constexpr size_t maxMarks = 2000;

const char *const report::pictureStyle = R"(
:root{--bg:#fff;--fg:#1b1f24;--dim:#667;--line:#ccd;--c0:#2f6db5;--c1:#b8960c;--c2:#c2571a;--c3:#8a94a6;--c4:#3a8f5c;--c5:#8d4fa8}
@media(prefers-color-scheme:dark){:root{--bg:#15181d;--fg:#e6e9ee;--dim:#9aa3b0;--line:#333a44;--c0:#5b9be6;--c1:#e0c04a;--c2:#ec8a4b;--c3:#77808f;--c4:#5fbf86;--c5:#bb82d6}}
svg{font:14px system-ui,sans-serif}svg text{fill:var(--dim)}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}.c5{fill:var(--c5)}
.axis{stroke:var(--line)}.peak{stroke:var(--fg);stroke-dasharray:3 3;fill:none}.budget{stroke:var(--fg);stroke-width:1.5;stroke-dasharray:9 4}
.curve{stroke:var(--c0);stroke-width:1.5;stroke-linecap:round;fill:none}
.mark{stroke:var(--bg);stroke-width:.5}.mark:hover,.mark:focus{stroke:var(--fg);stroke-width:1.5;outline:none}
)";

std::string report::escape(llvm::StringRef text) {
  std::string escaped;
  for (char c : text)
    switch (c) {
    case '&':
      escaped += "&amp;";
      break;
    case '<':
      escaped += "&lt;";
      break;
    case '>':
      escaped += "&gt;";
      break;
    case '"':
      escaped += "&quot;";
      break;
    default:
      escaped += c;
    }
  return escaped;
}

double Picture::Frame::y(double bytes) const {
  return (height - bottom) * (1 - bytes / double(std::max<uint64_t>(top, 1))) + 4;
}

uint64_t Picture::getAllowance() const {
  return report.deviceBudget > report.statics.sum() ? report.deviceBudget - report.statics.sum() : 0;
}

void Picture::note(double x, double y, llvm::StringRef anchor, const std::string &text) {
  os << "<text x=\"" << f(x) << "\" y=\"" << f(y) << "\" text-anchor=\"" << anchor << "\">" << escape(text)
     << "</text>\n";
}

void Picture::open(llvm::StringRef label, bool alone) {
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -10 " << f(width + 10) << " " << f(height + 14)
     << "\" role=\"img\" aria-label=\"" << label << " of " << escape(entry.name) << "\">\n<defs>";
  // Hue is not the only sign: every component has a pattern of lines too.
  const char *const lines[numTransientComponents] = {"",       "M0 2H8M0 6H8", "M0 8L8 0",
                                                     "M0 4H8", "M4 0V8",       "M0 0L8 8M0 8L8 0"};
  for (unsigned c = 0; c < numTransientComponents; ++c)
    os << "<pattern id=\"p" << number << label.front() << c
       << "\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\" class=\"c" << c
       << "\"/><path d=\"" << lines[c] << "\" stroke=\"#fff\" stroke-opacity=\".45\" fill=\"none\"/></pattern>";
  os << "</defs>\n";
  if (alone)
    os << "<style>" << pictureStyle << "</style>\n";
}

void Picture::bytesAxis(const Frame &frame) {
  for (unsigned i = 0; i <= 4; ++i) {
    double at = frame.y(frame.top * i / 4.0);
    os << "<line class=\"axis\" x1=\"" << left << "\" x2=\"" << width << "\" y1=\"" << f(at) << "\" y2=\"" << f(at)
       << "\"/>";
    note(left - 6, at + 4, "end", formatBytes(frame.top / 4 * i));
  }
}

void Picture::instructionsAxis(const Frame &frame, size_t last) {
  note(frame.begin, height - 4, "start", "instruction 0");
  note(frame.end, height - 4, "end", std::to_string(last));
}

void Picture::bands(llvm::ArrayRef<LiveBytes> live, const Frame &frame, llvm::StringRef name) {
  for (int c = numTransientComponents - 1; c >= 0; --c) {
    // The band from zero to the sum of components 0 … c; later bands cover its lower part.
    std::string path;
    llvm::raw_string_ostream points(path);
    points << "M" << f(frame.x(0)) << " " << f(frame.y(0));
    bool any = false;
    for (auto [i, bytes] : llvm::enumerate(live)) {
      uint64_t sum = 0;
      for (int k = 0; k <= c; ++k)
        sum += bytes[k];
      any |= bytes[c] != 0;
      points << "L" << f(frame.x(i)) << " " << f(frame.y(sum)) << "H" << f(frame.x(i + 1));
    }
    points << "V" << f(frame.y(0)) << "Z";
    if (any)
      os << "<path class=\"mark\" tabindex=\"0\" fill=\"url(#p" << number << name << c << ")\" d=\"" << path
         << "\"><title>" << getName(MemoryComponent(c)) << "</title></path>\n";
  }
}

void Picture::budgetLine(const Frame &frame) {
  uint64_t allowance = getAllowance();
  if (!allowance || allowance > frame.top)
    return;
  double at = frame.y(double(allowance));
  os << "<line class=\"budget\" x1=\"" << f(frame.begin) << "\" x2=\"" << f(frame.end) << "\" y1=\"" << f(at)
     << "\" y2=\"" << f(at) << "\"><title>budget " << formatBytes(report.deviceBudget) << ", less "
     << formatBytes(report.statics.sum()) << " of parameters, state, input and output</title></line>\n";
}

/// The legend of a picture that stands alone.
static void drawLegend(llvm::raw_ostream &os) {
  for (unsigned c = 0; c < numTransientComponents; ++c)
    os << "<rect class=\"c" << c << "\" x=\"" << width - 170 << "\" y=\"" << 28 + 16 * c
       << "\" width=\"10\" height=\"10\"/><text x=\"" << width - 135 << "\" y=\"" << 37 + 16 * c << "\">"
       << getName(MemoryComponent(c)) << "</text>\n";
}

/// As much of `text` as `room` has place for.
static std::string shorten(const std::string &text, double room) {
  const size_t most = size_t(std::max(room / letter, 8.0));
  if (text.size() <= most)
    return text;
  size_t end = most - 1;
  while (end && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) // not within a character
    --end;
  return text.substr(0, end) + "…";
}

void Picture::waterline(bool alone) {
  open("waterline", alone);
  // The budget's line is shown where it is near; far above the water it would only flatten the picture.
  uint64_t allowance = getAllowance(), top = entry.peakBytes;
  if (allowance > top && allowance <= top + top / 4)
    top = allowance;
  Frame frame{left, width, double(entry.instructions.size()), top};
  bytesAxis(frame);
  instructionsAxis(frame, entry.instructions.size());
  if (alone)
    drawLegend(os);
  bands(entry.live, frame, "w");
  budgetLine(frame);
  if (allowance && allowance <= top)
    note(left + 6, frame.y(double(allowance)) + 12, "start",
         "budget " + formatBytes(report.deviceBudget) + " less " + formatBytes(report.statics.sum()) +
             " of parameters, state and batch");
  double at = frame.x(entry.peakAt + 0.5);
  bool right = at > width / 2;
  os << "<line class=\"peak\" x1=\"" << f(at) << "\" x2=\"" << f(at) << "\" y1=\"4\" y2=\"" << height - bottom
     << "\"/>";
  const double room = right ? at - left : width - at;
  note(at + (right ? -6 : 6), 28, right ? "end" : "start",
       shorten("peak " + formatBytes(entry.peakBytes) + " at " +
                   (entry.instructions.empty() ? std::string() : entry.instructions[entry.peakAt].label),
               room));
  os << "</svg>\n";
}

void Picture::beforeAfter(bool alone) {
  open("before and after", alone);
  const Unfitted &before = *entry.before;
  const double middle = (left + width) / 2, gap = 14;
  uint64_t top = std::max({before.peakBytes, entry.peakBytes, uint64_t(1)});
  Frame was{left, middle - gap, double(before.live.size()), top};
  Frame is{middle + gap, width, double(entry.instructions.size()), top};
  bytesAxis(is);
  note(was.begin, height - 4, "start", "the step without a budget");
  instructionsAxis(is, entry.instructions.size());
  bands(before.live, was, "b");
  bands(entry.live, is, "b");
  budgetLine(was);
  budgetLine(is);
  note(was.begin + 6, 16, "start", "before: peak " + formatBytes(before.peakBytes));
  std::string text = "after: peak " + formatBytes(entry.peakBytes);
  llvm::raw_string_ostream(text) << llvm::format(
      ", %.0f %% of it", 100.0 * double(entry.peakBytes) / double(std::max<uint64_t>(before.peakBytes, 1)));
  note(is.begin + 6, 16, "start", text);
  if (double seconds = entry.getSeconds(), again = entry.getRecomputedSeconds(); seconds > again)
    note(is.begin + 6, 16 + line, "start",
         llvm::formatv("time +{0:F1} % (estimated)", 100.0 * again / (seconds - again)).str());
  if (alone)
    drawLegend(os);
  os << "</svg>\n";
}

size_t Picture::addresses() {
  open("addresses", /*alone=*/false);
  Frame frame{left, width, double(entry.instructions.size()), report.transientBytes};
  bytesAxis(frame);
  instructionsAxis(frame, entry.instructions.size());
  std::vector<const Tensor *> marks;
  for (const Tensor &tensor : entry.tensors)
    if (tensor.bytes)
      marks.push_back(&tensor);
  auto area = [](const Tensor *t) { return double(t->bytes) * (t->end - t->begin); };
  sortStably(marks, [&](const Tensor *a, const Tensor *b) { return area(a) > area(b); });
  size_t hidden = marks.size() > maxMarks ? marks.size() - maxMarks : 0;
  marks.resize(marks.size() - hidden);
  for (const Tensor *tensor : marks) {
    double above = frame.y(double(tensor->offset + tensor->bytes));
    os << "<rect class=\"mark\" tabindex=\"0\" fill=\"url(#p" << number << "a" << unsigned(tensor->component)
       << ")\" x=\"" << f(frame.x(tensor->begin)) << "\" y=\"" << f(above) << "\" width=\""
       << f(frame.x(tensor->end) - frame.x(tensor->begin)) << "\" height=\""
       << f(frame.y(double(tensor->offset)) - above) << "\"><title>" << escape(tensor->maker)
       << (tensor->place.empty() ? "" : " · ") << escape(tensor->place) << "\n"
       << getName(tensor->component) << ", " << formatBytes(tensor->bytes) << " at " << tensor->offset << "\nborn at "
       << tensor->begin << ", dies after " << tensor->end - 1 << "</title></rect>\n";
  }
  os << "</svg>\n";
  return hidden;
}
