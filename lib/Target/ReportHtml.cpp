//===- ReportHtml.cpp - waterline and address map, in one file ------------===//
//
// Drawn here as SVG, so that the file needs no script, prints, and opens at once. Marks carry a title (hover) and take
// the keyboard's focus; components differ in hue and in pattern. The data stand in the file as JSON too.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Target/Report.h"
#include "runtime/Artifact.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace lowtide;
using namespace lowtide::report;

static constexpr double width = 1000, height = 320, left = 70, bottom = 24;
/// Marks drawn at most; the JSON has all.
static constexpr size_t maxMarks = 2000;

static std::string formatBytes(uint64_t bytes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  unsigned unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  os << llvm::format(unit ? "%.2f " : "%.0f ", value) << units[unit];
  return text;
}

static std::string escape(llvm::StringRef text) {
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

/// What the pictures need, for light and dark.
static const char *const pictureStyle = R"(
:root{--bg:#fff;--fg:#1b1f24;--dim:#667;--line:#ccd;--c0:#2f6db5;--c1:#c2571a;--c2:#8a94a6;--c3:#3a8f5c;--c4:#8d4fa8}
@media(prefers-color-scheme:dark){:root{--bg:#15181d;--fg:#e6e9ee;--dim:#9aa3b0;--line:#333a44;--c0:#5b9be6;--c1:#ec8a4b;--c2:#77808f;--c3:#5fbf86;--c4:#bb82d6}}
svg{font:11px system-ui,sans-serif}svg text{fill:var(--dim)}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}
.axis{stroke:var(--line)}.peak{stroke:var(--fg);stroke-dasharray:3 3;fill:none}
.mark{stroke:var(--bg);stroke-width:.5}.mark:hover,.mark:focus{stroke:var(--fg);stroke-width:1.5;outline:none}
)";

static const char *const pageStyle = R"(
body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;max-width:1060px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em;margin:0}h2{font-size:1.15em;margin:2em 0 .3em}p{margin:.3em 0;color:var(--dim)}svg{width:100%;height:auto}
table{border-collapse:collapse;width:100%;font-size:13px}td,th{padding:.2em .6em;text-align:left;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.key span{display:inline-block;width:1em;height:1em;margin:0 .3em 0 1em;vertical-align:-.15em}
)";
namespace {

/// Draws one entry.
class Picture {
public:
  Picture(const Entry &entry, uint64_t arenaBytes, unsigned number, llvm::raw_ostream &os)
      : entry(entry), arenaBytes(arenaBytes), number(number), os(os),
        count(std::max<size_t>(entry.instructions.size(), 1)) {}

  /// `alone`: the picture is a file of its own and brings its colours and a legend.
  void waterline(bool alone = false);
  void addresses();
  void table();

private:
  void open(llvm::StringRef label, uint64_t top);
  double x(double instruction) const { return left + instruction * (width - left) / count; }
  double y(double bytes, uint64_t top) const {
    return (height - bottom) * (1 - bytes / double(std::max<uint64_t>(top, 1))) + 4;
  }
  auto f(double value) const { return llvm::format("%.1f", value); }
  void title(const Tensor &tensor) {
    os << "<title>" << escape(tensor.maker) << (tensor.place.empty() ? "" : " · ") << escape(tensor.place) << "\n"
       << getName(tensor.component) << ", " << formatBytes(tensor.bytes) << " at " << tensor.offset << "\nborn at "
       << tensor.begin << ", dies after " << tensor.end - 1 << "</title>";
  }

  const Entry &entry;
  uint64_t arenaBytes;
  unsigned number;
  llvm::raw_ostream &os;
  double count;
};

} // namespace

void Picture::open(llvm::StringRef label, uint64_t top) {
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width + 10 << " " << height + 10
     << "\" role=\"img\" aria-label=\"" << label << " of " << escape(entry.name) << "\">\n<defs>";
  // Hue is not the only sign: every component has a pattern of lines too.
  const char *const lines[] = {"", "M0 8L8 0", "M0 4H8", "M4 0V8", "M0 0L8 8M0 8L8 0"};
  for (unsigned c = 0; c < numComponents; ++c)
    os << "<pattern id=\"p" << number << label.front() << c
       << "\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\" class=\"c" << c
       << "\"/><path d=\"" << lines[c] << "\" stroke=\"#fff\" stroke-opacity=\".45\" fill=\"none\"/></pattern>";
  os << "</defs>\n";
  for (unsigned i = 0; i <= 4; ++i) {
    double at = y(top * i / 4.0, top);
    os << "<line class=\"axis\" x1=\"" << left << "\" x2=\"" << width << "\" y1=\"" << f(at) << "\" y2=\"" << f(at)
       << "\"/><text x=\"" << left - 6 << "\" y=\"" << f(at + 4) << "\" text-anchor=\"end\">"
       << formatBytes(top / 4 * i) << "</text>\n";
  }
  os << "<text x=\"" << left << "\" y=\"" << height - 4 << "\">instruction 0</text><text x=\"" << width << "\" y=\""
     << height - 4 << "\" text-anchor=\"end\">" << entry.instructions.size() << "</text>\n";
}

void Picture::waterline(bool alone) {
  open("waterline", entry.peakBytes);
  if (alone) {
    os << "<style>" << pictureStyle << "</style>\n";
    for (unsigned c = 0; c < numComponents; ++c)
      os << "<rect class=\"c" << c << "\" x=\"" << width - 150 << "\" y=\"" << 28 + 16 * c
         << "\" width=\"10\" height=\"10\"/><text x=\"" << width - 135 << "\" y=\"" << 37 + 16 * c << "\">"
         << getName(Component(c)) << "</text>\n";
  }
  for (int c = numComponents - 1; c >= 0; --c) {
    // The band from zero to the sum of components 0 … c; later bands cover its lower part.
    std::string path;
    llvm::raw_string_ostream points(path);
    points << "M" << f(x(0)) << " " << f(y(0, entry.peakBytes));
    bool any = false;
    for (auto [i, live] : llvm::enumerate(entry.live)) {
      uint64_t sum = 0;
      for (int k = 0; k <= c; ++k)
        sum += live[k];
      any |= live[c] != 0;
      points << "L" << f(x(i)) << " " << f(y(sum, entry.peakBytes)) << "H" << f(x(i + 1));
    }
    points << "V" << f(y(0, entry.peakBytes)) << "Z";
    if (any)
      os << "<path class=\"mark\" tabindex=\"0\" fill=\"url(#p" << number << "w" << c << ")\" d=\"" << path
         << "\"><title>" << getName(Component(c)) << "</title></path>\n";
  }
  double at = x(entry.peakAt + 0.5);
  bool right = at > width / 2;
  os << "<line class=\"peak\" x1=\"" << f(at) << "\" x2=\"" << f(at) << "\" y1=\"4\" y2=\"" << height - bottom
     << "\"/><text x=\"" << f(at + (right ? -6 : 6)) << "\" y=\"16\" text-anchor=\"" << (right ? "end" : "start")
     << "\">peak " << formatBytes(entry.peakBytes) << " at "
     << (entry.instructions.empty() ? std::string() : escape(entry.instructions[entry.peakAt])) << "</text>\n</svg>\n";
}

void Picture::addresses() {
  open("addresses", arenaBytes);
  std::vector<const Tensor *> marks;
  for (const Tensor &tensor : entry.tensors)
    if (tensor.bytes)
      marks.push_back(&tensor);
  auto area = [](const Tensor *t) { return double(t->bytes) * (t->end - t->begin); };
  llvm::stable_sort(marks, [&](const Tensor *a, const Tensor *b) { return area(a) > area(b); });
  size_t hidden = marks.size() > maxMarks ? marks.size() - maxMarks : 0;
  marks.resize(marks.size() - hidden);
  for (const Tensor *tensor : marks) {
    double top = y(tensor->offset + tensor->bytes, arenaBytes);
    os << "<rect class=\"mark\" tabindex=\"0\" fill=\"url(#p" << number << "a" << unsigned(tensor->component)
       << ")\" x=\"" << f(x(tensor->begin)) << "\" y=\"" << f(top) << "\" width=\""
       << f(x(tensor->end) - x(tensor->begin)) << "\" height=\"" << f(y(tensor->offset, arenaBytes) - top) << "\">";
    title(*tensor);
    os << "</rect>\n";
  }
  os << "</svg>\n";
  if (hidden)
    os << "<p>" << hidden << " smaller ones are not drawn; the data below has them.</p>\n";
}

void Picture::table() {
  std::vector<const Tensor *> alive;
  for (const Tensor &tensor : entry.tensors)
    if (tensor.begin <= entry.peakAt && entry.peakAt < tensor.end)
      alive.push_back(&tensor);
  llvm::stable_sort(alive, [](const Tensor *a, const Tensor *b) { return a->bytes > b->bytes; });
  os << "<p>Alive at the peak: " << alive.size() << " tensors"
     << (alive.size() > 20 ? ", the 20 largest of them:" : ":") << "</p>\n<table><tr><th class=\"n\">bytes</th>"
     << "<th>what</th><th>made by</th><th>place in the model</th><th class=\"n\">lives</th></tr>\n";
  for (const Tensor *tensor : llvm::ArrayRef(alive).take_front(20))
    os << "<tr><td class=\"n\">" << formatBytes(tensor->bytes) << "</td><td>" << getName(tensor->component)
       << "</td><td>" << escape(tensor->maker) << "</td><td>" << escape(tensor->place) << "</td><td class=\"n\">"
       << tensor->begin << "–" << tensor->end - 1 << "</td></tr>\n";
  os << "</table>\n";
}

void report::printJson(const Report &report, llvm::raw_ostream &os) {
  llvm::json::OStream json(os);
  // Names come from files; JSON wants UTF-8.
  auto text = [](llvm::StringRef from) { return llvm::json::isUTF8(from) ? from.str() : llvm::json::fixUTF8(from); };
  json.object([&] {
    json.attribute("title", text(report.title));
    json.attribute("target", text(report.target));
    json.attribute("params_bytes", int64_t(report.paramsBytes));
    json.attribute("state_bytes", int64_t(report.stateBytes));
    json.attribute("io_bytes", int64_t(report.ioBytes));
    json.attribute("transient_bytes", int64_t(report.transientBytes));
    json.attributeArray("entries", [&] {
      for (const Entry &entry : report.entries)
        json.object([&] {
          json.attribute("name", text(entry.name));
          json.attribute("batch", entry.batch);
          json.attribute("flops", int64_t(entry.flops));
          json.attribute("peak_bytes", int64_t(entry.peakBytes));
          json.attribute("peak_at", int64_t(entry.peakAt));
          json.attributeArray("instructions", [&] {
            for (const std::string &instruction : entry.instructions)
              json.value(text(instruction));
          });
          json.attributeArray("tensors", [&] {
            for (const Tensor &tensor : entry.tensors)
              json.object([&] {
                json.attribute("offset", int64_t(tensor.offset));
                json.attribute("bytes", int64_t(tensor.bytes));
                json.attribute("begin", int64_t(tensor.begin));
                json.attribute("end", int64_t(tensor.end));
                json.attribute("component", getName(tensor.component));
              });
          });
        });
    });
  });
}

void report::printHtml(const Report &report, llvm::raw_ostream &os) {
  uint64_t sum = report.paramsBytes + report.stateBytes + report.ioBytes + report.transientBytes;
  os << "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" << escape(report.title)
     << "</title><style>" << pictureStyle << pageStyle << "</style></head><body>\n<h1>" << escape(report.title)
     << "</h1>\n<p>" << escape(report.target) << " · " << formatBytes(sum) << " allocated: parameters "
     << formatBytes(report.paramsBytes) << ", optimizer state " << formatBytes(report.stateBytes)
     << ", input and output " << formatBytes(report.ioBytes) << ", transient " << formatBytes(report.transientBytes)
     << "</p>\n<p class=\"key\">";
  for (unsigned c = 0; c < numComponents; ++c)
    os << "<span style=\"background:var(--c" << c << ")\"></span>" << getName(Component(c));
  os << "</p>\n";
  for (auto [i, entry] : llvm::enumerate(report.entries)) {
    Picture picture(entry, report.transientBytes, i, os);
    os << "<h2>" << escape(entry.name) << ": waterline</h2>\n<p>" << entry.instructions.size() << " instructions, "
       << entry.tensors.size() << " tensors, " << llvm::format("%.3g", double(entry.flops)) << " FLOPs, batch "
       << entry.batch << "</p>\n";
    picture.waterline();
    os << "<h2>" << escape(entry.name) << ": addresses</h2>\n<p>Each rectangle is a tensor: when it lives, and where. "
       << "This is the plan.</p>\n";
    picture.addresses();
    picture.table();
  }
  std::string json;
  llvm::raw_string_ostream jsonStream(json);
  printJson(report, jsonStream);
  // `</script>` inside a name must not end the element.
  os << "<script type=\"application/json\" id=\"data\">";
  for (char c : json) {
    if (c == '<')
      os << "\\u003c";
    else
      os << c;
  }
  os << "</script>\n</body></html>\n";
}

void report::printSvg(const Report &report, llvm::raw_ostream &os) {
  auto train = llvm::find_if(report.entries, [](const Entry &entry) { return entry.name == "train"; });
  if (train == report.entries.end())
    train = report.entries.begin();
  if (train != report.entries.end())
    Picture(*train, report.transientBytes, 0, os).waterline(/*alone=*/true);
}

rt::Status report::writeReport(const std::string &input, const std::string &output, llvm::StringRef format) {
  if (format != "html" && format != "json" && format != "svg")
    return {rt::StatusCode::Usage, "report format '" + format.str() + "' is unknown: html, svg or json"};
  auto artifact = rt::Artifact::open(input);
  if (!artifact)
    return artifact.takeStatus();
  std::error_code error;
  llvm::raw_fd_ostream os(output, error, llvm::sys::fs::OF_Text);
  if (error)
    return rt::ioError(error.message(), output);
  Report report = buildReport((*artifact)->plan(), llvm::StringRef(input).rsplit('/').second.empty()
                                                       ? llvm::StringRef(input)
                                                       : llvm::StringRef(input).rsplit('/').second);
  if (format == "html")
    printHtml(report, os);
  else if (format == "svg")
    printSvg(report, os);
  else
    printJson(report, os);
  os.close();
  if (os.has_error()) {
    std::string message = os.error().message();
    os.clear_error();
    return rt::ioError(message, output);
  }
  return rt::Status::ok();
}
