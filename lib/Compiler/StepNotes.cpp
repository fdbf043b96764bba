//===- StepNotes.cpp - what reports are told of fitted steps ---*- C++ -*-===//
//
// Read off the programs that steps have become.
//
//===----------------------------------------------------------------------===//

#include "StepNotes.h"
#include "lowtide/Analysis/BudgetFlips.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Dialect/Plan/Plan.h"
#include "lowtide/Dialect/Train/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lowtide;

/// The bytes alive at every instruction before a budget was kept; nothing where the attribute says none.
static std::optional<report::Unfitted> getUnfitted(plan::ProgramOp program) {
  auto before = program->getAttrOfType<DenseIntElementsAttr>(beforeBudgetAttrName);
  if (!before || !before.getElementType().isInteger(64) || before.getNumElements() % numTransientComponents)
    return std::nullopt;
  report::Unfitted unfitted;
  auto numbers = before.getValues<int64_t>();
  for (auto it = numbers.begin(); it != numbers.end();) {
    for (uint64_t &bytes : unfitted.live.emplace_back())
      bytes = uint64_t(*it++);
    unfitted.peakBytes = std::max(unfitted.peakBytes, sumBytes(unfitted.live.back()));
  }
  return unfitted;
}

report::Notes lowtide::noteProgram(ModuleOp module) {
  report::Notes notes;
  if (auto budget = module->getAttrOfType<IntegerAttr>(deviceBudgetAttrName))
    notes.deviceBudget = budget.getValue().getZExtValue();
  const TargetInfo target = train::getTarget(module), row = findTarget(target.getArtifactTarget()).value_or(target);
  auto getFigures = [](const TargetInfo &info) {
    return std::tie(info.libraryFlops, info.kernelFlops, info.bytesPerSecond, info.launchSeconds);
  };
  if (train::hasTarget(module) && getFigures(target) != getFigures(row))
    notes.plannedFor = report::PlannedTarget{target.name, CostModel::get(target)};
  module.walk([&](plan::ProgramOp program) {
    report::EntryNotes &entry = notes.entries.emplace_back(program.getSymName().str(), report::EntryNotes()).second;
    entry.before = getUnfitted(program);
    if (auto components = program->getAttrOfType<DenseI8ArrayAttr>(componentsAttrName))
      entry.components.assign(components.asArrayRef().begin(), components.asArrayRef().end());
    if (auto budgets = program->getAttrOfType<DenseI64ArrayAttr>(plannedBudgetsAttrName);
        budgets && budgets.size() == 3)
      entry.plannedBudgets = PlannedBudgets{uint64_t(budgets[0]), uint64_t(budgets[1]), uint64_t(budgets[2])};
    // Launches and library calls in the order of the plan.
    unsigned number = 0;
    program.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isa<plan::LaunchOp, plan::CallOp>(op))
        return;
      if (op->hasAttr(recomputedAttrName))
        entry.recomputed.push_back(number);
      if (auto flips = op->getAttrOfType<DenseI64ArrayAttr>(flipsAttrName))
        for (ArrayRef<int64_t> left = flips; left.size() >= 3; left = left.drop_front(3))
          entry.flips[number].push_back({BudgetDecision(left[0]), uint64_t(left[1]), uint64_t(left[2])});
      ++number;
    });
  });
  return notes;
}
