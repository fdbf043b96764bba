//===- ReportHtml.cpp - a report as a page, as data, as a file ------------===//
//
// One offline HTML file with pictures, a table and the data as JSON.
//
//===----------------------------------------------------------------------===//
#include "ReportPicture.h"
#include "lowtide/Support/StableSort.h"
#include "runtime/checkpoint/OutputFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/ToolOutputFile.h"

#include <cmath>

using namespace lowtide;
using namespace lowtide::report;

static constexpr llvm::StringLiteral pageRules = R"(
body{background:{bg};color:{fg};font:15px/1.5 system-ui,sans-serif;max-width:1060px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em;margin:0}h2{font-size:1.15em;margin:2em 0 .3em}p{margin:.3em 0;color:{dim}}svg{width:100%;height:auto}
.wide{overflow-x:auto}@media(max-width:600px){body{padding:0 .5em}.wide svg,.wide table{min-width:600px}}
table{border-collapse:collapse;width:100%;font-size:13px}td,th{padding:.2em .6em;text-align:left;border-bottom:1px solid {line}}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.key span{display:inline-block;width:1em;height:1em;margin:0 .3em 0 1em;vertical-align:-.15em}
)";

static void printPeakTable(const Entry &entry, llvm::raw_ostream &os) {
  std::vector<const Tensor *> alive;
  for (const Tensor &tensor : entry.tensors)
    if (tensor.begin <= entry.peakAt && entry.peakAt < tensor.end)
      alive.push_back(&tensor);
  sortStably(alive, [](const Tensor *a, const Tensor *b) { return a->bytes > b->bytes; });
  os << "<p>Alive at the peak: " << alive.size() << " tensors"
     << (alive.size() > 20 ? ", the 20 largest of them:" : ":")
     << "</p>\n<div class=\"wide\"><table><tr><th class=\"n\">bytes</th>"
     << "<th>what</th><th>made by</th><th>place in the model</th><th class=\"n\">lives</th></tr>\n";
  for (const Tensor *tensor : llvm::ArrayRef(alive).take_front(20))
    os << "<tr><td class=\"n\">" << formatBytes(tensor->bytes) << "</td><td>" << getName(tensor->component)
       << "</td><td>" << escape(tensor->maker) << "</td><td>" << escape(tensor->place) << "</td><td class=\"n\">"
       << tensor->begin << "–" << tensor->end - 1 << "</td></tr>\n";
  os << "</table></div>\n";
}

/// Other memories and the way there, where anything goes it.
static void printMemories(const Entry &entry, Picture &picture, llvm::raw_ostream &os) {
  for (const SpaceBytes &memory : entry.memories) {
    os << "<h2>" << escape(entry.name) << ": memory " << escape(memory.space) << "</h2>\n<p>"
       << formatBytes(memory.lastingBytes)
       << " lie there from step to step; values wait there from their store to their "
       << "last load.</p>\n<div class=\"wide\">";
    picture.otherMemory(memory);
    os << "</div>\n";
  }
  if (entry.memories.empty())
    return;
  os << "<h2>" << escape(entry.name)
     << ": lanes</h2>\n<p>Copies run while others compute; where nothing computes, they "
     << "are exposed: " << llvm::format("%.1f", 1e6 * entry.getExposedSeconds()) << " of "
     << llvm::format("%.1f", 1e6 * entry.getSeconds()) << " µs, estimated.</p>\n<div class=\"wide\">";
  picture.lanes();
  os << "</div>\n";
}

void report::printJson(const Report &report, llvm::raw_ostream &os) {
  llvm::json::OStream json(os);
  // Names come from files; JSON wants UTF-8.
  auto text = [](llvm::StringRef from) { return llvm::json::isUTF8(from) ? from.str() : llvm::json::fixUTF8(from); };
  auto printEntry = [&](const Entry &entry) {
    json.attribute("name", text(entry.name));
    json.attribute("batch", entry.batch);
    json.attribute("flops", int64_t(entry.flops));
    json.attribute("seconds", entry.getSeconds());
    json.attribute("recomputed_seconds", entry.getRecomputedSeconds());
    json.attribute("peak_bytes", int64_t(entry.peakBytes));
    json.attribute("peak_at", int64_t(entry.peakAt));
    if (entry.before)
      json.attribute("peak_bytes_before", int64_t(entry.before->peakBytes));
    json.attributeArray("instructions", [&] {
      for (const Instruction &instruction : entry.instructions)
        json.value(text(instruction.label));
    });
    json.attributeArray("recomputed", [&] {
      for (auto [i, instruction] : llvm::enumerate(entry.instructions))
        if (instruction.recomputed)
          json.value(int64_t(i));
    });
    if (!entry.memories.empty()) {
      json.attribute("exposed_seconds", entry.getExposedSeconds());
      json.attributeArray("moves", [&] {
        for (const Move &move : entry.moves)
          json.object([&] {
            json.attribute("instruction", int64_t(move.instruction));
            json.attribute("direction", move.isStore ? "store" : "load");
            json.attribute("space", move.space);
            json.attribute("bytes", int64_t(move.bytes));
            if (!move.binding.empty())
              json.attribute("binding", text(move.binding));
          });
      });
      json.attributeArray("memories", [&] {
        for (const SpaceBytes &memory : entry.memories)
          json.object([&] {
            json.attribute("space", memory.space);
            json.attribute("bytes", int64_t(memory.bytes));
            json.attribute("lasting_bytes", int64_t(memory.lastingBytes));
            json.attributeArray("waiting_bytes", [&] {
              for (uint64_t bytes : memory.waiting)
                json.value(int64_t(bytes));
            });
          });
      });
    }
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
  };
  json.object([&] {
    json.attribute("title", text(report.title));
    json.attribute("target", text(report.target));
    json.attribute("machines", text(report.machines));
    if (!report.plannedFor.empty())
      json.attribute("planned_for", text(report.plannedFor));
    json.attribute("params_bytes", int64_t(report.statics.parameters));
    json.attribute("state_bytes", int64_t(report.statics.state));
    json.attribute("io_bytes", int64_t(report.statics.batch));
    json.attribute("exchange_bytes", int64_t(report.statics.exchange));
    json.attribute("transient_bytes", int64_t(report.transientBytes));
    json.attribute("host_bytes", int64_t(report.hostBytes));
    json.attribute("file_bytes", int64_t(report.fileBytes));
    if (report.deviceBudget)
      json.attribute("device_budget", int64_t(report.deviceBudget));
    if (!report.stored.isEmpty())
      json.attribute("stored", report.stored.toJson());
    json.attributeArray("entries", [&] {
      for (const Entry &entry : report.entries)
        json.object([&] { printEntry(entry); });
    });
    if (report.run)
      json.attributeArray("run", [&] {
        for (const RunStep &step : report.run->steps)
          json.object([&] {
            json.attribute("step", step.step);
            json.attribute("loss", std::isfinite(step.loss) ? llvm::json::Value(step.loss) : nullptr);
            json.attribute("milliseconds", step.milliseconds);
          });
      });
  });
}

/// What batches and metrics of a GPU travel through, or values of a CPU that wait in a file.
static std::string sayExchange(const Report &report) {
  return report.statics.exchange ? (", " + report.getExchangeName() + " ").str() + formatBytes(report.statics.exchange)
                                 : std::string();
}

void report::printHtml(const Report &report, llvm::raw_ostream &os) {
  os << "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
     << "content=\"width=device-width, initial-scale=1\"><title>" << escape(report.title) << "</title><style>"
     << writeStyle(pageRules) << "</style></head><body>\n<h1>" << escape(report.title) << "</h1>\n<p>"
     << escape(report.target) << " · " << formatBytes(report.getBytes()) << " allocated";
  if (report.deviceBudget)
    os << " of a budget of " << formatBytes(report.deviceBudget);
  os << ": parameters " << formatBytes(report.statics.parameters) << ", optimizer state "
     << formatBytes(report.statics.state) << ", input and output " << formatBytes(report.statics.batch)
     << sayExchange(report) << ", transient " << formatBytes(report.transientBytes);
  if (!report.machines.empty())
    os << "; runs on " << escape(report.machines);
  if (!report.plannedFor.empty())
    os << "; planned for " << escape(report.plannedFor);
  os << "</p>\n";
  if (!report.stored.isEmpty()) {
    std::string said;
    llvm::raw_string_ostream lines(said);
    report.stored.print(lines);
    llvm::SmallVector<llvm::StringRef> each;
    llvm::StringRef(said).rtrim().split(each, '\n');
    for (llvm::StringRef line : each)
      os << "<p>" << escape(line) << "</p>\n";
  }
  os << "<p class=\"key\">";
  for (unsigned c = 0; c < numTransientComponents; ++c)
    os << "<span class=\"c" << c << "\"></span>" << getName(MemoryComponent(c));
  os << "</p>\n";
  for (auto [i, entry] : llvm::enumerate(report.entries)) {
    Picture picture(report, entry, i, os);
    if (entry.before) {
      size_t again = llvm::count_if(entry.instructions, [](const Instruction &each) { return each.recomputed; });
      os << "<h2>" << escape(entry.name) << ": before and after</h2>\n<p>The same step without a budget and with it; "
         << again << " instructions run again, not one bit of a result changes.</p>\n";
      os << "<div class=\"wide\">";
      picture.beforeAfter();
      os << "</div>\n";
    }
    os << "<h2>" << escape(entry.name) << ": waterline</h2>\n<p>" << entry.instructions.size() << " instructions, "
       << entry.tensors.size() << " tensors, " << llvm::format("%.3g", double(entry.flops)) << " FLOPs, batch "
       << entry.batch << "</p>\n<div class=\"wide\">";
    picture.waterline();
    os << "</div>\n";
    os << "<h2>" << escape(entry.name) << ": addresses</h2>\n<p>Each rectangle is a tensor: when it lives, and where. "
       << "This is the plan.</p>\n<div class=\"wide\">";
    const size_t hidden = picture.addresses();
    os << "</div>\n";
    if (hidden)
      os << "<p>" << hidden << " smaller ones are not drawn; the data below has them.</p>\n";
    printPeakTable(entry, os);
    printMemories(entry, picture, os);
  }
  if (report.run)
    printRun(report, os);
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
  const Entry *entry = findMainEntry(report);
  if (!entry)
    return;
  Picture picture(report, *entry, 0, os);
  if (entry->before)
    picture.beforeAfter(/*alone=*/true);
  else
    picture.waterline(/*alone=*/true);
}

rt::Status report::writeReport(const std::string &input, const std::string &output, llvm::StringRef format,
                               const std::string &run) {
  using Printer = void (*)(const Report &, llvm::raw_ostream &);
  const Printer printers[] = {printHtml, printSvg, printJson, printChromeTrace, printTorchSnapshot};
  static_assert(std::size(printers) == std::size(reportFormats));
  const auto *found = llvm::find(reportFormats, format);
  if (found == std::end(reportFormats))
    return {rt::StatusCode::Usage,
            "report format '" + format.str() + "' is unknown: html, svg, json, chrome-trace or torch-snapshot"};
  const bool takesProfile = format == "chrome-trace";
  if (!run.empty() && format != "html" && format != "json" && !takesProfile)
    return {rt::StatusCode::Usage, "--run goes with --format=html, json or chrome-trace, not with " + format.str()};
  auto artifact = rt::Artifact::open(input);
  if (!artifact)
    return artifact.takeStatus();
  std::optional<Run> recorded;
  std::optional<Profile> profile;
  if (!run.empty() && takesProfile) {
    rt::Expected<Profile> read = readProfile(run, (*artifact)->planDigest());
    if (!read)
      return read.takeStatus();
    profile = std::move(*read);
  } else if (!run.empty()) {
    rt::Expected<Run> read = readRun(run, (*artifact)->planDigest());
    if (!read)
      return read.takeStatus();
    recorded = std::move(*read);
  }
  llvm::StringRef name = llvm::StringRef(input).rsplit('/').second;
  Report report = buildReport((*artifact)->plan(), (*artifact)->meta(), name.empty() ? llvm::StringRef(input) : name);
  report.run = std::move(recorded);
  report.profile = std::move(profile);
  if (report.profile)
    LOWTIDE_TRY(checkProfile(report));
  if (output != "-")
    LOWTIDE_TRY(rt::checkWritable(output));
  std::error_code error;
  llvm::ToolOutputFile file(output, error, llvm::sys::fs::OF_None); // half a report is removed
  if (error)
    return rt::ioError("cannot create: " + error.message(), output);
  printers[found - std::begin(reportFormats)](report, file.os());
  file.os().flush();
  if (file.os().has_error()) {
    std::string message = file.os().error().message();
    file.os().clear_error();
    return rt::ioError("cannot write: " + message, output);
  }
  file.keep();
  return rt::Status::ok();
}
