//===- Shrink.cpp - a failing graph made small ------------------*- C++ -*-===//
//
// Delta debugging by hand: settings first, then each node, from the last to the first, gives way to one of its operands
// of the same type, or to a leaf.
//
//===----------------------------------------------------------------------===//
#include "Shrink.h"

using namespace lowtide::test;

/// Everybody who reads `from` reads `to`.
static void replaceUses(StepGraph &graph, Use from, Use to) {
  for (Node &node : graph.nodes)
    for (Use &use : node.operands)
      if (use == from)
        use = to;
  if (graph.loss == from)
    graph.loss = to;
  for (Use &use : graph.outputs)
    if (use == from)
      use = to;
  for (auto &[state, value] : graph.updates)
    if (value == from)
      value = to;
}

/// Puts a leaf of the node's type in its place: a batch array, or a parameter where no dimension counts samples.
static void makeLeaf(StepGraph &graph, unsigned number, Node::Kind kind) {
  Node &node = graph.nodes[number];
  node.kind = kind;
  node.text.clear();
  node.operands.clear();
  node.results.resize(1);
  node.low = node.results[0].isFloat() ? -1 : 0;
  node.high = node.results[0].element == "i1" ? 2 : 1;
}

namespace {

class Shrinker {
public:
  Shrinker(StepGraph &graph, StepSettings &settings, const StillFails &fails, unsigned tries)
      : graph(graph), settings(settings), fails(fails), tries(tries) {}

  void run() {
    shrinkSettings();
    for (unsigned before = 0; tries && before != graph.countOps();) {
      before = graph.countOps();
      for (size_t i = graph.nodes.size(); i-- > 0 && tries;)
        if (i < graph.nodes.size() && graph.nodes[i].kind == Node::Kind::Op)
          shrinkNode(static_cast<unsigned>(i));
    }
    for (size_t i = graph.updates.size(); i-- > 0;)
      tryWithout([i](StepGraph &smaller) { smaller.updates.erase(smaller.updates.begin() + i); });
    tryWithout([](StepGraph &smaller) { smaller.outputs.clear(); });
  }

private:
  bool accept(StepGraph smaller, const StepSettings &simpler) {
    if (!tries || smaller.loss.node >= smaller.nodes.size())
      return false;
    --tries;
    smaller.removeDead();
    if (!fails(smaller, simpler))
      return false;
    graph = std::move(smaller);
    settings = simpler;
    return true;
  }
  template <typename Change> bool tryWithout(Change change) {
    StepGraph smaller = graph;
    change(smaller);
    return accept(std::move(smaller), settings);
  }

  void shrinkSettings() {
    const StepSettings plain;
    auto trySetting = [&](auto member) {
      StepSettings simpler = settings;
      simpler.*member = plain.*member;
      accept(graph, simpler);
    };
    trySetting(&StepSettings::precision);
    trySetting(&StepSettings::lossScale);
    trySetting(&StepSettings::clipNorm);
    trySetting(&StepSettings::microBatches);
    trySetting(&StepSettings::lossHead);
    trySetting(&StepSettings::optimizer);
  }

  void shrinkNode(unsigned number) {
    const Node node = graph.nodes[number];
    for (Use operand : node.operands)
      if (graph.shape(operand) == node.results[0] &&
          tryWithout([&](StepGraph &smaller) { replaceUses(smaller, {number, 0}, operand); }))
        return;
    if (node.results.size() > 1 || node.text.rfind("nn.constant", 0) == 0)
      return;
    if (!tryWithout([&](StepGraph &smaller) { makeLeaf(smaller, number, Node::Kind::Batch); }) &&
        node.results[0].element == "f32")
      tryWithout([&](StepGraph &smaller) { makeLeaf(smaller, number, Node::Kind::Param); });
  }

  StepGraph &graph;
  StepSettings &settings;
  const StillFails &fails;
  unsigned tries;
};

} // namespace

void lowtide::test::shrinkGraph(StepGraph &graph, StepSettings &settings, const StillFails &fails, unsigned tries) {
  Shrinker(graph, settings, fails, tries).run();
}
