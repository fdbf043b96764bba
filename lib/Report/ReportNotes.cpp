//===- ReportNotes.cpp - what the compiler tells reports ------------------===//
//
// The `meta` section: what cannot be read off a plan. The file may come from anyone; every field is looked at.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Report/Report.h"
#include "runtime/JsonText.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace lowtide;
using namespace lowtide::report;

const EntryNotes *Notes::find(llvm::StringRef entry) const {
  for (const auto &[name, notes] : entries)
    if (name == entry)
      return &notes;
  return nullptr;
}

std::string report::writeNotes(const Notes &notes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("version", 1);
    json.attribute("device_budget", int64_t(notes.deviceBudget));
    if (const auto &target = notes.plannedFor)
      json.attributeObject("planned_for", [&] {
        json.attribute("name", target->name);
        json.attribute("library_flops", target->costs.libraryFlops);
        json.attribute("kernel_flops", target->costs.kernelFlops);
        json.attribute("memory_bytes_per_second", target->costs.bytesPerSecond);
        json.attribute("launch_seconds", target->costs.launchSeconds);
      });
    json.attributeObject("entries", [&] {
      for (const auto &[name, entry] : notes.entries)
        json.attributeObject(name, [&] {
          json.attributeArray("recomputed", [&] {
            for (unsigned number : entry.recomputed)
              json.value(int64_t(number));
          });
          json.attributeArray("components", [&] {
            for (uint8_t component : entry.components)
              json.value(int64_t(component));
          });
          if (const auto &budgets = entry.plannedBudgets) {
            json.attributeArray("planned_budgets", [&] {
              for (uint64_t number : {budgets->count, budgets->leastBytes, budgets->mostBytes})
                json.value(int64_t(number));
            });
            // Four numbers a flip: whose, decision, its budget, the nearer one.
            json.attributeArray("flips", [&] {
              for (const auto &[number, flips] : entry.flips)
                for (const BudgetFlip &flip : flips)
                  for (uint64_t field : {uint64_t(number), uint64_t(flip.decision), flip.bytes, flip.nearerBytes})
                    json.value(int64_t(field));
            });
          }
          if (!entry.before)
            return;
          json.attributeObject("before", [&] {
            json.attribute("peak_bytes", int64_t(entry.before->peakBytes));
            json.attributeArray("live", [&] {
              for (const LiveBytes &live : entry.before->live)
                for (uint64_t bytes : live)
                  json.value(int64_t(bytes));
            });
          });
        });
    });
  });
  return text;
}

/// Numbers that are not negative; empty if the value is no list of them.
static std::vector<uint64_t> readNumbers(const llvm::json::Array *values) {
  std::vector<uint64_t> numbers;
  if (values)
    for (const llvm::json::Value &value : *values) {
      std::optional<int64_t> number = value.getAsInteger();
      if (!number || *number < 0)
        return {};
      numbers.push_back(uint64_t(*number));
    }
  return numbers;
}

static EntryNotes readEntry(const llvm::json::Object &from) {
  EntryNotes notes;
  for (uint64_t number : readNumbers(from.getArray("recomputed")))
    notes.recomputed.push_back(unsigned(number));
  for (uint64_t component : readNumbers(from.getArray("components")))
    notes.components.push_back(uint8_t(std::min<uint64_t>(component, numMemoryComponents)));
  const std::vector<uint64_t> budgets = readNumbers(from.getArray("planned_budgets"));
  const std::vector<uint64_t> flips = readNumbers(from.getArray("flips"));
  if (budgets.size() == 3)
    notes.plannedBudgets = PlannedBudgets{budgets[0], budgets[1], budgets[2]};
  for (size_t i = 0; i + 4 <= flips.size(); i += 4)
    if (flips[i + 1] < numBudgetDecisions)
      notes.flips[unsigned(flips[i])].push_back({BudgetDecision(flips[i + 1]), flips[i + 2], flips[i + 3]});
  const llvm::json::Object *before = from.getObject("before");
  if (!before)
    return notes;
  std::vector<uint64_t> live = readNumbers(before->getArray("live"));
  Unfitted unfitted;
  unfitted.peakBytes = uint64_t(std::max<int64_t>(before->getInteger("peak_bytes").value_or(0), 0));
  for (size_t i = 0; i + numTransientComponents <= live.size(); i += numTransientComponents)
    std::copy_n(live.begin() + i, numTransientComponents, unfitted.live.emplace_back().begin());
  if (!unfitted.live.empty())
    notes.before = std::move(unfitted);
  return notes;
}

/// Nothing where a figure is missing or none that time can be counted with.
static std::optional<PlannedTarget> readTarget(const llvm::json::Object &from) {
  PlannedTarget target{from.getString("name").value_or("").str(), {}};
  const std::pair<const char *, double &> figures[] = {{"library_flops", target.costs.libraryFlops},
                                                       {"kernel_flops", target.costs.kernelFlops},
                                                       {"memory_bytes_per_second", target.costs.bytesPerSecond},
                                                       {"launch_seconds", target.costs.launchSeconds}};
  for (const auto &[name, figure] : figures) {
    figure = from.getNumber(name).value_or(0);
    if (!std::isfinite(figure) || figure <= 0)
      return std::nullopt;
  }
  return target;
}

Notes report::readNotes(std::string_view meta) {
  Notes notes;
  if (meta.empty() || !rt::checkJsonText(meta).isOk())
    return notes;
  llvm::Expected<llvm::json::Value> json = llvm::json::parse({meta.data(), meta.size()});
  if (!json) {
    llvm::consumeError(json.takeError());
    return notes;
  }
  const llvm::json::Object *root = json->getAsObject();
  if (!root || root->getInteger("version") != 1)
    return notes;
  notes.deviceBudget = uint64_t(std::max<int64_t>(root->getInteger("device_budget").value_or(0), 0));
  if (const llvm::json::Object *target = root->getObject("planned_for"))
    notes.plannedFor = readTarget(*target);
  if (const llvm::json::Object *entries = root->getObject("entries"))
    for (const auto &[name, value] : *entries)
      if (const llvm::json::Object *entry = value.getAsObject())
        notes.entries.emplace_back(name.str(), readEntry(*entry));
  return notes;
}
