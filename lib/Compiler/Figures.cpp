//===- Figures.cpp - what a step takes, in numbers --------------*- C++ -*-===//
//
// Read off the plan, as reports read it; of a step that was fitted and not planned, what runs again.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Compiler/Figures.h"
#include "Compilation.h"
#include "StepNotes.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Serialize/PlanProto.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowtide;
namespace json = llvm::json;

const EntryFigures *Figures::findMainEntry() const {
  for (const EntryFigures &entry : entries)
    if (entry.name == "train")
      return &entry;
  return entries.empty() ? nullptr : &entries.front();
}

static json::Value toJson(const EntryFigures &entry) {
  json::Object parts;
  for (const auto &[name, bytes] : entry.peakParts)
    parts[name] = bytes;
  return json::Object{
      {"name", json::fixUTF8(entry.name)},
      {"batch", entry.batch},
      {"instructions", entry.instructions},
      {"arena_bytes", entry.arenaBytes},
      {"live_bytes", entry.liveBytes},
      {"peak_bytes", entry.peakBytes},
      {"peak_at", entry.peakAt},
      {"peak_label", json::fixUTF8(entry.peakLabel)},
      {"peak_parts", std::move(parts)},
      {"unfitted_peak_bytes", entry.unfittedPeakBytes ? json::Value(*entry.unfittedPeakBytes) : json::Value(nullptr)},
      {"recomputed", entry.recomputed},
      {"seconds", entry.seconds},
      {"recomputed_seconds", entry.recomputedSeconds},
      {"flops", entry.flops}};
}

std::string Figures::toJson(const Failure &failure) const {
  json::Array all, said;
  for (const EntryFigures &entry : entries)
    all.push_back(::toJson(entry));
  for (const RemarkFigures &remark : remarks) {
    json::Object object{{"area", remark.area}};
    for (const auto &[name, value] : remark.figures)
      object[name] = value;
    said.push_back(std::move(object));
  }
  json::Object object{{"target", target},
                      {"bytes", bytes},
                      {"parameter_bytes", parameterBytes},
                      {"state_bytes", stateBytes},
                      {"batch_bytes", batchBytes},
                      {"transient_bytes", transientBytes},
                      {"exchange_bytes", exchangeBytes},
                      {"host_bytes", hostBytes},
                      {"file_bytes", fileBytes},
                      {"budget_bytes", budgetBytes},
                      {"stored", stored.isEmpty() ? json::Value(nullptr) : json::Value(stored.toJson())},
                      {"entries", std::move(all)},
                      {"remarks", std::move(said)},
                      {"refusal", nullptr},
                      {"failure", nullptr}};
  if (failure)
    object["failure"] = json::Object{{"kind", getName(failure.kind)}, {"message", json::fixUTF8(failure.message)}};
  if (refusal)
    object["refusal"] = json::Object{{"budget_bytes", refusal->budgetBytes},
                                     {"smallest_bytes", refusal->smallestBytes},
                                     {"least_bytes", refusal->leastBytes},
                                     {"largest_bytes", refusal->largestBytes},
                                     {"advice", json::Array(refusal->advice)}};
  return llvm::formatv("{0:2}", json::Value(std::move(object))).str();
}

/// Bytes up to the end of an entry's last buffer, and the most that its buffers take at once.
static void measureArena(const report::Entry &entry, uint64_t alignment, EntryFigures &figures) {
  std::vector<uint64_t> live(entry.instructions.size());
  for (const report::Tensor &tensor : entry.tensors) {
    const uint64_t bytes = llvm::alignTo(tensor.bytes, alignment);
    figures.arenaBytes = std::max(figures.arenaBytes, tensor.offset + bytes);
    for (size_t i = tensor.begin; i < std::min<size_t>(tensor.end, live.size()); ++i)
      figures.liveBytes = std::max(figures.liveBytes, live[i] += bytes);
  }
}

static EntryFigures convert(const report::Entry &entry, uint64_t alignment) {
  EntryFigures figures;
  figures.name = entry.name;
  figures.batch = entry.batch;
  figures.instructions = entry.instructions.size();
  measureArena(entry, alignment, figures);
  figures.peakBytes = entry.peakBytes;
  figures.peakAt = entry.peakAt;
  if (entry.peakAt < entry.instructions.size()) {
    figures.peakLabel = entry.instructions[entry.peakAt].label;
    for (unsigned c = 0; c < numTransientComponents; ++c)
      if (uint64_t bytes = entry.live[entry.peakAt][c])
        figures.peakParts.emplace_back(getName(MemoryComponent(c)).str(), bytes);
  }
  if (entry.before)
    figures.unfittedPeakBytes = entry.before->peakBytes;
  figures.recomputed = llvm::count_if(entry.instructions, [](const auto &each) { return each.recomputed; });
  figures.seconds = entry.getSeconds();
  figures.recomputedSeconds = entry.getRecomputedSeconds();
  figures.flops = entry.flops;
  return figures;
}

Figures Compilation::findFigures() {
  Figures figures;
  figures.target = target.getArtifactTarget();
  for (const Message &message : diagnostics.getMessages())
    if (!message.figures.empty())
      figures.remarks.push_back({message.area, message.figures});
  if (!module)
    return figures;
  figures.refusal = getRefusedBudget(*module);
  figures.stored = countStored();
  if (auto budget = (*module)->getAttrOfType<IntegerAttr>(deviceBudgetAttrName))
    figures.budgetBytes = budget.getValue().getZExtValue();
  for (auto step : module->getOps<func::FuncOp>()) {
    if (!isFitted || step == model)
      continue;
    EntryFigures &entry = figures.entries.emplace_back();
    entry.name = step.getSymName().str();
    step.walk([&](Operation *op) { entry.recomputed += op->hasAttr(recomputedAttrName); });
  }
  auto plans = module->getOps<plan::ModuleOp>();
  plan::Plan proto;
  if (plans.empty() || failed(exportPlan(*plans.begin(), proto)))
    return figures;
  const report::Report report = report::buildReport(proto, report::writeNotes(noteProgram(*module)), "");
  uint64_t alignment = 1;
  for (const plan::Arena &arena : proto.arenas())
    if (arena.role() == plan::Arena::TRANSIENT)
      alignment = std::max<uint64_t>(1, arena.alignment());
  figures.target = report.target;
  figures.bytes = report.getBytes();
  figures.parameterBytes = report.statics.parameters;
  figures.stateBytes = report.statics.state;
  figures.batchBytes = report.statics.batch;
  figures.transientBytes = report.transientBytes;
  figures.exchangeBytes = report.statics.exchange;
  figures.hostBytes = report.hostBytes;
  figures.fileBytes = report.fileBytes;
  figures.budgetBytes = report.deviceBudget;
  figures.stored = report.stored;
  figures.entries.clear();
  for (const report::Entry &entry : report.entries)
    figures.entries.push_back(convert(entry, alignment));
  return figures;
}

std::vector<std::string> Compilation::listEntries() const {
  std::vector<std::string> names;
  ModuleOp made = module.get();
  if (!made)
    return names;
  for (auto step : made.getOps<func::FuncOp>())
    names.push_back(step.getSymName().str());
  for (auto plan : made.getOps<plan::ModuleOp>())
    for (auto program : plan.getBlock().getOps<plan::ProgramOp>())
      names.push_back(program.getSymName().str());
  return names;
}
