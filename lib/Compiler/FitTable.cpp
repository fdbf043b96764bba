//===- FitTable.cpp - what a step costs at which budget ---------*- C++ -*-===//
//
// Smallest and largest peak, and the trade between them, without weights and without the device; on request next to
// published methods and next to a lower bound on the recomputation.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "PlanLayout.h"
#include "StepBytes.h"
#include "StepFacts.h"
#include "TrainRematerialize.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Interfaces/ExportNames.h"
#include "lowtide/Pipeline.h"
#include "lowtide/Solve/Algorithms/LinearProgram.h"
#include "lowtide/Solve/Bound/RecomputationBound.h"
#include "lowtide/Solve/Portfolio/Comparison.h"
#include "lowtide/Solve/Portfolio/Methods.h"
#include "lowtide/Solve/Portfolio/SolvedSteps.h"
#include "lowtide/Support/ByteUnit.h"
#include "lowtide/Support/StableSort.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <chrono>

using namespace mlir;
using namespace lowtide;

namespace {

/// Another method at a line's budget.
struct OtherMethod {
  const char *name;
  std::optional<double> seconds; // nothing: it has no plan there
};

/// One line of the table; bytes are everything that the runtime allocates.
struct FitRow {
  uint64_t budgetBytes, deviceBytes;
  const solve::FittedSchedule *plan;
  /// Time to find it with nothing known: the whole search up to its budget, and
  /// its packing.
  double planSeconds;
  /// The cheapest schedule whose peak, without regard to addresses, is within
  /// the budget; the same of other methods.
  double simulatedSeconds = 0;
  std::vector<OtherMethod> others = {};
  std::optional<solve::RecomputationBound> bound = {};
  /// The step's form (`FitTable::listSteps`): 0 as without a budget.
  size_t form = 0;
};

/// An entry without a table: it comes with the others, and a budget holds for all.
struct FurtherEntry {
  std::string name;
  /// In each form of the others.
  std::vector<solve::StepGraph> graphs;
  /// Of everything, at the smallest plan found.
  uint64_t smallestBytes = UINT64_MAX;

  /// Counts what it needs where that may be more than `knownBytes`; `staticBytes` lie outside of its arena.
  void count(uint64_t staticBytes, uint64_t knownBytes, const solve::FitOptions &search) {
    for (const solve::StepGraph &graph : graphs) {
      if (smallestBytes <= knownBytes)
        return;
      solve::SolvedStep solved(graph, getPlanPacking(), search);
      uint64_t bytes = staticBytes + solved.front.getLargest().timeline.peakBytes;
      if (solved.front.isValid() && bytes > knownBytes)
        bytes = staticBytes + solved.plans.getSmallest().arenaBytes;
      smallestBytes = std::min(smallestBytes, bytes);
    }
  }
};

class FitTable {
public:
  /// `form`: what the step has without a budget.
  FitTable(StringRef name, const StepForm &form, const solve::StepGraph &graph, const PlanLayout &layout,
           const FitRequest &options)
      : name(name), form(form), arenas(layout.getArenas()), options(options),
        search(getPlanSearch(options.withoutMethods)), solved(graph, getPlanPacking(), search),
        searchSeconds(since(start)), leastBytes(solve::findLowerBound(graph).bytes),
        staticBytes(layout.getStaticBytes().sum()) {}

  /// The same step in another form, which a budget may ask for.
  void addForm(const StepForm &form, const solve::StepGraph &graph) {
    Clock::time_point begin = Clock::now();
    further.push_back({form, std::make_unique<solve::SolvedStep>(graph, getPlanPacking(), search)});
    searchSeconds += since(begin);
    leastBytes = std::min(leastBytes, solve::findLowerBound(graph).bytes);
  }
  StringRef getName() const { return name; }
  bool isValid() const {
    return solved.front.isValid() &&
           llvm::all_of(further, [](const FurtherStep &step) { return step.solved->front.isValid(); });
  }
  void computeRows();
  uint64_t getSmallestBytes() const { return rows.front().deviceBytes; }
  uint64_t getLargestBytes() const { return rows.back().deviceBytes; }
  double getSeconds() const { return getWhole().seconds; }
  void printText(llvm::raw_ostream &os) const;
  void printJson(llvm::json::OStream &json) const;

private:
  using Clock = std::chrono::steady_clock;
  static double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
  double extra(double now, double then) const { return then > 0 ? 100 * (now / then - 1) : 0; }
  /// The cheapest step in which nothing runs again.
  const solve::Timeline &getWhole() const {
    const solve::Timeline *whole = &solved.front.getLargest().timeline;
    for (const FurtherStep &step : further)
      if (const solve::Timeline &other = step.solved->front.getLargest().timeline; other.seconds < whole->seconds)
        whole = &other;
    return *whole;
  }
  double extraSeconds(double seconds) const { return extra(seconds, getWhole().seconds); }
  double boundPercent(const FitRow &row) const {
    return extraSeconds(solved.front.getLargest().timeline.seconds + row.bound->seconds);
  }
  /// Whether line `row` is one of `asked` that stand in the middle of equal stretches.
  bool isAmong(unsigned row, unsigned asked) const;
  /// The step in its form without a budget, then `further`.
  std::vector<solve::SolvedStep *> listSteps() {
    std::vector<solve::SolvedStep *> steps{&solved};
    for (FurtherStep &step : further)
      steps.push_back(step.solved.get());
    return steps;
  }
  /// The cheapest plan whose arena is within `budget` bytes.
  FitRow findRow(uint64_t budget);
  void compare(FitRow &row, solve::Baselines &baselines, bool solves, bool bounds);
  void printComparison(llvm::raw_ostream &os) const;

  const Clock::time_point start = Clock::now();
  std::string name;
  const StepForm form;
  ArrayRef<PlanLayout::Arena> arenas;
  const FitRequest &options;
  const solve::FitOptions search;
  solve::SolvedStep solved;
  /// Of everything that was searched so far.
  double searchSeconds;
  struct FurtherStep {
    StepForm form;
    std::unique_ptr<solve::SolvedStep> solved;
  };
  std::vector<FurtherStep> further;
  bool hasChunks() const {
    return llvm::any_of(further, [](const FurtherStep &step) { return step.form.chunks.has_value(); });
  }
  bool hasSteps() const {
    return llvm::any_of(further,
                        [](const FurtherStep &step) { return step.form.recomputedSteps != RecomputedSteps::None; });
  }
  bool hasBlocks() const {
    return llvm::any_of(further, [](const FurtherStep &step) { return step.form.loopBlocks > 0; });
  }
  const StepForm &getForm(const FitRow &row) const { return row.form ? further[row.form - 1].form : form; }
  /// No plan needs fewer in the transient arena.
  uint64_t leastBytes;
  const uint64_t staticBytes;
  /// One per budget.
  std::vector<FitRow> rows;
  /// A linear program was solved for a line so far.
  bool isRounded = false;
  /// Of every figure of the table.
  ByteUnit unit = {0x1p20, "MiB"};
};

} // namespace

void FitTable::computeRows() {
  // Few bytes are hard to pack: the smallest steps first, and none that has more bytes alive than an arena found so
  // far.
  std::vector<solve::SolvedStep *> steps = listSteps();
  sortStably(steps, [](solve::SolvedStep *a, solve::SolvedStep *b) {
    return a->front.getSmallest().timeline.peakBytes < b->front.getSmallest().timeline.peakBytes;
  });
  uint64_t low = UINT64_MAX;
  for (solve::SolvedStep *step : steps)
    if (step->front.getSmallest().timeline.peakBytes < low)
      low = std::min(low, step->plans.getSmallest().arenaBytes);
  const uint64_t high = std::max(low, solved.plans.get(solved.front.getLargest()).arenaBytes);
  const unsigned count = options.fitRows;
  unit = ByteUnit::get(staticBytes + high, /*typable=*/true);
  solve::Baselines baselines(solved.graph, solved.front.getLargest().schedule, /*secondsOfProgram=*/60);
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t exact = i + 1 == count ? high : low + uint64_t(double(high - low) * i / (count - 1)),
                   budget = unit.roundUp(staticBytes + exact) - staticBytes;
    Clock::time_point begin = Clock::now();
    solved.front.find(budget);
    searchSeconds += since(begin);
    begin = Clock::now();
    rows.push_back(findRow(budget));
    rows.back().planSeconds = searchSeconds + since(begin);
    if (options.baselines || options.bound)
      compare(rows.back(), baselines, isAmong(i, options.roundingRows) && solve::hasLinearSolver(),
              isAmong(i, options.boundRows));
  }
}

FitRow FitTable::findRow(uint64_t budget) {
  // No packed plan takes less time than the cheapest of any addresses. Where none of these is within the budget,
  // another order of the smallest may be: orders are drawn when a plan is packed.
  struct Candidate {
    double leastSeconds;
    size_t index;
  };
  std::vector<solve::SolvedStep *> steps = listSteps();
  std::vector<Candidate> candidates;
  for (auto [index, step] : llvm::enumerate(steps))
    if (const solve::FittedSchedule *plan = step->front.find(budget))
      candidates.push_back({plan->timeline.seconds, index});
    else
      candidates.push_back({step->front.getSmallest().timeline.seconds, index});
  sortStably(candidates, [](const Candidate &a, const Candidate &b) { return a.leastSeconds < b.leastSeconds; });
  const solve::PackedPlan *best = nullptr;
  // Of equal ones the first: the step as it is without a budget, then the form of the fewest bytes.
  std::pair<double, size_t> bestRank;
  for (const Candidate &candidate : candidates) {
    if (best && std::pair(candidate.leastSeconds, candidate.index) > bestRank)
      continue;
    const solve::PackedPlan *plan = steps[candidate.index]->plans.find(budget);
    if (!plan)
      continue;
    const std::pair rank(plan->plan.timeline.seconds, candidate.index);
    if (!best || rank < bestRank) {
      best = plan;
      bestRank = rank;
    }
  }
  // Never null: no budget is below the smallest arena.
  FitRow row{staticBytes + budget, staticBytes + best->arenaBytes, &best->plan, /*planSeconds=*/0};
  row.form = bestRank.second;
  return row;
}

bool FitTable::isAmong(unsigned row, unsigned asked) const {
  auto countUpTo = [&](uint64_t last) { return ((2 * last + 1) * asked + options.fitRows) / (2 * options.fitRows); };
  return countUpTo(row) > (row ? countUpTo(row - 1) : 0);
}

void FitTable::compare(FitRow &row, solve::Baselines &baselines, bool solves, bool bounds) {
  const uint64_t bytes = row.budgetBytes - staticBytes;
  const solve::FittedSchedule *plan = solved.front.find(bytes);
  row.simulatedSeconds = row.plan->timeline.seconds;
  if (plan)
    row.simulatedSeconds = std::min(row.simulatedSeconds, plan->timeline.seconds);
  if (options.baselines)
    for (auto [i, method] : llvm::enumerate(solve::strategyNames)) {
      const bool rounds = solve::Strategy(i) == solve::Strategy::Rounding;
      isRounded |= rounds && solves;
      if (rounds && !isRounded)
        continue;
      std::optional<double> seconds;
      if (!rounds || solves)
        if (std::optional<solve::FittedSchedule> other = baselines.find(solve::Strategy(i), bytes))
          seconds = other->timeline.seconds;
      // A plan of fewer bytes may be the cheaper one.
      if (const solve::FittedSchedule *other = rounds ? baselines.findRounded(bytes) : nullptr)
        seconds = other->timeline.seconds;
      row.others.push_back({method, seconds});
    }
  const solve::FittedSchedule &whole = solved.front.getLargest();
  if (options.bound && bounds)
    row.bound =
        solve::findTightestBound(solved.graph, whole.schedule, bytes, row.simulatedSeconds - whole.timeline.seconds);
}

void FitTable::printText(llvm::raw_ostream &os) const {
  os << "entry @" << name << "\n";
  size_t width = 10;
  for (const PlanLayout::Arena &arena : arenas)
    if (arena.space == plan::ArenaSpace::Device)
      width = std::max(width, arena.name.size() + 2);
  for (const PlanLayout::Arena &arena : arenas)
    if (arena.space == plan::ArenaSpace::Device)
      os << "  " << llvm::left_justify(arena.name, width) << unit.text(arena.bytes) << "\n";
  os << "  smallest plan found  " << unit.text(rows.front().deviceBytes)
     << "; whatever is recomputed, no plan of these "
     << "kernels is below " << unit.text(staticBytes + leastBytes) << "\n"
     << "  without recomputation  " << unit.text(rows.back().deviceBytes) << "\n\n"
     << "  --device-budget       needs  recomputed     time    FLOPs" << (hasChunks() ? "  --loss-head-chunks" : "")
     << (hasSteps() ? "  steps run again" : "") << (hasBlocks() ? "  --micro-batch-blocks" : "") << "\n";
  const solve::Timeline &whole = getWhole();
  const solve::FittedSchedule *printed = nullptr;
  for (const FitRow &row : rows) {
    if (row.plan == printed)
      continue;
    printed = row.plan;
    os << llvm::format("  %15s  %10s  %10u  %+6.1f %%  %+6.1f %%", unit.text(row.budgetBytes).c_str(),
                       unit.text(row.deviceBytes).c_str(), row.plan->timeline.recomputed,
                       extraSeconds(row.plan->timeline.seconds),
                       extra(double(row.plan->timeline.flops), double(whole.flops)));
    const StepForm &form = getForm(row);
    if (hasChunks())
      os << llvm::right_justify(form.chunks ? std::to_string(*form.chunks) : "auto", 20);
    if (hasSteps())
      os << llvm::right_justify(lowtide::getName(form.recomputedSteps), 17);
    if (hasBlocks())
      os << llvm::right_justify(form.loopBlocks ? std::to_string(form.loopBlocks) : "off", 22);
    os << "\n";
  }
  if (options.baselines || options.bound)
    printComparison(os);
}

void FitTable::printComparison(llvm::raw_ostream &os) const {
  os << "\n  time over no recomputation at equal peak; -: no plan there, .: "
        "not asked\n"
     << "  --device-budget       fit";
  if (options.baselines)
    for (const char *method : solve::strategyNames)
      os << llvm::right_justify(method, 13);
  os << (options.bound ? "        bound\n" : "\n");
  unsigned above = 0, below = 0;
  for (const FitRow &row : rows) {
    os << llvm::format("  %15s  %+6.1f %%", unit.text(row.budgetBytes).c_str(), extraSeconds(row.simulatedSeconds));
    bool isAbove = false, isBelow = !row.others.empty();
    for (const OtherMethod &other : row.others) {
      os << (other.seconds ? llvm::formatv("{0,11:F1} %", extraSeconds(*other.seconds)).str() : "            -");
      isAbove |= other.seconds && *other.seconds < row.simulatedSeconds * (1 - 1e-12);
      isBelow &= !other.seconds || *other.seconds > row.simulatedSeconds * (1 + 1e-12);
    }
    if (options.baselines && row.others.size() < solve::strategyNames.size())
      os << "            .";
    if (row.bound)
      os << llvm::formatv("{0,11:F1} %", boundPercent(row));
    os << "\n";
    above += isAbove;
    below += isBelow;
  }
  if (options.baselines)
    os << "  above a baseline at " << above << " of " << rows.size() << " budgets, strictly below all at " << below
       << "\n";
  for (const FitRow &row : rows)
    if (row.bound)
      os << llvm::formatv("  recomputes +{0:F1} %; no plan for this kernel graph in this order at {1} recomputes less "
                          "than +{2:F1} % ({3})\n",
                          extraSeconds(row.simulatedSeconds), unit.text(row.budgetBytes), boundPercent(row),
                          solve::describe(*row.bound));
}

void FitTable::printJson(llvm::json::OStream &json) const {
  const solve::Timeline &whole = getWhole();
  json.object([&] {
    json.attribute("entry", name);
    for (const PlanLayout::Arena &arena : arenas)
      json.attribute(arena.name + "_bytes", arena.bytes);
    json.attribute("static_bytes", staticBytes);
    json.attribute("lower_bound_bytes", staticBytes + leastBytes);
    json.attribute("smallest_bytes", rows.front().deviceBytes);
    json.attribute("largest_bytes", rows.back().deviceBytes);
    json.attribute("kernels", uint64_t(solved.graph.operations.size()));
    json.attribute("seconds", whole.seconds);
    json.attribute("flops", whole.flops);
    json.attributeObject("methods", [&] {
      for (const solve::MethodName &method : solve::listMethods())
        if (!llvm::is_contained(search.without, method.name))
          json.attribute(method.name, StringRef(method.summary));
    });
    json.attributeArray("plans", [&] {
      for (const FitRow &row : rows)
        json.object([&] {
          json.attribute("budget_bytes", row.budgetBytes);
          json.attribute("device_bytes", row.deviceBytes);
          json.attribute("live_bytes", staticBytes + row.plan->timeline.peakBytes);
          json.attribute("recomputed", row.plan->timeline.recomputed);
          json.attribute("time_percent", extraSeconds(row.plan->timeline.seconds));
          json.attribute("flops_percent", extra(double(row.plan->timeline.flops), double(whole.flops)));
          json.attribute("method", row.plan->method);
          const StepForm &form = getForm(row);
          if (form.chunks)
            json.attribute("loss_head_chunks", *form.chunks);
          if (form.recomputedSteps != RecomputedSteps::None)
            json.attribute("recomputed_steps", lowtide::getName(form.recomputedSteps));
          if (form.loopBlocks)
            json.attribute("micro_batch_blocks", form.loopBlocks);
          json.attribute("plan_seconds", row.planSeconds);
          if (!row.others.empty() || row.bound)
            json.attribute("simulated_percent", extraSeconds(row.simulatedSeconds));
          if (!row.others.empty())
            json.attributeObject("baselines", [&] {
              for (const OtherMethod &other : row.others)
                json.attribute(other.name, other.seconds ? llvm::json::Value(extraSeconds(*other.seconds))
                                                         : llvm::json::Value(nullptr));
            });
          if (row.bound)
            json.attributeObject("bound", [&] {
              json.attribute("percent", boundPercent(row));
              json.attribute("kind", row.bound->kind == solve::BoundKind::Exact          ? "exact"
                                     : row.bound->kind == solve::BoundKind::WholeNumbers ? "integer program"
                                                                                         : "relaxation");
              json.attribute("program_points", row.bound->points);
              json.attribute("kernels", row.bound->instructions);
              json.attribute("solved", row.bound->isSolved);
            });
        });
    });
  });
}

StoredBytes Compilation::countStored() {
  auto step = module->lookupSymbol<func::FuncOp>("train");
  return step ? countStoredBytes(step) : StoredBytes();
}

Failure Compilation::fit(const FitRequest &request, const FitColumns &columns, FitResult &result) {
  if (Failure failure = checkTarget(request.baselines))
    return failure;
  if (Failure failure = checkColumns(request, columns))
    return failure;
  if (Failure failure = lowerTo(getStageNumber("train"), /*budget=*/""))
    return failure;
  if (Failure failure = checkOtherMemory(columns))
    return failure;
  if (request.room)
    return answerFit(*request.room, request.roomTitle, result);
  const StoredBytes stored = countStored();
  FitStageOptions stage = fitStageOptions();
  stage.deviceBudget = "";
  // Other methods and bounds are of one kernel graph.
  const StepForm whole{.headChunks = stage.headChunks, .loopBlocks = stage.loopBlocks};
  std::vector<StepForm> further;
  const bool isFitted = getStageNumber(options.from) >= getStageNumber("fitted");
  if (!isFitted && !request.baselines && !request.bound)
    further = listFurtherForms(stage);
  OwningOpRef<ModuleOp> given = module->clone();
  if (Failure failure = isFitted ? Failure() : runFitStage(stage))
    return failure;
  auto steps = llvm::to_vector(module->getOps<func::FuncOp>());
  FailureOr<PlanLayout> layout = PlanLayout::compute(steps, target);
  if (failed(layout))
    return FailureKind::Internal;
  std::vector<FurtherEntry> furtherEntries;
  auto isVariant = [&](StringRef entry) {
    return llvm::any_of(options.variants,
                        [&](const EntryVariant &variant) { return entry.ends_with("_" + variant.name); });
  };
  // Entries in their order; all of them have the same ones.
  auto pose = [&](llvm::function_ref<void(unsigned, StringRef, const solve::StepGraph &)> take) -> Failure {
    StepFacts facts(*module);
    if (failed(facts.update(target)))
      return FailureKind::Internal;
    const bool isAlone = llvm::hasSingleElement(module->getOps<func::FuncOp>());
    unsigned number = 0;
    for (auto step : module->getOps<func::FuncOp>()) {
      const StringRef name = step.getSymName();
      const bool hasTable = isAlone || (name != "eval" && !isExportEntry(name) && !isVariant(name));
      auto known = llvm::find_if(furtherEntries, [&](const FurtherEntry &entry) { return entry.name == name; });
      // But for a step of another batch, its form is the same in all forms of the others.
      if (!hasTable && known != furtherEntries.end() && !isVariant(name))
        continue;
      FailureOr<StepProblem> problem = StepProblem::pose(step, facts.getTable(), CostModel::get(target));
      if (failed(problem))
        return FailureKind::Internal;
      if (hasTable)
        take(number++, name, problem->getGraph());
      else if (known != furtherEntries.end())
        known->graphs.push_back(problem->getGraph());
      else
        furtherEntries.push_back({name.str(), {problem->getGraph()}});
    }
    return {};
  };
  std::vector<std::unique_ptr<FitTable>> tables;
  if (Failure failure = pose([&](unsigned, StringRef entry, const solve::StepGraph &graph) {
        tables.push_back(std::make_unique<FitTable>(entry, whole, graph, *layout, request));
      }))
    return failure;
  for (const StepForm &form : further) {
    ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
    form.take(stage);
    module = given->clone();
    if (Failure failure = runFitStage(stage))
      return failure;
    if (Failure failure = pose(
            [&](unsigned number, StringRef, const solve::StepGraph &graph) { tables[number]->addForm(form, graph); }))
      return failure;
  }
  for (auto &table : tables) {
    if (!table->isValid())
      return refuse(FailureKind::Internal, "the order of @" + table->getName() + " is not valid");
    table->computeRows();
  }
  uint64_t knownBytes = 0;
  for (auto &table : tables)
    knownBytes = std::max(knownBytes, table->getSmallestBytes());
  for (FurtherEntry &entry : furtherEntries)
    entry.count(layout->getStaticBytes().sum(), knownBytes, getPlanSearch(request.withoutMethods));
  llvm::erase_if(furtherEntries, [&](const FurtherEntry &entry) { return entry.smallestBytes <= knownBytes; });
  std::optional<OtherMemoryTable> other;
  std::optional<ColumnTable> grid;
  if (!isFitted && !(options.hostBudget.empty() && options.diskBudget.empty())) {
    uint64_t largest = 0;
    for (auto &table : tables)
      largest = std::max(largest, table->getLargestBytes());
    if (columns.isEmpty()) {
      if (FailureOr<OtherMemoryTable> found = fitOtherMemory(*given, knownBytes, largest, request); succeeded(found))
        other = std::move(*found);
    } else if (FailureOr<ColumnTable> found = fitColumns(*given, largest, request, columns); succeeded(found)) {
      grid = std::move(*found);
    }
    if (!other && !grid)
      return refuse(FailureKind::Internal, "no plan with another memory was found");
  }
  llvm::raw_string_ostream text(result.text), jsonText(result.json);
  if (!stored.isEmpty())
    stored.print(text);
  for (auto &table : tables)
    table->printText(text);
  const ByteUnit unit = ByteUnit::get(tables.empty() ? knownBytes : tables.front()->getLargestBytes());
  for (const FurtherEntry &entry : furtherEntries)
    text << "entry @" << entry.name << " comes with the others and needs " << unit.text(entry.smallestBytes)
         << (isExportEntry(entry.name) || isVariant(entry.name)
                 ? ", whatever the step needs\n"
                 : ": a smaller budget takes --entries=train, or --outputs=none where outputs of the file take it\n");
  if (other)
    other->printText(text << "\n", tables.front()->getSeconds());
  if (grid)
    grid->printText(text << "\n", tables.front()->getSeconds());
  llvm::json::OStream json(jsonText, 2);
  json.object([&] {
    if (!stored.isEmpty())
      json.attribute("stored", stored.toJson());
    json.attributeArray("entries", [&] {
      for (auto &table : tables)
        table->printJson(json);
    });
    json.attributeArray("further_entries", [&] {
      for (const FurtherEntry &entry : furtherEntries)
        json.object([&] {
          json.attribute("entry", entry.name);
          json.attribute("smallest_bytes", entry.smallestBytes);
        });
    });
    if (other)
      json.attributeObject("other_memory", [&] { other->printJson(json, tables.front()->getSeconds()); });
    if (grid)
      json.attributeObject("other_memory_budgets", [&] { grid->printJson(json, tables.front()->getSeconds()); });
  });
  jsonText << "\n";
  return {};
}
