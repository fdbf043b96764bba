//===- Fit.cpp - the cheapest schedule under a budget ---------------------===//
//
// Methods (lib/Solve/Methods) are asked in the order of their table:
// 0. Who can list all plans of the step does, and that is all.
// 1. Seeds, which depend on no budget; and plans that stand apart.
// 2. Bisect for the smallest budget under which a policy of eviction gets
//    through: the lowest level of the search.
// 3. Climb: at each level the schedule of the level below, what the methods
//    find there, and the seeds that fit, lose the recomputations that are not
//    needed; the cheapest stays and is improved.
// 4. Next to it, the plans that stand apart. Rungs of their own lie below the
//    lowest level of the search; from there on each takes the cheaper one.
// 5. The smallest plan is shrunk, and every rung's cheapest improved, from one
//    rung to the next; in a small step also at budgets between levels.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Portfolio/Fit.h"
#include "../Methods/Method.h"
#include "../Model/Ladder.h"

namespace lowtide::solve {

Front::Front(const StepGraph &graph, Schedule given, const FitOptions &options)
    : graph(graph), order(std::move(given)), options(options),
      // Of a small step plans are few and far between: one may fit just above a rung.
      rungsPerLevel(isSmall(graph) ? 3 : 1) {
  largest = {order, evaluate(graph, order).value_or(Timeline()), "no recomputation"};
  if (largest.timeline.live.empty()) {
    found.push_back(largest);
    isExact = true;
    return;
  }
  const MethodTask task{graph, order, largest.timeline.peakBytes, options.levels, options.rounds};
  for (const MethodRow &row : listMethodRows())
    if (std::find(options.without.begin(), options.without.end(), row.name) == options.without.end())
      methods.push_back(row.make(task));
  for (const auto &method : methods)
    if (std::optional<std::vector<FittedSchedule>> all = method->solve()) {
      found.assign(std::make_move_iterator(all->begin()), std::make_move_iterator(all->end()));
      isExact = true;
      return;
    }
  for (const auto &method : methods) {
    std::ranges::move(method->listSeeds(), std::back_inserter(seeds));
    std::ranges::move(method->listFinished(), std::back_inserter(apart));
  }
  dropUseless(seeds);
  dropUseless(apart);
  findSmallest();
}

Front::~Front() = default;

void Front::dropUseless(std::vector<FittedSchedule> &plans) const {
  std::vector<const FittedSchedule *> all;
  for (const FittedSchedule &plan : plans)
    if (plan.timeline.peakBytes < largest.timeline.peakBytes)
      all.push_back(&plan);
  std::vector<FittedSchedule> useful;
  for (const FittedSchedule *plan : keepUseful(std::move(all)))
    useful.push_back(*plan);
  plans = std::move(useful);
}

void Front::findSmallest() {
  FittedSchedule best = largest;
  if (!seeds.empty())
    best = seeds.front();
  const uint64_t low = findLowerBound(graph).bytes;
  // One policy may fail where another gets through.
  std::vector<NamedPolicy> candidates;
  for (const auto &method : methods)
    std::ranges::move(method->listPolicies(), std::back_inserter(candidates));
  for (const NamedPolicy &candidate : candidates) {
    // A policy may get through far below a budget at which it fails: each has a range of its own.
    uint64_t fails = low ? low - 1 : 0, passes = largest.timeline.peakBytes;
    for (unsigned step = 0; step < 12 && passes > fails + fails / 256 + graph.alignment; ++step) {
      const uint64_t budget = fails + (passes - fails) / 2;
      std::optional<Schedule> schedule = evictUnder(graph, order, budget, candidate.policy);
      std::optional<Timeline> timeline = schedule ? evaluate(graph, *schedule) : std::nullopt;
      if (!timeline || timeline->peakBytes >= passes) {
        fails = budget;
        continue;
      }
      passes = timeline->peakBytes;
      if (passes < best.timeline.peakBytes)
        best = {std::move(*schedule), std::move(*timeline), candidate.name};
    }
  }
  auto climbAt = [&](FittedSchedule plan) {
    const uint64_t budget = plan.timeline.peakBytes;
    dropRecomputations(graph, budget, plan.schedule, plan.timeline);
    return improveLevel(0, budget, std::move(plan));
  };
  // Here bytes are most expensive, and one policy alone got through.
  searched.push_back(climbAt(std::move(best)));
  const uint64_t searchedFrom = searched.front().timeline.peakBytes, most = largest.timeline.peakBytes;
  const bool isByBlocks = !apart.empty() && apart.front().timeline.peakBytes < searchedFrom;
  FittedSchedule smallest = isByBlocks ? climbAt(apart.front()) : searched.front();
  // A 128th at a time, as long as one of a few tries gets through.
  while (std::optional<FittedSchedule> smaller = shrink(smallest))
    smallest = improve(1, smaller->timeline.peakBytes, *smaller);
  found.push_back(improve(0, smallest.timeline.peakBytes, smallest));
  // In as few bytes, but hard to pack: beside the smallest, not in its place.
  if (FittedSchedule cheaper = improve(1, smallest.timeline.peakBytes, found.front());
      cheaper.timeline.seconds < found.front().timeline.seconds) {
    apart.push_back(std::move(cheaper));
    dropUseless(apart);
  }
  const uint64_t least = found.front().timeline.peakBytes;
  if (least >= searchedFrom)
    return;
  rungsBelow =
      unsigned(std::clamp<uint64_t>((searchedFrom - least) * getRungs() / (most - searchedFrom + 1), 1, getRungs()));
}

unsigned Front::getClimbs(unsigned level, const FittedSchedule &start) const {
  // To thin out a schedule takes its length times what runs again in it.
  const size_t length = start.schedule.size() * (1 + start.timeline.recomputed / (order.size() + 1)) + 1;
  const unsigned most =
      unsigned(std::min({options.climbed / (order.size() + 1), 4 * options.climbed / length, order.size()}));
  return level == 0 ? most : level <= options.levels / 4 ? most / 6 : 0;
}

unsigned Front::getExchanges(unsigned rung, const FittedSchedule &start) const {
  // A round takes about the length of the schedule times what runs again in it.
  const size_t again = start.timeline.recomputed, round = start.schedule.size() * again + 1;
  const size_t part = rung == 0 ? 1 : rung <= getRungs() / 4 ? 12 : 48;
  return unsigned(std::min(options.exchanged / part / round, (rung == 0 ? 16 : 2) * again));
}

FittedSchedule Front::improve(unsigned rung, uint64_t budgetBytes, const FittedSchedule &plan) const {
  // Draws may lead nowhere. The smallest plan, the first that is found, has to pack.
  const unsigned attempts = isSmall(graph) ? 2 : 1;
  FittedSchedule best = plan;
  for (const auto &method : methods) {
    const FittedSchedule start = best;
    for (unsigned attempt = 0; attempt < attempts; ++attempt) {
      FittedSchedule next = method->improveAtBudget(
          {budgetBytes, start, getExchanges(rung, start), rung + (uint64_t(attempt) << 32), !found.empty()});
      if (next.timeline.seconds < best.timeline.seconds)
        best = std::move(next);
    }
  }
  return best;
}

FittedSchedule Front::improveLevel(unsigned level, uint64_t budgetBytes, FittedSchedule plan) const {
  for (const auto &method : methods)
    plan = method->improveAtLevel({budgetBytes, plan, getClimbs(level, plan), level});
  return plan;
}

std::optional<FittedSchedule> Front::shrink(const FittedSchedule &plan) const {
  const uint64_t bytes = plan.timeline.peakBytes;
  for (const auto &method : methods)
    if (std::optional<FittedSchedule> smaller =
            method->shrink({bytes - bytes / 128, plan, std::min(getExchanges(1, plan), 32u), /*seed=*/0}))
      return smaller;
  return std::nullopt;
}

uint64_t Front::getBudget(unsigned rung) const {
  const uint64_t searchedFrom = searched.front().timeline.peakBytes;
  return rung < rungsBelow ? getRung(found.front().timeline.peakBytes, searchedFrom, rung, rungsBelow)
                           : getRung(searchedFrom, largest.timeline.peakBytes, rung - rungsBelow, getRungs());
}

void Front::climb() {
  const unsigned rung = found.size();
  const uint64_t budget = getBudget(rung);
  if (rung >= rungsBelow + getRungs()) {
    found.push_back(largest);
    return;
  }
  FittedSchedule best = found.back();
  dropRecomputations(graph, budget, best.schedule, best.timeline);
  for (const FittedSchedule &seed : apart)
    if (seed.timeline.peakBytes <= budget && seed.timeline.peakBytes >= getBudget(rung - 1)) {
      FittedSchedule plan = seed;
      dropRecomputations(graph, budget, plan.schedule, plan.timeline);
      if (plan.timeline.seconds < best.timeline.seconds)
        best = std::move(plan);
    }
  if (rung > rungsBelow && (rung - rungsBelow) % rungsPerLevel == 0)
    search();
  if (rung >= rungsBelow && searched.back().timeline.seconds < best.timeline.seconds)
    best = searched.back();
  found.push_back(improve(rung, budget, best));
}

void Front::search() {
  Level level{unsigned(searched.size()), getSearchBudget(searched.size()), searched.back()};
  dropRecomputations(graph, level.budgetBytes, level.best.schedule, level.best.timeline);
  for (const auto &method : methods)
    method->search(level);
  for (const FittedSchedule &seed : seeds)
    if (seed.timeline.peakBytes <= level.budgetBytes && seed.timeline.peakBytes > getSearchBudget(level.number - 1)) {
      FittedSchedule plan = seed;
      dropRecomputations(graph, level.budgetBytes, plan.schedule, plan.timeline);
      level.consider(std::move(plan));
    }
  for (const auto &method : methods)
    method->vary(level);
  searched.push_back(improveLevel(level.number, level.budgetBytes, std::move(level.best)));
}

std::vector<const FittedSchedule *> Front::listRung(unsigned rung) const {
  std::vector<const FittedSchedule *> plans{&found[rung]};
  // It may have a smaller peak.
  if (rung >= rungsBelow && (rung - rungsBelow) % rungsPerLevel == 0)
    if (const size_t level = (rung - rungsBelow) / rungsPerLevel; level < searched.size())
      plans.push_back(&searched[level]);
  return plans;
}

const FittedSchedule &Front::getSmallest() const {
  // By peak.
  const bool isApart = !apart.empty() && apart.front().timeline.peakBytes < found.front().timeline.peakBytes;
  return isApart ? apart.front() : found.front();
}

const FittedSchedule *Front::find(uint64_t budgetBytes) {
  if (getSmallest().timeline.peakBytes > budgetBytes)
    return nullptr;
  if (largest.timeline.peakBytes <= budgetBytes)
    return &largest;
  while (!isExact && found.size() <= rungsBelow + getRungs() && getBudget(found.size()) <= budgetBytes)
    climb();
  const FittedSchedule *best = nullptr;
  auto consider = [&](const FittedSchedule &plan) {
    if (plan.timeline.peakBytes <= budgetBytes && (!best || plan.timeline.seconds < best->timeline.seconds))
      best = &plan;
  };
  for (unsigned rung = 0; rung < found.size() && (isExact || getBudget(rung) <= budgetBytes); ++rung)
    for (const FittedSchedule *plan : listRung(rung))
      consider(*plan);
  for (const std::vector<FittedSchedule> *plans : {&seeds, &apart})
    for (const FittedSchedule &plan : *plans)
      consider(plan);
  return best;
}

std::vector<const FittedSchedule *> Front::getPareto() {
  while (!isExact && found.size() <= rungsBelow + getRungs())
    climb();
  std::vector<const FittedSchedule *> all;
  for (unsigned rung = 0; rung < found.size(); ++rung)
    for (const FittedSchedule *plan : listRung(rung))
      all.push_back(plan);
  for (const std::vector<FittedSchedule> *plans : {&seeds, &apart})
    for (const FittedSchedule &plan : *plans)
      all.push_back(&plan);
  return keepUseful(std::move(all));
}

} // namespace lowtide::solve
