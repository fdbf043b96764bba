//===- OnDemand.cpp - recompute what is missing when it is read -----------===//
#include "OnDemand.h"

namespace lowtide::solve {

bool OnDemand::run(const std::function<void(uint32_t position, std::vector<char> &there)> &forget) {
  for (uint32_t position = 0; position < order.size(); ++position) {
    forget(position, there);
    const StepOperation &operation = graph.operations[order[position]];
    for (uint32_t value : operation.reads)
      if (!provide(value))
        return false;
    schedule.push_back(order[position]);
    for (uint32_t value : operation.writes)
      there[value] = true;
    for (uint32_t value : operation.updates)
      updated[value] = true;
  }
  return true;
}

bool OnDemand::provide(uint32_t value) {
  if (there[value])
    return true;
  const uint32_t op = *findMaker(graph, value);
  for (uint32_t read : graph.at(op).reads) {
    if (graph.values[read].producer < 0 && updated[read]) {
      missing = value;
      return false;
    }
    if (!provide(read))
      return false;
  }
  schedule.push_back(op);
  for (uint32_t result : graph.at(op).writes)
    there[result] = true;
  return true;
}

} // namespace lowtide::solve
