//===- FitOffload.cpp - the table of a step with another memory -*- C++ -*-===//
//
// Every line is planned as `lowtide compile` would plan it. The first is of the smallest plan, which the refusal of a
// budget that nothing keeps names.
//
//===----------------------------------------------------------------------===//

#include "FitOffload.h"
#include "Compilation.h"
#include "PlaceChoices.h"
#include "PlanLayout.h"
#include "StepFacts.h"
#include "TrainRematerialize.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/RefusedBudget.h"
#include "lowtide/Solve/Algorithms/LinearProgram.h"
#include "lowtide/Support/ByteUnit.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace lowtide;

namespace {

/// What other strategies do with one place for parameters and optimizer state.
class PlacedStep {
public:
  static FailureOr<PlacedStep> get(OwningOpRef<ModuleOp> module, const TargetInfo &target, const OffloadRoom &room,
                                   std::shared_ptr<solve::SolvedSteps> solved);
  /// The least that a strategy's plans take within a budget of everything; nothing if it has none.
  std::optional<double> find(solve::OffloadStrategy strategy, uint64_t budget) const;

private:
  PlacedStep(OwningOpRef<ModuleOp> module, PosedEntry entry, OffloadRoom room, uint64_t staticBytes)
      : module(std::move(module)), entry(std::make_unique<PosedEntry>(std::move(entry))), room(room),
        staticBytes(staticBytes) {}

  OwningOpRef<ModuleOp> module;
  std::unique_ptr<PosedEntry> entry;
  /// What lies there from step to step leaves this much.
  OffloadRoom room;
  uint64_t staticBytes;
};

} // namespace

FailureOr<PlacedStep> PlacedStep::get(OwningOpRef<ModuleOp> module, const TargetInfo &target, const OffloadRoom &room,
                                      std::shared_ptr<solve::SolvedSteps> solved) {
  auto steps = llvm::to_vector(module->getOps<func::FuncOp>());
  FailureOr<PlanLayout> layout = PlanLayout::compute(steps, target);
  StepFacts facts(*module);
  if (failed(layout) || failed(facts.update(target)) || layout->getBoundBytes(room.memory.space) > room.bytes)
    return failure();
  CostModel costs = CostModel::get(target);
  costs.memories.push_back(room.memory);
  auto train = module->lookupSymbol<func::FuncOp>("train");
  func::FuncOp step = train ? train : steps.front();
  FailureOr<StepProblem> problem = StepProblem::pose(step, facts.getTable(), costs);
  if (failed(problem))
    return failure();
  PlacedStep placed(std::move(module), {step, std::move(*problem), nullptr},
                    {room.memory, room.bytes - layout->getBoundBytes(room.memory.space)},
                    layout->getStaticBytes().sum());
  PosedEntry &entry = *placed.entry;
  entry.solved = &solved->get(entry.problem.getGraph());
  if (!entry.solved->front.isValid())
    return failure();
  entry.spaces = {room.memory.space};
  poseOffloads(entry, target, placed.room, *solved);
  return placed;
}

std::optional<double> PlacedStep::find(solve::OffloadStrategy strategy, uint64_t budget) const {
  const bool stores = strategy != solve::OffloadStrategy::KeepAll && strategy != solve::OffloadStrategy::Recompute;
  const uint64_t taken = staticBytes + (stores ? entry->stagingBytes : entry->leastStagingBytes);
  if (budget < taken)
    return std::nullopt;
  const uint64_t bytes = budget - taken;
  std::optional<solve::PackedPlan> plan;
  if (strategy == solve::OffloadStrategy::KeepAll)
    plan = solve::findPrefetched(entry->solved->graph, entry->solved->front.getLargest(), bytes, getPlanPacking(),
                                 INFINITY);
  else if (strategy == solve::OffloadStrategy::Recompute)
    plan = solve::findFastestLanes(*entry->solved, bytes, entry->waitingBytes, getPlanPacking(), INFINITY);
  else
    plan = entry->baselines->find(strategy, bytes, entry->waitingBytes, INFINITY);
  return plan ? std::optional(plan->plan.timeline.seconds) : std::nullopt;
}

/// The step at `train` with what outlives it in each of the places between which a fit decides.
static std::vector<PlacedStep> listPlacedSteps(ModuleOp fitted, const TargetInfo &target, const OffloadRoom &room,
                                               std::shared_ptr<solve::SolvedSteps> solved) {
  std::vector<PlacedStep> placed;
  for (const TensorPlaces &places : PlaceChoices(fitted, room).list()) {
    OwningOpRef<ModuleOp> module = fitted.clone();
    moveElsewhere(*module, places);
    if (FailureOr<PlacedStep> step = PlacedStep::get(std::move(module), target, room, solved); succeeded(step))
      placed.push_back(std::move(*step));
  }
  return placed;
}

/// Lines of the table at most: each is a compilation.
static constexpr unsigned maxRows = 8;

Failure Compilation::checkOtherMemory(const FitColumns &columns) {
  for (auto [flag, given] : {std::pair("host-budget", &options.hostBudget), {"disk-budget", &options.diskBudget}}) {
    if (given->empty())
      continue;
    if (!columns.isEmpty() && StringRef(*given).contains(','))
      return refuse(FailureKind::Usage,
                    "--" + Twine(flag) + "=" + *given + " is a second list next to " + columns.describe() +
                        ", and a table has columns of one",
                    {"give one budget of one of these memories"});
    if (llvm::Expected<uint64_t> bytes = parseByteCount(*given); !bytes)
      return refuse(FailureKind::Usage, "--" + Twine(flag) + ": " + llvm::toString(bytes.takeError()));
  }
  return failed(OffloadRoom::list(*module, target, options.hostBudget, options.diskBudget)) ? FailureKind::Usage
                                                                                            : Failure();
}

std::string Compilation::describeOtherMemory() const {
  std::string flags;
  for (auto [flag, given] : {std::pair("--host-budget=", &options.hostBudget), {"--disk-budget=", &options.diskBudget}})
    if (!given->empty())
      flags += (flags.empty() ? "" : " ") + (flag + *given);
  return flags;
}

FailureOr<OtherMemoryTable> Compilation::fitOtherMemory(ModuleOp steps, uint64_t smallestBytes, uint64_t largestBytes,
                                                        const FitRequest &request) {
  const unsigned rows = request.fitRows;
  const bool isCompared = request.baselines;
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  FitStageOptions stage = fitStageOptions();
  stage.solved = makeSolvedSteps(options.withoutMethods);
  stage.flips = false;
  auto plan = [&](uint64_t budget) {
    stage.deviceBudget = std::to_string(budget);
    module = steps.clone();
    return fitSteps(stage);
  };
  OtherMemoryTable table;
  table.flag = describeOtherMemory();
  table.hasHost = !options.hostBudget.empty();
  table.hasFile = !options.diskBudget.empty();
  table.smallestAloneBytes = smallestBytes;
  if (!plan(1))
    return failure();
  std::optional<RefusedBudget> refused = getRefusedBudget(*module);
  if (!refused)
    return failure();
  table.smallestBytes = refused->smallestBytes;
  const uint64_t low = refused->smallestBytes, high = std::max(low, largestBytes);
  const unsigned count = std::min(rows, maxRows);
  std::vector<PlacedStep> placed;
  if (isCompared) {
    FitStageOptions plain = stage;
    plain.deviceBudget = "";
    module = steps.clone();
    if (runFitStage(plain))
      return failure();
    FailureOr<SmallVector<OffloadRoom, 2>> rooms =
        OffloadRoom::list(*module, target, options.hostBudget, options.diskBudget);
    if (failed(rooms))
      return failure();
    for (const OffloadRoom &room : *rooms)
      for (PlacedStep &step : listPlacedSteps(*module, target, room, stage.solved))
        placed.push_back(std::move(step));
  }
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t budget = i + 1 == count ? high : low + uint64_t(double(high - low) * i / (count - 1));
    // As many as were asked for, evenly.
    stage.bound = request.bound && solve::hasLinearSolver() &&
                  i * request.boundRows / count != (i + 1) * request.boundRows / count;
    if (plan(budget))
      continue;
    OtherMemoryTable::Row row{budget};
    for (auto step : module->getOps<func::FuncOp>()) {
      const std::optional<StepEstimate> estimate = StepEstimate::get(step);
      if (!estimate)
        continue;
      row.deviceBytes = std::max(row.deviceBytes, estimate->deviceBytes);
      row.hostBytes = std::max(row.hostBytes, estimate->pinnedBytes);
      row.fileBytes = std::max(row.fileBytes, estimate->fileBytes);
      // What trains is what the table is of.
      if (step.getSymName() != "train" && row.seconds > 0)
        continue;
      row.seconds = estimate->seconds;
      row.recomputed = estimate->recomputed;
      row.leastSeconds = estimate->leastSeconds;
      row.loadedBytes = estimate->loadedBytes;
      row.storedBytes = estimate->storedBytes;
    }
    for (size_t i = 0; isCompared && i < solve::offloadStrategyNames.size(); ++i) {
      std::optional<double> &least = row.others.emplace_back();
      for (const PlacedStep &step : placed)
        if (std::optional<double> seconds = step.find(solve::OffloadStrategy(i), budget))
          least = std::min(least.value_or(INFINITY), *seconds);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

void OtherMemoryTable::printText(llvm::raw_ostream &os, double wholeSeconds) const {
  const ByteUnit unit = ByteUnit::get(rows.empty() ? smallestBytes : rows.back().budgetBytes, /*typable=*/true);
  os << "with " << flag << "\n  smallest plan found  " << unit.text(smallestBytes) << " ("
     << llvm::format("%.1f %%", 100 * double(smallestBytes) / double(smallestAloneBytes)) << " of "
     << unit.text(smallestAloneBytes) << " without it)\n\n"
     << "  --device-budget       needs" << (hasHost ? "     on host" : "") << (hasFile ? "   in a file" : "")
     << "  recomputed      loaded      stored     time\n";
  for (const Row &row : rows) {
    os << llvm::format("  %15s  %10s", unit.text(row.budgetBytes).c_str(), unit.text(row.deviceBytes).c_str());
    if (hasHost)
      os << llvm::format("  %10s", unit.text(row.hostBytes).c_str());
    if (hasFile)
      os << llvm::format("  %10s", unit.text(row.fileBytes).c_str());
    os << llvm::format("  %10u  %10s  %10s  %+6.1f %%\n", row.recomputed, unit.text(row.loadedBytes).c_str(),
                       unit.text(row.storedBytes).c_str(),
                       wholeSeconds > 0 ? 100 * (row.seconds / wholeSeconds - 1) : 0);
  }
  if (isCompared())
    printComparison(os, wholeSeconds);
  auto percent = [&](double seconds) { return wholeSeconds > 0 ? 100 * (seconds / wholeSeconds - 1) : 0; };
  for (const Row &row : rows)
    if (row.leastSeconds > 0)
      os << llvm::format(
          "  takes %+.1f %% at %s; no plan for this kernel graph in this order, with what lies there from "
          "step to step, takes less than %+.1f %%: a gap of %.1f points\n",
          percent(row.seconds), unit.text(row.budgetBytes).c_str(), percent(row.leastSeconds),
          percent(row.seconds) - percent(row.leastSeconds));
}

void OtherMemoryTable::printComparison(llvm::raw_ostream &os, double wholeSeconds) const {
  const ByteUnit unit = ByteUnit::get(rows.back().budgetBytes, /*typable=*/true);
  auto percent = [&](double seconds) { return wholeSeconds > 0 ? 100 * (seconds / wholeSeconds - 1) : 0; };
  os << "\n  time over no recomputation at equal budgets, copies waited for; -: no plan there\n"
     << "  --device-budget       fit";
  for (const char *name : solve::offloadStrategyNames)
    os << llvm::format("%17s", name);
  os << "\n";
  unsigned above = 0;
  for (const Row &row : rows) {
    os << llvm::format("  %15s  %+6.1f %%", unit.text(row.budgetBytes).c_str(), percent(row.seconds));
    bool isAbove = false;
    for (const std::optional<double> &other : row.others) {
      if (other)
        os << llvm::format("%+15.1f %%", percent(*other));
      else
        os << llvm::format("%17s", "-");
      isAbove |= other && *other < row.seconds * (1 - 1e-9);
    }
    os << "\n";
    above += isAbove;
  }
  os << "  above one of these at " << above << " of " << rows.size() << " budgets\n";
}

void OtherMemoryTable::printJson(llvm::json::OStream &json, double wholeSeconds) const {
  json.attribute("flag", flag);
  json.attribute("smallest_bytes", smallestBytes);
  json.attribute("smallest_bytes_alone", smallestAloneBytes);
  json.attributeArray("plans", [&] {
    for (const Row &row : rows)
      json.object([&] {
        json.attribute("budget_bytes", row.budgetBytes);
        json.attribute("device_bytes", row.deviceBytes);
        json.attribute("host_bytes", row.hostBytes);
        json.attribute("file_bytes", row.fileBytes);
        json.attribute("recomputed", row.recomputed);
        json.attribute("loaded_bytes", row.loadedBytes);
        json.attribute("stored_bytes", row.storedBytes);
        auto percent = [&](double seconds) { return wholeSeconds > 0 ? 100 * (seconds / wholeSeconds - 1) : 0; };
        json.attribute("time_percent", percent(row.seconds));
        if (row.leastSeconds > 0)
          json.attribute("bound_percent", percent(row.leastSeconds));
        if (!row.others.empty())
          json.attributeObject("baselines", [&] {
            for (auto [name, other] : llvm::zip_equal(solve::offloadStrategyNames, row.others))
              json.attribute(name, other ? llvm::json::Value(percent(*other)) : llvm::json::Value(nullptr));
          });
      });
  });
}
