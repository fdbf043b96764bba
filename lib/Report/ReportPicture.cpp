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

/// Of one letter, about; pictures are read on telephones, too.
static constexpr double letter = 8.2;
/// Marks drawn at most; the JSON has all.
static constexpr size_t maxMarks = 2000;

static constexpr llvm::StringLiteral pictureRules = R"(
svg{font:16px system-ui,sans-serif}svg text{fill:{dim}}
.c0{fill:{c0};background:{c0}}.c1{fill:{c1};background:{c1}}.c2{fill:{c2};background:{c2}}
.c3{fill:{c3};background:{c3}}.c4{fill:{c4};background:{c4}}.c5{fill:{c5};background:{c5}}
.axis{stroke:{line}}.peak{stroke:{fg};stroke-dasharray:3 3;fill:none}.budget{stroke:{fg};stroke-width:1.5;stroke-dasharray:9 4}
.curve{stroke:{c0};stroke-width:1.5;stroke-linecap:round;fill:none}.waits{fill:{c2}}
.mark{stroke:{bg};stroke-width:.5}.mark:hover,.mark:focus{stroke:{fg};stroke-width:1.5;outline:none}
)";

std::string report::writeStyle(llvm::StringRef rules) {
  // Not variables of the style sheet: many viewers of pictures do not know them, and draw in black.
  struct Colour {
    llvm::StringLiteral name, light, dark;
  };
  static constexpr Colour colours[] = {{"{bg}", "#fff", "#15181d"},    {"{fg}", "#1b1f24", "#e6e9ee"},
                                       {"{dim}", "#667", "#9aa3b0"},   {"{line}", "#ccd", "#333a44"},
                                       {"{c0}", "#2f6db5", "#5b9be6"}, {"{c1}", "#b8960c", "#e0c04a"},
                                       {"{c2}", "#c2571a", "#ec8a4b"}, {"{c3}", "#8a94a6", "#77808f"},
                                       {"{c4}", "#3a8f5c", "#5fbf86"}, {"{c5}", "#8d4fa8", "#bb82d6"}};
  std::string light = (pictureRules + rules).str(), dark = light;
  auto replace = [](std::string &text, llvm::StringRef name, llvm::StringRef colour) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + colour.size()))
      text.replace(at, name.size(), colour);
  };
  for (const Colour &colour : colours) {
    replace(light, colour.name, colour.light);
    replace(dark, colour.name, colour.dark);
  }
  return light + "@media(prefers-color-scheme:dark){" + dark + "}\n";
}

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
  return above + plotHeight * (1 - bytes / double(std::max<uint64_t>(top, 1)));
}

uint64_t Picture::getAllowance() const {
  return report.deviceBudget > report.statics.sum() ? report.deviceBudget - report.statics.sum() : 0;
}

void Picture::note(double x, double y, llvm::StringRef anchor, const std::string &text) {
  os << "<text x=\"" << f(x) << "\" y=\"" << f(y) << "\" text-anchor=\"" << anchor << "\">" << escape(text)
     << "</text>\n";
}

void Picture::open(llvm::StringRef label, double height, bool alone) {
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << f(width + 10) << " " << f(height)
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
    os << "<style>" << writeStyle("") << "</style>\n";
}

void Picture::bytesAxis(const Frame &frame) {
  for (unsigned i = 0; i <= 4; ++i) {
    double at = frame.y(frame.top * i / 4.0);
    os << "<line class=\"axis\" x1=\"" << f(left) << "\" x2=\"" << f(width) << "\" y1=\"" << f(at) << "\" y2=\""
       << f(at) << "\"/>";
    note(left - 6, at + 5, "end", formatBytes(frame.top / 4 * i));
  }
}

void Picture::instructionsAxis(const Frame &frame, size_t last) {
  note(frame.begin, frame.below() + 18, "start", "instruction 0");
  note(frame.end, frame.below() + 18, "end", std::to_string(last));
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

void Picture::legend(double y) {
  for (unsigned c = 0; c < numTransientComponents; ++c) {
    const double x = left + (width - left) / 3 * (c % 3), at = y + line * (c / 3);
    os << "<rect class=\"c" << c << "\" x=\"" << f(x) << "\" y=\"" << f(at - 11) << "\" width=\"12\" height=\"12\"/>";
    note(x + 20, at, "start", getName(MemoryComponent(c)).str());
  }
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

/// Of a picture under its header; one that stands alone has a legend.
static double heightOf(double above, bool alone) { return above + plotHeight + (alone ? 4 : 1.5) * line; }

void Picture::waterline(bool alone) {
  constexpr double above = 2.5 * line;
  open("waterline", heightOf(above, alone), alone);
  // The budget's line is shown where it is near; far above the water it would only flatten the picture.
  uint64_t allowance = getAllowance(), top = entry.peakBytes;
  if (allowance > top && allowance <= top + top / 4)
    top = allowance;
  Frame frame{left, width, double(entry.instructions.size()), top, above};
  bytesAxis(frame);
  instructionsAxis(frame, entry.instructions.size());
  bands(entry.live, frame, "w");
  budgetLine(frame);
  if (allowance && allowance <= top) {
    os << "<line class=\"budget\" x1=\"" << f(left) << "\" x2=\"" << f(left + 26) << "\" y1=\"11\" y2=\"11\"/>";
    note(left + 32, 16, "start",
         "budget " + formatBytes(report.deviceBudget) + " less " + formatBytes(report.statics.sum()) +
             " of parameters, state and batch");
  }
  double at = frame.x(entry.peakAt + 0.5);
  bool right = at > width / 2;
  os << "<line class=\"peak\" x1=\"" << f(at) << "\" x2=\"" << f(at) << "\" y1=\"" << f(16 + 0.3 * line) << "\" y2=\""
     << f(frame.below()) << "\"/>";
  const double room = right ? at - left : width - at;
  note(at + (right ? -6 : 6), 16 + line, right ? "end" : "start",
       shorten("peak " + formatBytes(entry.peakBytes) + " at " +
                   (entry.instructions.empty() ? std::string() : entry.instructions[entry.peakAt].label),
               room));
  if (alone)
    legend(frame.below() + 2.5 * line);
  os << "</svg>\n";
}

void Picture::beforeAfter(bool alone) {
  constexpr double above = 2.5 * line;
  open("before and after", heightOf(above, alone), alone);
  const Unfitted &before = *entry.before;
  const double middle = (left + width) / 2, gap = 14;
  uint64_t top = std::max({before.peakBytes, entry.peakBytes, uint64_t(1)});
  Frame was{left, middle - gap, double(before.live.size()), top, above};
  Frame is{middle + gap, width, double(entry.instructions.size()), top, above};
  bytesAxis(is);
  note(was.begin, was.below() + 18, "start", "the step without a budget");
  instructionsAxis(is, entry.instructions.size());
  bands(before.live, was, "b");
  bands(entry.live, is, "b");
  budgetLine(was);
  budgetLine(is);
  note(was.begin, 16, "start", "before: peak " + formatBytes(before.peakBytes));
  std::string text = "after: peak " + formatBytes(entry.peakBytes);
  llvm::raw_string_ostream(text) << llvm::format(
      ", %.0f %% of it", 100.0 * double(entry.peakBytes) / double(std::max<uint64_t>(before.peakBytes, 1)));
  note(is.begin, 16, "start", text);
  if (double seconds = entry.getSeconds(), again = entry.getRecomputedSeconds(); seconds > again)
    note(is.begin, 16 + line, "start",
         llvm::formatv("time +{0:F1} % (estimated)", 100.0 * again / (seconds - again)).str());
  if (alone)
    legend(is.below() + 2.5 * line);
  os << "</svg>\n";
}

size_t Picture::addresses() {
  constexpr double above = 6;
  open("addresses", heightOf(above, /*alone=*/false), /*alone=*/false);
  Frame frame{left, width, double(entry.instructions.size()), report.transientBytes, above};
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
