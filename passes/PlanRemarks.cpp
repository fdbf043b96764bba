//===- PlanRemarks.cpp - what remarks say of a plan -----------------------===//
#include "PlanRemarks.h"
#include "lowtide/Solve/Bound/RecomputationBound.h"
#include "llvm/ADT/StringExtras.h"
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

void lowtide::noteMoves(InFlightDiagnostic &remark, const PosedEntry &entry, const solve::FittedSchedule &plan,
                        uint64_t transientBytes) {
  const solve::LaneTimes times = solve::simulateLanes(entry.problem.getGraph(), plan, transientBytes);
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

void lowtide::remarkBound(PosedEntry &entry, const solve::FittedSchedule &chosen, uint64_t transientBytes,
                          uint64_t bytes) {
  const solve::FittedSchedule &before = entry.solved->front.getLargest();
  const double whole = before.timeline.seconds > 0 ? before.timeline.seconds : 1;
  const solve::RecomputationBound least = solve::findTightestBound(
      entry.problem.getGraph(), before.schedule, transientBytes, chosen.timeline.seconds - before.timeline.seconds);
  std::string text =
      llvm::formatv("recomputes +{0:F1} %; no plan for this kernel graph in this order at {1} recomputes less than "
                    "+{2:F1} % ({3})",
                    100 * (chosen.timeline.seconds / whole - 1), formatBytes(bytes), 100 * least.seconds / whole,
                    solve::describe(least));
  entry.step.emitRemark("@") << entry.step.getSymName() << ": " << text;
}

double lowtide::remarkLaneBound(PosedEntry &entry, const solve::FittedSchedule &chosen, uint64_t transientBytes,
                                uint64_t bytes) {
  const solve::StepGraph &graph = entry.problem.getGraph();
  const solve::FittedSchedule &before = entry.solved->front.getLargest();
  const double whole = solve::countComputeSeconds(graph, before);
  const solve::RecomputationBound least =
      solve::boundLanes(graph, before.schedule, transientBytes - std::min(entry.leastStagingBytes, transientBytes),
                        chosen.timeline.seconds - whole);
  auto percent = [&](double seconds) { return whole > 0 ? 100 * seconds / whole : 0; };
  entry.step.emitRemark("@") << entry.step.getSymName()
                             << llvm::formatv(": takes +{0:F1} % by its lanes; no plan for this kernel graph in this "
                                              "order, with what lies in space {1} from step to step, takes less than "
                                              "+{2:F1} % at {3} ({4})",
                                              percent(chosen.timeline.seconds - whole),
                                              llvm::join(llvm::map_range(entry.spaces, getSpaceName), " and "),
                                              percent(least.seconds), formatBytes(bytes), solve::describe(least))
                                    .str();
  return whole + least.seconds;
}
