//===- ReportRun.cpp - what a run of the artifact recorded ----------------===//
//
// Reads the lines that `lowtide-run --log-jsonl` writes, and draws losses and times of the steps beside the plan.
//
//===----------------------------------------------------------------------===//
#include "ReportPicture.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace lowtide;
using namespace lowtide::report;

static constexpr double height = 160, bottom = 24;
/// Steps drawn at most: of neighbours the one that stands out most.
static constexpr size_t maxPoints = 1000;

rt::Expected<Run> report::readRun(const std::string &path, llvm::StringRef planDigest) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return rt::ioError("cannot read: " + buffer.getError().message(), path);
  // A run that was resumed, perhaps under another plan, and evaluations have headers and lines of their own.
  Run run;
  bool hasHeader = false, isOurs = false, isTraining = false;
  std::string otherPlan;
  llvm::SmallVector<llvm::StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (auto [number, line] : llvm::enumerate(lines)) {
    if (line.trim().empty())
      continue;
    std::string place = path + ":" + std::to_string(number + 1);
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
    const llvm::json::Object *object = value ? value->getAsObject() : nullptr;
    if (!object) {
      llvm::consumeError(value.takeError());
      // A run that was cut short left half a line.
      if (hasHeader && number + 1 == lines.size())
        break;
      return rt::badInput("is no JSON object; expected what lowtide-run --log-jsonl writes", place);
    }
    if (!hasHeader || object->get("lowtide_run")) {
      std::optional<llvm::StringRef> digest = object->getString("plan_sha256");
      if (!object->getInteger("lowtide_run") || !digest)
        return rt::badInput("is not the first line of a run; expected what lowtide-run --log-jsonl writes", place);
      hasHeader = true;
      const bool trains = object->getString("entry") == "train";
      isOurs = *digest == planDigest && (trains || !isTraining);
      if (*digest != planDigest)
        otherPlan = digest->take_front(12).str();
      if (!isOurs)
        continue;
      if (trains && !isTraining)
        run.steps.clear();
      isTraining = trains;
      run.allocatedBytes = uint64_t(object->getInteger("allocated_bytes").value_or(0));
      continue;
    }
    if (!isOurs)
      continue;
    if (object->getObject("eval"))
      continue; // the means of an evaluation
    std::optional<int64_t> step = object->getInteger("step");
    std::optional<double> milliseconds = object->getNumber("step_ms");
    if (!step || !milliseconds)
      return rt::badInput("lacks step or step_ms", place);
    run.steps.push_back({*step, object->getNumber("loss").value_or(NAN), *milliseconds});
  }
  if (run.steps.empty() && !otherPlan.empty())
    return rt::badInput("the run is of another plan (" + otherPlan + "…) than the artifact's (" +
                            planDigest.take_front(12).str() + "…)",
                        path);
  if (run.steps.empty())
    return rt::badInput("holds no step", path);
  return run;
}

double Run::getMedianMilliseconds() const {
  std::vector<double> times;
  for (const RunStep &step : steps)
    times.push_back(step.milliseconds);
  std::nth_element(times.begin(), times.begin() + ptrdiff_t(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// A curve over the steps. What is not finite leaves a gap, and a mark on the lower edge.
static void drawCurve(const Run &run, llvm::StringRef name, llvm::function_ref<double(const RunStep &)> get,
                      llvm::raw_ostream &os) {
  double least = INFINITY, most = -INFINITY;
  for (const RunStep &step : run.steps)
    if (double value = get(step); std::isfinite(value)) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
  if (least > most)
    least = most = 0;
  double range = most > least ? most - least : 1;
  auto f = [](double value) { return llvm::format("%.1f", value); };
  auto x = [&](size_t i) {
    return left + (width - left) * double(i) / double(std::max<size_t>(run.steps.size() - 1, 1));
  };
  auto y = [&](double value) { return (height - bottom) * (1 - (value - least) / range) + 4; };
  auto note = [&](double atX, double atY, const char *anchor, const std::string &text) {
    os << "<text x=\"" << f(atX) << "\" y=\"" << f(atY) << "\" text-anchor=\"" << anchor << "\">" << text
       << "</text>\n";
  };
  auto number = [](double value) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.4g", value);
    return text;
  };
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << f(width + 10) << " " << f(height + 10)
     << "\" role=\"img\" aria-label=\"" << name << " of each step\">\n";
  for (double value : {least, most}) {
    os << "<line class=\"axis\" x1=\"" << f(left) << "\" x2=\"" << f(width) << "\" y1=\"" << f(y(value)) << "\" y2=\""
       << f(y(value)) << "\"/>";
    note(left - 6, y(value) + 4, "end", number(value));
  }
  note(left, height - 4, "start", "step " + std::to_string(run.steps.front().step));
  note(width, height - 4, "end", std::to_string(run.steps.back().step));
  size_t group = (run.steps.size() + maxPoints - 1) / maxPoints;
  std::string path, gaps;
  bool isDown = false;
  for (size_t at = 0; at < run.steps.size(); at += group) {
    size_t chosen = at;
    auto standsOut = [&](size_t i) {
      double value = get(run.steps[i]);
      return std::isfinite(value) ? std::abs(value - (at ? get(run.steps[at - 1]) : value)) : INFINITY;
    };
    for (size_t i = at; i != std::min(at + group, run.steps.size()); ++i)
      if (standsOut(i) > standsOut(chosen))
        chosen = i;
    double value = get(run.steps[chosen]);
    llvm::raw_string_ostream points(path), marks(gaps);
    if (std::isfinite(value))
      points << (isDown ? "L" : "M") << f(x(chosen)) << " " << f(y(value));
    else
      marks << "<path class=\"mark c2\" tabindex=\"0\" d=\"M" << f(x(chosen)) << " " << f(height - bottom)
            << "l4 8h-8Z\"><title>step " << run.steps[chosen].step << ": not finite</title></path>\n";
    isDown = std::isfinite(value);
  }
  // A step alone is a line of no length: round ends show it.
  os << "<path class=\"curve\" tabindex=\"0\" d=\"" << path << (run.steps.size() == 1 ? "h0" : "") << "\"><title>"
     << name << ": " << number(get(run.steps.front())) << " at step " << run.steps.front().step << ", "
     << number(get(run.steps.back())) << " at step " << run.steps.back().step << "</title></path>\n"
     << gaps << "</svg>\n";
}

void report::printRun(const Report &report, llvm::raw_ostream &os) {
  const Run &run = *report.run;
  uint64_t planned = report.getBytes();
  os << "<h2>run: loss</h2>\n<p>" << run.steps.size() << (run.steps.size() == 1 ? " step; " : " steps; ")
     << formatBytes(run.allocatedBytes) << " allocated, "
     << (run.allocatedBytes == planned ? "as planned" : formatBytes(planned) + " planned") << "</p>\n";
  drawCurve(run, "loss", [](const RunStep &step) { return step.loss; }, os);
  os << "<h2>run: milliseconds</h2>\n<p>Half of the steps took at most "
     << llvm::format("%.3g", run.getMedianMilliseconds()) << " ms</p>\n";
  drawCurve(run, "milliseconds", [](const RunStep &step) { return step.milliseconds; }, os);
}
