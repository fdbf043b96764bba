//===- PlanRemarks.cpp - what remarks say of a plan -----------------------===//
#include "PlanRemarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowtide;

std::string lowtide::compareFigures(const solve::FittedSchedule &before, const solve::FittedSchedule &after) {
  auto percent = [](double now, double then) {
    return llvm::formatv("{0:F1} %", then > 0 ? 100 * (now / then - 1) : 0).str();
  };
  return llvm::formatv("peak {0} → {1} ({2} values recomputed, +{3} FLOPs, +{4} time; {5})",
                       formatBytes(before.timeline.peakBytes), formatBytes(after.timeline.peakBytes),
                       after.timeline.recomputed - after.timeline.loaded,
                       percent(double(after.timeline.flops), double(before.timeline.flops)),
                       percent(after.timeline.seconds, before.timeline.seconds), after.method)
      .str();
}

void lowtide::noteMoves(InFlightDiagnostic &remark, const PosedEntry &entry, const solve::FittedSchedule &plan) {
  const solve::LaneTimes times = solve::simulateLanes(entry.problem.getGraph(), plan);
  if (!times.sum().loads)
    return;
  for (auto [space, traffic] : llvm::zip(entry.spaces, times.memories))
    if (traffic.loads)
      remark << llvm::formatv("; {0} loads of {1} from space {2} and {3} stored there", traffic.loads,
                              formatBytes(traffic.loadedBytes), getSpaceName(space), formatBytes(traffic.storedBytes))
                    .str();
  remark << llvm::formatv(", which takes {0:F1} % more time by the estimate",
                          100 * times.waitedSeconds / std::max(times.seconds - times.waitedSeconds, 1e-12))
                .str();
}

void lowtide::noteLoops(InFlightDiagnostic &remark, const StepProblem &problem, const solve::FittedSchedule &before,
                        const solve::FittedSchedule &after) {
  for (auto [loop, then, now, body] :
       llvm::zip_equal(problem.getGraph().loops, before.bodies, after.bodies, problem.getBodies())) {
    if (now.timeline.recomputed)
      remark.attachNote(problem.getOperations()[loop.operation]->getLoc())
          << "each of " << loop.rounds << " rounds: " << compareFigures(then, now);
    noteLoops(remark, body, then, now);
  }
}
