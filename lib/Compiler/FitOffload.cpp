//===- FitOffload.cpp - the table of a step with another memory -*- C++ -*-===//
//
// Every line is planned as `lowtide compile` would plan it. The first is of the smallest plan, which the refusal of a
// budget that nothing keeps names.
//
//===----------------------------------------------------------------------===//

#include "FitOffload.h"
#include "Compilation.h"
#include "Offload.h"
#include "TrainRematerialize.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/RefusedBudget.h"
#include "lowtide/Support/ByteUnit.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace lowtide;

/// Lines of the table at most: each is a compilation.
static constexpr unsigned maxRows = 8;

Failure Compilation::checkOtherMemory() {
  for (auto [flag, given] : {std::pair("host-budget", &options.hostBudget), {"disk-budget", &options.diskBudget}}) {
    if (given->empty())
      continue;
    llvm::Expected<ByteSize> size = parseByteSize(*given);
    if (!size)
      return refuse(FailureKind::Usage, "--" + Twine(flag) + ": " + llvm::toString(size.takeError()));
    if (size->fraction >= 0)
      return refuse(FailureKind::Usage,
                    "--" + Twine(flag) + ": '" + *given + "' is a part of nothing that is known; bytes, as in 32GiB");
  }
  return failed(OffloadRoom::get(*module, target, options.hostBudget, options.diskBudget)) ? FailureKind::Usage
                                                                                           : Failure();
}

FailureOr<OtherMemoryTable> Compilation::fitOtherMemory(ModuleOp steps, uint64_t smallestBytes, uint64_t largestBytes,
                                                        unsigned rows) {
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  FitStageOptions stage = fitStageOptions();
  stage.solved = makeSolvedSteps(options.withoutMethods);
  auto plan = [&](uint64_t budget) {
    stage.deviceBudget = std::to_string(budget);
    module = steps.clone();
    return fitSteps(stage);
  };
  OtherMemoryTable table;
  table.flag =
      options.diskBudget.empty() ? "--host-budget=" + options.hostBudget : "--disk-budget=" + options.diskBudget;
  table.smallestAloneBytes = smallestBytes;
  if (!plan(1))
    return failure();
  std::optional<RefusedBudget> refused = getRefusedBudget(*module);
  if (!refused)
    return failure();
  table.smallestBytes = refused->smallestBytes;
  const uint64_t low = refused->smallestBytes, high = std::max(low, largestBytes);
  const unsigned count = std::min(rows, maxRows);
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t budget = i + 1 == count ? high : low + uint64_t(double(high - low) * i / (count - 1));
    if (plan(budget))
      continue;
    OtherMemoryTable::Row row{budget};
    for (auto step : module->getOps<func::FuncOp>()) {
      const std::optional<StepEstimate> estimate = StepEstimate::get(step);
      if (!estimate)
        continue;
      row.deviceBytes = std::max(row.deviceBytes, estimate->deviceBytes);
      row.otherBytes = std::max(row.otherBytes, estimate->otherBytes);
      // What trains is what the table is of.
      if (step.getSymName() != "train" && row.seconds > 0)
        continue;
      row.seconds = estimate->seconds;
      row.recomputed = estimate->recomputed;
      row.loadedBytes = estimate->loadedBytes;
      row.storedBytes = estimate->storedBytes;
    }
    table.rows.push_back(row);
  }
  return table;
}

void OtherMemoryTable::printText(llvm::raw_ostream &os, double wholeSeconds) const {
  const ByteUnit unit = ByteUnit::get(rows.empty() ? smallestBytes : rows.back().budgetBytes, /*typable=*/true);
  os << "with " << flag << "\n  smallest plan found  " << unit.text(smallestBytes) << " ("
     << llvm::format("%.1f %%", 100 * double(smallestBytes) / double(smallestAloneBytes)) << " of "
     << unit.text(smallestAloneBytes) << " without it)\n\n"
     << "  --device-budget       needs  in the other memory  recomputed      loaded      stored     time\n";
  for (const Row &row : rows)
    os << llvm::format("  %15s  %10s  %19s  %10u  %10s  %10s  %+6.1f %%\n", unit.text(row.budgetBytes).c_str(),
                       unit.text(row.deviceBytes).c_str(), unit.text(row.otherBytes).c_str(), row.recomputed,
                       unit.text(row.loadedBytes).c_str(), unit.text(row.storedBytes).c_str(),
                       wholeSeconds > 0 ? 100 * (row.seconds / wholeSeconds - 1) : 0);
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
        json.attribute("other_bytes", row.otherBytes);
        json.attribute("recomputed", row.recomputed);
        json.attribute("loaded_bytes", row.loadedBytes);
        json.attribute("stored_bytes", row.storedBytes);
        json.attribute("time_percent", wholeSeconds > 0 ? 100 * (row.seconds / wholeSeconds - 1) : 0);
      });
  });
}
