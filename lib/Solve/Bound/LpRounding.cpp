//===- LpRounding.cpp - Checkmate's rounded linear program ----------------===//
#include "RecomputationProgram.h"
#include "lowtide/Solve/Searches/Baselines.h"

namespace lowtide::solve {

std::optional<FittedSchedule> planByRounding(const StepGraph &graph, std::span<const uint32_t> order,
                                             uint64_t budgetBytes, double seconds) {
  // A tenth of the budget is left for what rounding adds, or nothing.
  std::optional<FittedSchedule> best;
  for (double share : {0.9, 1.0}) {
    RecomputationProgram program(graph, order, uint64_t(share * double(budgetBytes)), /*mostMoments=*/100);
    LinearSolution solution = solveLinearProgram(program.get(), {/*integral=*/false, seconds});
    // Of a program that took too long, what there is: schedules are judged by their own peak and time.
    if (solution.values.empty())
      continue;
    for (unsigned tenths = 1; tenths <= 9; ++tenths) {
      std::optional<Schedule> schedule =
          program.write(solution.values, 0.1 * tenths, RecomputationProgram::Again::OnDemand);
      std::optional<Timeline> timeline = schedule ? evaluate(graph, *schedule) : std::nullopt;
      if (timeline && timeline->peakBytes <= budgetBytes && (!best || timeline->seconds < best->timeline.seconds))
        best = FittedSchedule{std::move(*schedule), std::move(*timeline), "rounded linear program"};
    }
  }
  return best;
}

} // namespace lowtide::solve
