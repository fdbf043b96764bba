//===- RecomputationBound.cpp - how little can be recomputed --------------===//
#include "lowtide/Solve/Bound/RecomputationBound.h"
#include "RecomputationProgram.h"

#include <algorithm>

namespace lowtide::solve {

namespace {
/// Of a step's time: less than that is no difference.
constexpr double nearly = 2e-6;
constexpr double secondsOfWholeNumbers = 120;
constexpr unsigned momentsOfLargeSteps = 64;
} // namespace

RecomputationBound boundRecomputation(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                      const BoundOptions &options) {
  // A loop takes no fewer bytes than its body must; what runs again in it is not counted.
  if (!graph.loops.empty()) {
    std::vector<FittedSchedule> least(graph.loops.size());
    for (size_t i = 0; i < least.size(); ++i)
      least[i].timeline.peakBytes = findLowerBound(graph.loops[i].body).bytes;
    RecomputationBound bound = boundRecomputation(withBodies(graph, least), order, budgetBytes, options);
    // Its bodies may not run in as few bytes.
    bound.plan.reset();
    bound.leavesOutLoops = true;
    if (!bound.isInfeasible)
      bound.kind = std::min(bound.kind, BoundKind::WholeNumbers);
    return bound;
  }
  const unsigned usual = order.size() <= mostKernelsOfWholeNumbers ? mostKernelsOfWholeNumbers : momentsOfLargeSteps;
  RecomputationProgram program(graph, order, budgetBytes, options.points ? options.points : usual, options.countsLanes);
  program.prepareChains();
  RecomputationBound bound;
  bound.points = program.getPoints();
  bound.instructions = order.size();
  LinearSolution solution = solveLinearProgram(
      program.get(), {options.integral, options.seconds},
      [&](const std::vector<double> &columns) { return program.findViolatedChains(columns); },
      [&](const std::vector<double> &columns) { return program.findImpossibleIntervals(columns); });
  bound.isInfeasible = solution.state == LinearSolution::State::Infeasible;
  bound.isSolved = solution.state != LinearSolution::State::Stopped;
  // Neither rounding errors of the sums nor the solver's tolerance must lift it over the truth.
  const double tolerance = options.integral ? 1e-6 : 1e-9;
  bound.seconds = std::max(0.0, solution.bound * (1 - tolerance) - tolerance) * program.getSecondsOfOne();
  bound.kind = bound.isInfeasible ? BoundKind::Exact
               : options.integral ? BoundKind::WholeNumbers
                                  : BoundKind::Relaxation;
  if (!options.integral || solution.values.empty())
    return bound;
  using Again = RecomputationProgram::Again;
  for (Again when : {Again::AsSolved, Again::OnDemand}) {
    std::optional<Schedule> schedule = program.write(solution.values, 0.5, when);
    std::optional<Timeline> timeline = schedule ? evaluate(graph, *schedule) : std::nullopt;
    if (!timeline || timeline->peakBytes > budgetBytes ||
        timeline->seconds > (1 + nearly) * program.getSecondsOfOne() + bound.seconds)
      continue;
    bound.plan = FittedSchedule{std::move(*schedule), std::move(*timeline), "integer program"};
    bound.kind = BoundKind::Exact;
    break;
  }
  return bound;
}

RecomputationBound findTightestBound(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                     double knownSeconds) {
  double whole = 0;
  for (const StepOperation &operation : graph.operations)
    whole += operation.seconds;
  auto isReached = [&](const RecomputationBound &bound) { return knownSeconds <= bound.seconds + nearly * whole; };
  RecomputationBound bound = boundRecomputation(graph, order, budgetBytes);
  if (!isReached(bound) && bound.kind == BoundKind::Relaxation && order.size() <= mostKernelsOfWholeNumbers) {
    RecomputationBound integral =
        boundRecomputation(graph, order, budgetBytes, {.integral = true, .seconds = secondsOfWholeNumbers});
    // One that was stopped may know less than the relaxation.
    if (integral.isInfeasible || integral.seconds >= bound.seconds)
      bound = std::move(integral);
  }
  if (isReached(bound))
    bound.kind = BoundKind::Exact;
  return bound;
}

RecomputationBound boundLanes(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                              double knownSeconds, const BoundOptions &options) {
  BoundOptions withLanes = options;
  withLanes.countsLanes = true;
  withLanes.integral = false;
  RecomputationBound bound = boundRecomputation(graph, order, budgetBytes, withLanes);
  double whole = 0;
  for (const StepOperation &operation : graph.operations)
    whole += operation.kind == StepOperation::Kind::Computes ? operation.seconds : 0;
  if (knownSeconds <= bound.seconds + nearly * whole)
    bound.kind = BoundKind::Exact;
  return bound;
}

std::string describe(const RecomputationBound &bound) {
  if (bound.kind == BoundKind::Exact)
    return "exact";
  std::string text = bound.kind == BoundKind::WholeNumbers ? "integer program" : "relaxation";
  if (bound.points < bound.instructions)
    text +=
        "; bytes counted at " + std::to_string(bound.points) + " of " + std::to_string(bound.instructions) + " kernels";
  if (bound.leavesOutLoops)
    text += "; what runs again in the rounds of loops counts nothing";
  if (!bound.isSolved)
    text += "; the solver's time was over";
  return text;
}

} // namespace lowtide::solve
