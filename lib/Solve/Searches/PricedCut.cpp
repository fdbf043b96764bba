//===- PricedCut.cpp - what to save when bytes have a price ---------------===//
//
// With a price for each value, the cheapest saved set is a minimum cut. A value
// is needed after the loss, or not; an operation runs again, or not. What is
// needed is saved, for its price, or its maker runs again, for its seconds; what
// that reads is needed then. The price of a value is its bytes, times how much
// of the time between its last forward reader and its next need is expensive.
//
//===----------------------------------------------------------------------===//
#include "PricedCut.h"
#include "lowtide/Solve/Algorithms/FlowNetwork.h"

#include <algorithm>
#include <cmath>

namespace lowtide::solve {
namespace {

class PricedCut {
public:
  PricedCut(const StepGraph &graph, std::span<const uint32_t> order) : graph(graph), order(order) {
    const size_t numValues = graph.values.size();
    isSavable.assign(numValues, false);
    isNeeded.assign(numValues, false);
    freeFrom.assign(numValues, 0);
    neededAt.assign(numValues, uint32_t(order.size()));
    for (uint32_t now = 0; now < order.size(); ++now) {
      const StepOperation &operation = graph.operations[order[now]];
      seconds += operation.isForward ? operation.seconds : 0;
      for (uint32_t value : operation.writes) {
        isSavable[value] = operation.isForward && !graph.values[value].placed;
        freeFrom[value] = now + 1;
        bytes += isSavable[value] ? double(graph.size(value)) : 0;
      }
      for (uint32_t value : operation.reads)
        if (isSavable[value] && operation.isForward) {
          freeFrom[value] = now + 1;
        } else if (isSavable[value]) {
          isNeeded[value] = true;
          neededAt[value] = std::min(neededAt[value], now);
        }
    }
    // What a value is made from is needed when it is.
    for (size_t i = order.size(); i-- > 0;)
      if (graph.operations[order[i]].isForward) {
        const std::vector<uint32_t> reruns = listReruns(graph, order[i]);
        // A part may read what another makes: as many rounds as there are parts reach all of them.
        for (size_t round = 0; round < reruns.size(); ++round)
          for (uint32_t again : reruns)
            for (uint32_t value : graph.at(again).writes)
              for (uint32_t read : graph.at(again).reads)
                neededAt[read] = std::min(neededAt[read], neededAt[value]);
      }
  }

  bool isEmpty() const { return seconds <= 0 || bytes <= 0; }
  /// Seconds to make a byte, on the average.
  double getMeanPrice() const { return seconds / bytes; }

  /// Per value, its bytes times the share of `expensive` instructions through which it would have to stay.
  std::vector<double> weigh(const std::vector<char> &expensive) const {
    std::vector<double> before(expensive.size() + 1, 0), weights(graph.values.size(), 0);
    for (size_t i = 0; i < expensive.size(); ++i)
      before[i + 1] = before[i] + expensive[i];
    for (uint32_t value = 0; value < weights.size(); ++value)
      if (isSavable[value] && !graph.values[value].kept && freeFrom[value] < neededAt[value] && before.back() > 0)
        weights[value] =
            double(graph.size(value)) * (before[neededAt[value]] - before[freeFrom[value]]) / before.back();
    return weights;
  }

  /// Per value, its bytes, if it has to be recomputed or saved.
  std::vector<double> weighApart(const std::vector<char> &isFree) const {
    std::vector<double> weights(graph.values.size(), 0);
    for (uint32_t value = 0; value < weights.size(); ++value)
      if (isSavable[value] && !graph.values[value].kept && !isFree[value])
        weights[value] = double(graph.size(value));
    return weights;
  }

  /// The cuts of ever higher prices, each once.
  std::vector<SavedSet> listSaved(const std::vector<double> &weights) const {
    std::vector<SavedSet> family;
    for (int step = -12; step <= 14; ++step)
      if (SavedSet saved = findSaved(weights, getMeanPrice() * std::exp2(0.5 * step));
          family.empty() || saved != family.back())
        family.push_back(std::move(saved));
    return family;
  }

  /// The cheapest saved set where saving a value costs `price` times its weight.
  SavedSet findSaved(const std::vector<double> &weights, double price) const {
    const uint32_t numValues = graph.values.size(), source = numValues + graph.operations.size() + graph.reruns.size(),
                   sink = source + 1;
    // Whole numbers, fine enough for a billionth of the step.
    const double unit = 1e12 / seconds;
    auto scaled = [&](double cost) { return int64_t(std::min(cost * unit, 1e15)) + 1; };
    FlowNetwork network(sink + 1);
    for (uint32_t op : order) {
      const StepOperation &operation = graph.operations[op];
      if (!operation.isForward)
        continue;
      for (uint32_t value : operation.writes) {
        if (!isSavable[value])
          continue;
        if (isNeeded[value])
          network.addEdge(source, value, FlowNetwork::infinity);
        if (std::optional<uint32_t> maker = findMaker(graph, value))
          network.addEdge(value, numValues + *maker, weights[value] > 0 ? scaled(price * weights[value]) : 0);
      }
      for (uint32_t again : listReruns(graph, op)) {
        network.addEdge(numValues + again, sink, scaled(graph.at(again).seconds));
        for (uint32_t read : graph.at(again).reads)
          if (isSavable[read])
            network.addEdge(numValues + again, read, FlowNetwork::infinity);
      }
    }
    std::vector<char> side = network.cut(source, sink);
    SavedSet saved(numValues, false);
    for (uint32_t value = 0; value < numValues; ++value) {
      const std::optional<uint32_t> maker = findMaker(graph, value);
      saved[value] = isSavable[value] && side[value] && (!maker || !side[numValues + *maker]);
    }
    return saved;
  }

private:
  const StepGraph &graph;
  std::span<const uint32_t> order;
  /// Of the forward pass.
  double seconds = 0, bytes = 0;
  /// Per value: made by the forward pass; read after the loss; the position from which only that reads it, and the
  /// first at which it is needed there, for itself or for what is made from it.
  std::vector<char> isSavable, isNeeded;
  std::vector<uint32_t> freeFrom, neededAt;
};

} // namespace

std::vector<std::vector<SavedSet>> listPricedCuts(const StepGraph &graph, std::span<const uint32_t> order) {
  std::vector<std::vector<SavedSet>> families;
  const PricedCut cut(graph, order);
  std::optional<Timeline> timeline = evaluate(graph, order);
  if (!timeline || cut.isEmpty())
    return families;
  for (double share : {0.97, 0.6, 0.0}) {
    std::vector<char> expensive(order.size());
    for (size_t i = 0; i < expensive.size(); ++i)
      expensive[i] = double(timeline->live[i]) >= share * double(timeline->peakBytes);
    families.push_back(cut.listSaved(cut.weigh(expensive)));
  }
  return families;
}

std::vector<SavedSet> listCutsBetween(const StepGraph &graph, std::span<const uint32_t> order,
                                      const std::vector<char> &isFree) {
  const PricedCut cut(graph, order);
  return cut.isEmpty() ? std::vector<SavedSet>() : cut.listSaved(cut.weighApart(isFree));
}

} // namespace lowtide::solve
