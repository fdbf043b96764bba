//===- Fit.cpp - the cheapest schedule under a budget ---------------------===//
//
// 0. A small step is searched exactly (ExactSearch), and that is all.
// 1. Seeds: what published methods save (Baselines), and what is saved when
//    bytes have a price (PricedCut), whatever the budget; of small steps XLA's
//    choices, from one budget to the next.
// 2. Bisect for the smallest budget under which a policy of eviction gets
//    through: the lowest level.
// 3. Climb: at each level the schedule of the level below, what every policy
//    finds there, also with disturbed prices and guided by what a priced cut
//    saves, and the seeds that fit, lose the recomputations that are not
//    needed; the cheapest stays. Where bytes are expensive, at the lowest levels, its
//    own prices are climbed from (PriceSearch).
// 4. Beside it, what blocks keep (BlockChain): plans for many budgets, thinned
//    out in the same way. Levels of their own lie below the lowest of the
//    search; from there on each level takes the cheaper one. The search does not
//    start from them: it might then end above what it finds alone.
// 5. The smallest plan is made smaller, and every level's cheapest cheaper, by
//    exchanging recomputations (RematLocalSearch); that goes on from level to level,
//    in a small step also at budgets between them.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Fit.h"
#include "ExactSearch.h"
#include "Ladder.h"
#include "PriceSearch.h"
#include "PricedCut.h"
#include "lowtide/Solve/Baselines.h"
#include "lowtide/Solve/BlockChain.h"
#include "lowtide/Solve/RematLocalSearch.h"

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
  if (std::optional<std::vector<FittedSchedule>> all = searchExactly(graph, order)) {
    found.assign(std::make_move_iterator(all->begin()), std::make_move_iterator(all->end()));
    isExact = true;
    return;
  }
  listSeeds();
  listBlockPlans();
  findSmallest();
}

void Front::listSeeds() {
  for (auto *plan : {&planSegments, &planCuts})
    for (FittedSchedule &seed : (*plan)(graph, order))
      seeds.push_back(std::move(seed));
  // XLA's choice of a large step takes long and is far behind.
  if (const size_t length = order.size(); length <= 512) {
    const auto rungs = unsigned(std::clamp<size_t>(1'000'000 / (length * length + 1), 48, 512));
    const uint64_t low = findLowerBound(graph).bytes, high = largest.timeline.peakBytes;
    for (unsigned rung = 0; rung < rungs; ++rung)
      if (std::optional<FittedSchedule> greedy = planGreedily(graph, order, getRung(low, high, rung, rungs)))
        seeds.push_back(std::move(*greedy));
  }
  for (const std::vector<SavedSet> &family : listPricedCuts(graph, order)) {
    for (const SavedSet &saved : family)
      seeds.push_back(planFromSaved(graph, order, saved, "cut by price"));
    // What is saved goes last, what is not goes first; neighbours tell the doubtful from the sure.
    Guides &line = guides.emplace_back();
    for (size_t i = 0; i < family.size(); ++i) {
      std::vector<double> &weights = line.weights.emplace_back(graph.values.size(), 0);
      for (size_t k : {i ? i - 1 : 0, i, i, std::min(i + 1, family.size() - 1)})
        for (uint32_t value = 0; value < weights.size(); ++value)
          if (graph.values[value].isForward)
            weights[value] += family[k][value] ? 1.5 : -1.5;
    }
    line.at = line.weights.size() - 1;
  }
  dropUseless(seeds);
}

void Front::listBlockPlans() {
  BlockChain chain(graph, order);
  const uint64_t low = findLowerBound(graph).bytes, high = largest.timeline.peakBytes;
  const unsigned rungs = 4 * options.levels;
  for (unsigned rung = 0; rung < rungs; ++rung)
    if (std::optional<FittedSchedule> plan = chain.plan(getRung(low, high, rung, rungs)))
      apart.push_back(std::move(*plan));
  dropUseless(apart);
}

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
  const std::span<const NamedPolicy> policies = listPolicies();
  std::vector<NamedPolicy> candidates(policies.begin(), policies.end());
  for (const Guides &line : guides)
    candidates.push_back({"evicting by price", {1, 1, 1, line.weights.back()}});
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
    return climbPrices(graph, order, budget, plan, getClimbs(0, plan), 0);
  };
  // Here bytes are most expensive, and one policy alone got through.
  searched.push_back(climbAt(std::move(best)));
  const uint64_t searchedFrom = searched.front().timeline.peakBytes, most = largest.timeline.peakBytes;
  const bool isByBlocks = !apart.empty() && apart.front().timeline.peakBytes < searchedFrom;
  FittedSchedule smallest = isByBlocks ? climbAt(apart.front()) : searched.front();
  // A 128th at a time, as long as one of a few tries gets through.
  while (std::optional<FittedSchedule> smaller =
             shrinkPeak(graph, smallest.timeline.peakBytes - smallest.timeline.peakBytes / 128, smallest,
                        std::min(getExchanges(1, smallest), 32u), /*seed=*/0))
    smallest = exchange(1, smaller->timeline.peakBytes, *smaller);
  found.push_back(exchange(0, smallest.timeline.peakBytes, smallest));
  // In as few bytes, but hard to pack: beside the smallest, not in its place.
  if (FittedSchedule cheaper = exchange(1, smallest.timeline.peakBytes, found.front());
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

FittedSchedule Front::exchange(unsigned rung, uint64_t budgetBytes, const FittedSchedule &plan) const {
  // Draws may lead nowhere. The smallest plan, the first that is found, has to pack.
  const unsigned attempts = isSmall(graph) ? 2 : 1;
  FittedSchedule best = plan;
  for (unsigned attempt = 0; attempt < attempts; ++attempt) {
    FittedSchedule next = searchRematNearby(graph, budgetBytes, plan,
                                            {.rounds = getExchanges(rung, plan),
                                             .seed = rung + (uint64_t(attempt) << 32),
                                             .mayKeepSources = !found.empty()});
    if (next.timeline.seconds < best.timeline.seconds)
      best = std::move(next);
  }
  return best;
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
  found.push_back(exchange(rung, budget, best));
}

void Front::search() {
  const unsigned level = searched.size();
  const uint64_t budget = getSearchBudget(level);
  FittedSchedule best = searched.back();
  dropRecomputations(graph, budget, best.schedule, best.timeline);
  auto consider = [&](std::optional<FittedSchedule> plan) {
    if (plan && plan->timeline.seconds < best.timeline.seconds)
      best = std::move(*plan);
  };
  const NamedPolicy *leader = nullptr;
  double leaderSeconds = 0;
  for (const NamedPolicy &candidate : listPolicies()) {
    std::optional<FittedSchedule> plan = tryPolicy(graph, order, budget, candidate);
    if (plan && (!leader || plan->timeline.seconds < leaderSeconds)) {
      leader = &candidate;
      leaderSeconds = plan->timeline.seconds;
    }
    consider(std::move(plan));
  }
  for (Guides &line : guides) {
    // Towards lower prices, since there are more bytes than at the level below; one step back.
    double least = 0;
    size_t start = std::min(line.at + 1, line.weights.size() - 1), at = line.at;
    for (size_t i = start + 1; i-- > 0 && i + 2 >= at;) {
      std::optional<FittedSchedule> plan =
          tryPolicy(graph, order, budget, {"evicting by price", {1, 1, 1, line.weights[i]}});
      if (plan && (!least || plan->timeline.seconds < least)) {
        least = plan->timeline.seconds;
        at = i;
      }
      consider(std::move(plan));
    }
    line.at = at;
  }
  for (const FittedSchedule &seed : seeds)
    if (seed.timeline.peakBytes <= budget && seed.timeline.peakBytes > getSearchBudget(level - 1)) {
      FittedSchedule plan = seed;
      dropRecomputations(graph, budget, plan.schedule, plan.timeline);
      consider(std::move(plan));
    }
  // Small steps are searched longer, and with larger factors.
  std::mt19937_64 random(level);
  auto draw = [&] { return double(random() >> 11) * 0x1p-52 - 1; };
  const unsigned rounds = std::max<unsigned>(options.rounds, std::min<size_t>(60, 1500 / (order.size() + 1)));
  for (unsigned round = 0; leader && round < rounds; ++round) {
    NamedPolicy disturbed = round < options.rounds ? *leader : listPolicies()[random() % listPolicies().size()];
    const double largest = round < options.rounds ? 1 : 1 + round % 4;
    disturbed.policy.weights.resize(graph.values.size());
    // Every other time around the best so far: what runs again in it goes first.
    std::vector<char> again(graph.values.size(), false);
    if (round % 2) {
      disturbed.name = "evicting as the best so far";
      again = listRemade(graph, best.schedule);
    }
    for (uint32_t value = 0; value < again.size(); ++value)
      disturbed.policy.weights[value] = largest * draw() + (round % 2 ? (again[value] ? -2.0 : 2.0) : 0);
    consider(tryPolicy(graph, order, budget, disturbed));
  }
  searched.push_back(climbPrices(graph, order, budget, best, getClimbs(level, best), level));
}

std::vector<const FittedSchedule *> Front::listRung(unsigned rung) const {
  std::vector<const FittedSchedule *> plans{&found[rung]};
  // It may have a smaller peak.
  if (rung >= rungsBelow && (rung - rungsBelow) % rungsPerLevel == 0)
    if (const size_t level = (rung - rungsBelow) / rungsPerLevel; level < searched.size())
      plans.push_back(&searched[level]);
  return plans;
}

const FittedSchedule *Front::find(uint64_t budgetBytes) {
  if (found.front().timeline.peakBytes > budgetBytes)
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
