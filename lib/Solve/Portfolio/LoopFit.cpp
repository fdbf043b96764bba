//===- LoopFit.cpp - the cheapest schedule of a step with loops -----------===//
//
// 1. Each body has a front of its own, as deep as loops are nested.
// 2. A ladder of budgets for the bodies, from their smallest to their largest
//    peaks: a level gives each body the cheapest plan within its rung. The step
//    around these plans has no loops any more.
// 3. At a budget, the cheapest of: every level's step without recomputation of
//    its own, and some levels' steps with (Fit).
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Portfolio/LoopFit.h"
#include "../Model/Ladder.h"

namespace lowtide::solve {

LoopFront::LoopFront(const StepGraph &graph, const FitOptions &options) : graph(graph), options(options) {
  std::vector<FittedSchedule> most;
  bodies.reserve(graph.loops.size());
  for (const StepLoop &loop : graph.loops) {
    bodies.emplace_back(loop.body, options);
    most.push_back(bodies.back().getLargest());
  }
  Variant variant = makeVariant(std::move(most));
  if (std::all_of(bodies.begin(), bodies.end(), [](const LoopFront &body) { return body.isValid(); })) {
    largest = variant.plain;
    largest.bodies = variant.bodies;
  }
  if (isValid() && isChoice()) {
    levels = options.levels + 1;
    // A large step is planned anew around few of the bodies' plans only.
    const unsigned fronts = std::clamp<unsigned>(unsigned(8192 / (graph.operations.size() + 1)), 2, 8);
    stride = (levels + fronts - 2) / (fronts - 1);
    this->options.climbed /= fronts;
    this->options.exchanged /= fronts;
  }
  variants.resize(levels);
  if (levels == 1)
    variants[0] = std::make_shared<Variant>(std::move(variant));
}

bool LoopFront::isChoice() {
  return std::any_of(bodies.begin(), bodies.end(), [](LoopFront &body) {
    return body.getSmallest().timeline.peakBytes < body.getLargest().timeline.peakBytes;
  });
}

LoopFront::Variant LoopFront::makeVariant(std::vector<FittedSchedule> plans) {
  Variant variant;
  variant.bodies = std::move(plans);
  variant.graph = withBodies(graph, variant.bodies);
  variant.plain.schedule = originalSchedule(variant.graph);
  variant.plain.timeline = evaluate(variant.graph, variant.plain.schedule).value_or(Timeline());
  variant.plain.method = "no recomputation";
  for (const FittedSchedule &body : variant.bodies)
    if (body.timeline.recomputed)
      variant.plain.method = body.method;
  return variant;
}

uint64_t LoopFront::getBodyBudget(size_t loop, unsigned level) {
  return getRung(bodies[loop].getSmallest().timeline.peakBytes, bodies[loop].getLargest().timeline.peakBytes, level,
                 levels - 1);
}

LoopFront::Variant *LoopFront::getVariant(unsigned level, uint64_t limit) {
  if (variants[level])
    return variants[level].get();
  for (size_t i = 0; i < bodies.size(); ++i)
    if (getBodyBudget(i, level) > limit)
      return nullptr;
  std::vector<FittedSchedule> plans;
  bool isNew = level == 0 || !variants[level - 1];
  for (size_t i = 0; i < bodies.size(); ++i) {
    plans.push_back(*bodies[i].find(getBodyBudget(i, level)));
    isNew = isNew || plans.back().timeline.seconds < variants[level - 1]->bodies[i].timeline.seconds;
  }
  variants[level] = isNew ? std::make_shared<Variant>(makeVariant(std::move(plans))) : variants[level - 1];
  return variants[level].get();
}

Front &LoopFront::getFront(Variant &variant) {
  if (!variant.front)
    variant.front = std::make_unique<Front>(variant.graph, variant.plain.schedule, options);
  return *variant.front;
}

const FittedSchedule *LoopFront::complete(const Variant &variant, const FittedSchedule *plan) {
  if (!plan)
    return nullptr;
  std::unique_ptr<FittedSchedule> &whole = completed[plan];
  if (!whole) {
    whole = std::make_unique<FittedSchedule>(*plan);
    whole->bodies = variant.bodies;
    for (const FittedSchedule &body : variant.bodies)
      whole->timeline.recomputed += body.timeline.recomputed;
  }
  return whole.get();
}

const FittedSchedule *LoopFront::find(uint64_t budgetBytes) {
  if (!isValid())
    return nullptr;
  if (largest.timeline.peakBytes <= budgetBytes)
    return &largest;
  if (getSmallest().timeline.peakBytes > budgetBytes)
    return nullptr;
  const FittedSchedule *best = nullptr;
  const Variant *bestVariant = nullptr;
  auto consider = [&](const Variant &variant, const FittedSchedule *plan) {
    if (plan && plan->timeline.peakBytes <= budgetBytes && (!best || plan->timeline.seconds < best->timeline.seconds)) {
      best = plan;
      bestVariant = &variant;
    }
  };
  for (unsigned level = 0; level < levels; ++level) {
    Variant *variant = getVariant(level, budgetBytes);
    if (!variant)
      break;
    consider(*variant, &variant->plain);
    if (level % stride == 0 || level + 1 == levels)
      consider(*variant, getFront(*variant).find(budgetBytes));
  }
  return best ? complete(*bestVariant, best) : nullptr;
}

const FittedSchedule &LoopFront::getSmallest() {
  if (!isValid())
    return largest;
  Variant &variant = *getVariant(0, UINT64_MAX);
  return *complete(variant, &getFront(variant).getSmallest());
}

const FittedSchedule &LoopFront::getFirst() {
  if (!isValid())
    return largest;
  Variant &variant = *getVariant(0, UINT64_MAX);
  return *complete(variant, &getFront(variant).getFirst());
}

std::vector<const FittedSchedule *> LoopFront::getPareto() {
  std::vector<const FittedSchedule *> all{&largest};
  if (isValid())
    for (unsigned level = 0; level < levels; ++level) {
      Variant &variant = *getVariant(level, UINT64_MAX);
      all.push_back(complete(variant, &variant.plain));
      if (level % stride == 0 || level + 1 == levels)
        for (const FittedSchedule *plan : getFront(variant).getPareto())
          all.push_back(complete(variant, plan));
    }
  return keepUseful(std::move(all));
}

std::optional<FittedSchedule> planAroundLoops(const StepGraph &graph, uint64_t budgetBytes, const Planner &planner) {
  std::vector<FittedSchedule> bodies;
  for (const StepLoop &loop : graph.loops) {
    // What the loop's operands and results take whatever its body does.
    uint64_t around = 0;
    const StepOperation &operation = graph.operations[loop.operation];
    for (const std::vector<uint32_t> *values : {&operation.reads, &operation.writes})
      for (uint32_t value : *values)
        around += graph.values[value].placed ? 0 : graph.size(value);
    std::optional<FittedSchedule> body =
        planAroundLoops(loop.body, budgetBytes > around ? budgetBytes - around : 0, planner);
    if (!body) {
      body = FittedSchedule{originalSchedule(loop.body), {}, "as given"};
      body->timeline = evaluate(loop.body, body->schedule).value_or(Timeline());
    }
    bodies.push_back(std::move(*body));
  }
  StepGraph plain = withBodies(graph, bodies);
  std::optional<FittedSchedule> plan = planner(plain, originalSchedule(plain), budgetBytes);
  if (!plan)
    return std::nullopt;
  for (const FittedSchedule &body : bodies)
    plan->timeline.recomputed += body.timeline.recomputed;
  plan->bodies = std::move(bodies);
  return plan;
}

} // namespace lowtide::solve
