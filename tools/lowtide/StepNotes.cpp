//===- StepNotes.cpp - what reports are told of fitted steps ---*- C++ -*-===//
//
// Read off the steps just before they become programs, and off the programs.
//
//===----------------------------------------------------------------------===//

#include "StepNotes.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Dialect/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lowtide;

report::Notes driver::noteSteps(ModuleOp module) {
  report::Notes notes;
  if (auto budget = module->getAttrOfType<IntegerAttr>(deviceBudgetAttrName))
    notes.deviceBudget = budget.getValue().getZExtValue();
  for (auto step : module.getOps<func::FuncOp>()) {
    report::EntryNotes &entry = notes.entries.emplace_back(step.getName().str(), report::EntryNotes()).second;
    auto before = step->getAttrOfType<DenseIntElementsAttr>(beforeBudgetAttrName);
    if (before && before.getElementType().isInteger(64) && before.getNumElements() % numTransientComponents == 0) {
      report::Unfitted &unfitted = entry.before.emplace();
      auto numbers = before.getValues<int64_t>();
      for (auto it = numbers.begin(); it != numbers.end();) {
        for (uint64_t &bytes : unfitted.live.emplace_back())
          bytes = uint64_t(*it++);
        unfitted.peakBytes = std::max(unfitted.peakBytes, sumBytes(unfitted.live.back()));
      }
    }
  }
  return notes;
}

void driver::notePrograms(ModuleOp module, report::Notes &notes) {
  module.walk([&](plan::ProgramOp program) {
    for (auto &[name, entry] : notes.entries) {
      if (name != program.getSymName())
        continue;
      if (auto components = program->getAttrOfType<DenseI8ArrayAttr>(componentsAttrName))
        entry.components.assign(components.asArrayRef().begin(), components.asArrayRef().end());
      // Launches and library calls in the order of the plan.
      unsigned number = 0;
      program.walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (!isa<plan::LaunchOp, plan::CallOp>(op))
          return;
        if (op->hasAttr(recomputedAttrName))
          entry.recomputed.push_back(number);
        ++number;
      });
    }
  });
}
