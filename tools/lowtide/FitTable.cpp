//===- FitTable.cpp - what a step costs at which budget ---------*- C++ -*-===//
//
// `lowtide fit`: smallest and largest peak, and the trade between them, without weights and without the device.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "PlanLayout.h"
#include "StepFacts.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Pipeline.h"
#include "lowtide/Solve/LoopFit.h"
#include "lowtide/Solve/Packing.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::driver;

namespace {

/// One line of the table; bytes are everything that the runtime allocates.
struct FitRow {
  uint64_t deviceBytes;
  const solve::FittedSchedule *plan;
};

class FitTable {
public:
  FitTable(func::FuncOp step, const StepProblem &problem, ArrayRef<PlanLayout::Arena> arenas)
      : name(step.getSymName()), problem(problem), arenas(arenas), front(problem.getGraph()),
        bound(solve::findLowerBound(problem.getGraph())) {
    for (const PlanLayout::Arena &arena : arenas)
      staticBytes += arena.bytes;
  }

  bool isValid() const { return front.isValid(); }
  void computeRows(unsigned count);
  void printText(llvm::raw_ostream &os) const;
  void printJson(llvm::raw_ostream &os) const;

private:
  double extra(double now, double then) const { return then > 0 ? 100 * (now / then - 1) : 0; }

  std::string name;
  const StepProblem &problem;
  ArrayRef<PlanLayout::Arena> arenas;
  solve::LoopFront front;
  solve::LowerBound bound;
  uint64_t staticBytes = 0;
  std::vector<FitRow> rows;
};

} // namespace

void FitTable::computeRows(unsigned count) {
  std::vector<const solve::FittedSchedule *> plans = front.getPareto();
  solve::PackingOptions options;
  options.alignment = planAlignment;
  options.effort = 10'000'000; // a compile searches longer, so that its arena is no larger
  for (unsigned i = 0; i < count; ++i) {
    const solve::FittedSchedule *plan = plans[count > 1 ? (plans.size() - 1) * i / (count - 1) : 0];
    if (!rows.empty() && rows.back().plan == plan)
      continue;
    rows.push_back(
        {staticBytes + solve::pack(solve::listBuffers(problem.getGraph(), *plan), options).arenaBytes, plan});
  }
}

void FitTable::printText(llvm::raw_ostream &os) const {
  os << "entry @" << name << "\n";
  for (const PlanLayout::Arena &arena : arenas)
    os << "  " << llvm::left_justify(arena.name, 10) << formatBytes(arena.bytes) << "\n";
  os << "  smallest plan found  " << formatBytes(rows.front().deviceBytes)
     << "; whatever is recomputed, no plan of these "
     << "kernels is below " << formatBytes(staticBytes + bound.bytes) << "\n"
     << "  without recomputation  " << formatBytes(rows.back().deviceBytes) << "\n\n"
     << "  --device-budget  recomputed     time    FLOPs\n";
  const solve::Timeline &most = front.getLargest().timeline;
  for (const FitRow &row : rows)
    os << llvm::format("  %15s  %10u  %+6.1f %%  %+6.1f %%\n", formatBytes(row.deviceBytes).c_str(),
                       row.plan->timeline.recomputed, extra(row.plan->timeline.seconds, most.seconds),
                       extra(double(row.plan->timeline.flops), double(most.flops)));
}

void FitTable::printJson(llvm::raw_ostream &os) const {
  const solve::Timeline &most = front.getLargest().timeline;
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("entry", name);
    for (const PlanLayout::Arena &arena : arenas)
      json.attribute((arena.name + "_bytes").str(), arena.bytes);
    json.attribute("lower_bound_bytes", staticBytes + bound.bytes);
    json.attribute("smallest_bytes", rows.front().deviceBytes);
    json.attribute("largest_bytes", rows.back().deviceBytes);
    json.attribute("seconds", most.seconds);
    json.attribute("flops", most.flops);
    json.attributeArray("plans", [&] {
      for (const FitRow &row : rows)
        json.object([&] {
          json.attribute("device_bytes", row.deviceBytes);
          json.attribute("live_bytes", staticBytes + row.plan->timeline.peakBytes);
          json.attribute("recomputed", row.plan->timeline.recomputed);
          json.attribute("time_percent", extra(row.plan->timeline.seconds, most.seconds));
          json.attribute("flops_percent", extra(double(row.plan->timeline.flops), double(most.flops)));
          json.attribute("method", row.plan->method);
        });
    });
  });
  os << "\n";
}

int Compilation::fit() {
  if (int code = checkTarget())
    return code;
  if (int code = lowerToFitted())
    return code;
  const FitStageOptions stage = fitStageOptions();
  auto steps = llvm::to_vector(module->getOps<func::FuncOp>());
  FailureOr<PlanLayout> layout = PlanLayout::compute(steps);
  StepFacts facts(*module);
  if (failed(layout) || failed(facts.update(stage.cpu, stage.threadsMax)))
    return exitInternal;
  for (func::FuncOp step : steps) {
    if (step.getSymName() == "eval" && steps.size() > 1)
      continue;
    FailureOr<StepProblem> problem = StepProblem::pose(step, facts.getTable(), CostModel::get(stage.target));
    if (failed(problem))
      return exitInternal;
    FitTable table(step, *problem, layout->getArenas());
    if (!table.isValid()) {
      printError("the order of @" + step.getSymName() + " is not valid");
      return exitInternal;
    }
    table.computeRows(options.fitRows);
    options.json ? table.printJson(llvm::outs()) : table.printText(llvm::outs());
  }
  return exitOk;
}
