//===- ProofReport.cpp - a comparison in words ------------------------------===//

#include "ProofReport.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace lowtide;
using namespace lowtide::verify;

namespace {

std::string number(double value) {
  if (std::isnan(value))
    return "-";
  char text[32];
  std::snprintf(text, sizeof text, value == 0 ? "0" : "%.2e", value);
  return text;
}

/// Characters, not bytes.
size_t width(const std::string &text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string &text, size_t to) {
  return text + std::string(to > width(text) ? to - width(text) : 0, ' ');
}

std::string tableOf(const std::vector<Row> &rows, const std::string &title, const std::string &first) {
  if (rows.empty())
    return {};
  size_t name = first.size();
  for (const Row &row : rows)
    name = std::max(name, width(rt::printable(row.name)));
  std::string text = title + "\n  " + padded(first, name) + "  largest   difference  verdict\n";
  for (const Row &row : rows)
    text += "  " + padded(rt::printable(row.name), name) + "  " + padded(number(row.largest), 8) + "  " +
            padded(number(row.difference), 10) + "  " + verdictText(row.verdict) +
            (row.detail.empty() ? "" : ": " + row.detail) + "\n";
  return text + "\n";
}

size_t countBad(const std::vector<Row> &rows) {
  return static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [](const Row &row) { return !isGood(row.verdict); }));
}

/// "6 gradients", "2 of 6 gradients".
std::string counted(size_t bad, size_t all, const char *what) {
  const std::string some = std::to_string(all) + " " + what +
                           (all == 1                           ? ""
                            : what[0] == 'l' && what[3] == 's' ? "es"
                                                               : "s");
  return bad && bad < all ? std::to_string(bad) + " of " + some : some;
}

std::string summaryOf(const Comparison &comparison) {
  const std::pair<const std::vector<Row> *, const char *> parts[] = {
      {&comparison.gradients, "gradient"}, {&comparison.buffers, "buffer"}, {&comparison.losses, "loss"}};
  const bool agrees = comparison.agrees();
  std::string text;
  for (auto [rows, what] : parts)
    if (const size_t bad = countBad(*rows); agrees ? !rows->empty() : bad > 0)
      text += (text.empty() ? "" : ", ") + counted(bad, rows->size(), what);
  if (!comparison.starts.empty())
    text += (text.empty() ? "" : ", ") + counted(0, comparison.starts.size(), "first value");
  return (agrees ? "everything agrees: " : "differs: ") + text + "\n";
}

/// "'a', 'b' and 3 more" of the rows with a verdict; empty: there are none.
std::string listOf(const std::vector<Row> &rows, Verdict verdict, const char *quote, size_t shown) {
  std::string text;
  size_t count = 0;
  for (const Row &row : rows)
    if (row.verdict == verdict && ++count <= shown)
      text += (text.empty() ? "" : ",") + std::string(quote) + rt::printable(row.name) + quote;
  return count > shown ? text + " and " + std::to_string(count - shown) + " more" : text;
}

nlohmann::json jsonOf(const std::vector<Row> &rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row &row : rows) {
    nlohmann::json item = {{"name", rt::printable(row.name)}, {"verdict", verdictText(row.verdict)}};
    // JSON has no NaN.
    item["difference"] = std::isfinite(row.difference) ? nlohmann::json(row.difference) : nullptr;
    item["largest"] = std::isfinite(row.largest) ? nlohmann::json(row.largest) : nullptr;
    if (!row.detail.empty())
      item["detail"] = row.detail;
    list.push_back(std::move(item));
  }
  return list;
}

} // namespace

const Row *ProofReport::firstOutput() const {
  if (!outputs)
    return nullptr;
  auto found =
      std::find_if(outputs->begin(), outputs->end(), [](const Row &row) { return row.verdict == Verdict::Differs; });
  return found == outputs->end() ? nullptr : &*found;
}

std::string verify::writeTable(const ProofReport &report) {
  const Comparison &comparison = report.comparison;
  std::string text = report.model + " against " + report.against +
                     (comparison.producer.empty() ? "" : " (" + rt::printable(comparison.producer) + ")") +
                     ": f64, dropout off, " + report.updates + ", tolerance " + number(report.tolerance) + "\n\n";
  text += tableOf(comparison.starts, "first values that the model file has otherwise", "tensor");
  text += tableOf(comparison.gradients, "gradients of step 0", "parameter");
  text += tableOf(comparison.buffers, "buffers after one step", "buffer");
  text += tableOf(comparison.losses, "losses, all on one batch", "step");
  if (report.outputs) {
    const Row *first = report.firstOutput();
    text += "first module whose output differs: " +
            (first ? "'" + rt::printable(first->name) + "', by " + number(first->difference) +
                         " where its largest entry is " + number(first->largest)
             : countBad(*report.outputs) == report.outputs->size() ? "unknown, the file does not name its modules"
                                                                   : "none of those that the file names") +
            "\n";
  }
  return text + summaryOf(comparison);
}

std::vector<std::string> verify::adviseOn(const ProofReport &report) {
  const Comparison &comparison = report.comparison;
  std::vector<std::string> advice;
  if (comparison.agrees())
    return advice;
  if (!comparison.starts.empty())
    advice.push_back(
        "the model file begins with other values than the record; the comparison started from the record's. "
        "If the module is made anew, seed it as before the export: torch.manual_seed(0) in the function");
  const std::string untrained = listOf(comparison.gradients, Verdict::NotTrained, "", 8);
  if (!untrained.empty())
    advice.push_back("train it: --params='+" + untrained + "'");
  const std::string further = listOf(comparison.gradients, Verdict::NotRecorded, "", 8);
  if (!further.empty())
    advice.push_back("if the module does not train it: --frozen='" + further + "'");
  const std::string missing = listOf(comparison.gradients, Verdict::Missing, "'", 4);
  if (!missing.empty() && !further.empty())
    advice.push_back("if " + missing +
                     " goes by another name in the file: --rename=NAME_IN_FILE=NAME ('lowtide check' lists them)");
  const std::string lost = listOf(comparison.buffers, Verdict::Missing, "'", 4);
  if (!missing.empty() || !lost.empty())
    advice.push_back("export again so that " + (missing.empty() ? lost : missing) +
                     " stays in the file: torch.onnx.export(..., dynamo=True, optimize=False)");
  std::string absent;
  for (const std::vector<Row> *rows : {&comparison.gradients, &comparison.buffers})
    for (const Row &row : *rows)
      if (row.verdict == Verdict::Unused && row.detail == absentText && !row.name.ends_with("num_batches_tracked"))
        absent += (absent.empty() ? "'" : ", '") + rt::printable(row.name) + "'";
  if (!absent.empty() && countBad(comparison.losses))
    advice.push_back("the file does not hold " + absent +
                     ": if the module reads it without a gradient, export again with "
                     "optimize=False");
  const bool differs = std::any_of(comparison.gradients.begin(), comparison.gradients.end(),
                                   [](const Row &row) { return row.verdict == Verdict::Differs; });
  const bool forward = !isGood(comparison.losses.front().verdict);
  if (forward)
    advice.push_back(
        "the first loss differs, so the forward pass does. If 'lowtide compile' warns, do as it says; else "
        "export again with optimize=False from module.train(); --mode=as-is keeps batch norms as the file has "
        "them; and the batch and --loss must be the record's");
  else if (differs)
    advice.push_back(
        "the loss agrees and gradients do not: what the file lost (a detach, a tie, a custom backward) shows in "
        "no forward value; export again with optimize=False, or keep these parameters out with --frozen");
  else if (missing.empty() && untrained.empty() && further.empty() && countBad(comparison.losses))
    advice.push_back(
        "gradients agree and later losses do not: a buffer that the step should assign, or other updates; the "
        "optimizer's flags must be the record's");
  else if (!countBad(comparison.losses) && lost.empty() && countBad(comparison.buffers))
    advice.push_back("buffers alone differ. A file that states batch norms in training form, as PyTorch's old exporter "
                     "does, keeps the biased variance, which ONNX says, and PyTorch the unbiased one: export with "
                     "dynamo=True");
  return advice;
}

std::string verify::writeJson(const ProofReport &report) {
  const Comparison &comparison = report.comparison;
  nlohmann::json json = {{"model", rt::printable(report.model)},
                         {"against", rt::printable(report.against)},
                         {"agrees", comparison.agrees()},
                         {"tolerance", report.tolerance},
                         {"updates", report.updates},
                         {"gradients", jsonOf(comparison.gradients)},
                         {"first_values", jsonOf(comparison.starts)},
                         {"buffers", jsonOf(comparison.buffers)},
                         {"losses", jsonOf(comparison.losses)},
                         {"advice", adviseOn(report)}};
  if (report.outputs) {
    json["outputs"] = jsonOf(*report.outputs);
    const Row *first = report.firstOutput();
    json["first_output"] = first ? nlohmann::json(rt::printable(first->name)) : nullptr;
  }
  return json.dump(1) + "\n";
}
