//===- RecomputationBound.cpp - how little can be recomputed --------------===//
#include "lowtide/Solve/RecomputationBound.h"
#include "RecomputationProgram.h"

#include <algorithm>

namespace lowtide::solve {

RecomputationBound boundRecomputation(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                      const BoundOptions &options) {
  // A loop takes no fewer bytes than its body must; what runs again in it is not counted.
  if (!graph.loops.empty()) {
    std::vector<FittedSchedule> least(graph.loops.size());
    for (size_t i = 0; i < least.size(); ++i)
      least[i].timeline.peakBytes = findLowerBound(graph.loops[i].body).bytes;
    return boundRecomputation(withBodies(graph, least), order, budgetBytes, options);
  }
  RecomputationProgram program(graph, order, budgetBytes, options.moments, /*withChains=*/true);
  RecomputationBound bound;
  bound.moments = program.getMoments();
  bound.instructions = order.size();
  LinearSolution solution = solveLinearProgram(program.get(), {options.integral, options.seconds});
  bound.isInfeasible = solution.state == LinearSolution::State::Infeasible;
  bound.isSolved = solution.state != LinearSolution::State::Stopped;
  // Rounding errors of the sums must not lift it over the truth.
  bound.seconds = std::max(0.0, solution.bound * (1 - 1e-9) - 1e-9) * program.getSecondsOfOne();
  if (!options.integral || solution.values.empty())
    return bound;
  std::optional<Schedule> schedule = program.write(solution.values, 0.5);
  std::optional<Timeline> timeline = schedule ? evaluate(graph, *schedule) : std::nullopt;
  if (timeline && timeline->peakBytes <= budgetBytes &&
      timeline->seconds <= (1 + 1e-6) * program.getSecondsOfOne() + bound.seconds)
    bound.plan = FittedSchedule{std::move(*schedule), std::move(*timeline), "integer program"};
  return bound;
}

} // namespace lowtide::solve
