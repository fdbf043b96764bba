//===- MergingGraphTest.cpp - paths while nodes join ----------------------===//
//
// Random graphs against a search of everything.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Algorithms/MergingGraph.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace lowtide::solve;

namespace {

/// The same questions, answered by walking all edges.
struct Plain {
  std::vector<uint32_t> owners;
  std::vector<MergingGraph::Edge> edges;

  std::set<uint32_t> successorsOf(uint32_t node) const {
    std::set<uint32_t> result;
    for (auto [from, to] : edges)
      if (owners[from] == node && owners[to] != node)
        result.insert(owners[to]);
    return result;
  }
  bool hasPathThroughOthers(uint32_t from, uint32_t to, uint32_t without) const {
    std::set<uint32_t> seen;
    std::vector<uint32_t> worklist{from};
    while (!worklist.empty()) {
      const uint32_t node = worklist.back();
      worklist.pop_back();
      for (uint32_t next : successorsOf(node)) {
        if (next == to && node != from)
          return true;
        if (next != to && next != without && seen.insert(next).second)
          worklist.push_back(next);
      }
    }
    return false;
  }
};

void tryGraph(uint32_t seed, uint32_t numNodes, uint32_t numEdges, uint32_t reach) {
  std::mt19937 random(seed);
  auto pick = [&](uint32_t count) { return uint32_t(random() % count); };
  Plain plain;
  for (uint32_t node = 0; node < numNodes; ++node)
    plain.owners.push_back(node);
  for (uint32_t i = 0; i < numEdges; ++i) {
    const uint32_t from = pick(numNodes - 1), to = std::min(numNodes - 1, from + 1 + pick(reach));
    plain.edges.push_back({from, to});
  }
  MergingGraph graph(numNodes, plain.edges);
  std::vector<uint32_t> live = plain.owners;
  while (live.size() > 2) {
    for (int i = 0; i < 12; ++i) {
      const uint32_t from = live[pick(live.size())], to = live[pick(live.size())], without = live[pick(live.size())];
      if (from == to || without == from)
        continue;
      ASSERT_EQ(graph.hasPathThroughOthers(from, to, without), plain.hasPathThroughOthers(from, to, without))
          << "seed " << seed << ": from " << from << " to " << to << " without " << without;
    }
    const uint32_t gone = live[pick(live.size())], kept = live[pick(live.size())];
    auto successors = graph.getSuccessors(kept);
    const std::set<uint32_t> expected = plain.successorsOf(kept);
    ASSERT_EQ(std::vector<uint32_t>(successors.begin(), successors.end()),
              std::vector<uint32_t>(expected.begin(), expected.end()));
    for (uint32_t next : expected)
      ASSERT_TRUE(graph.comesBefore(kept, next));
    if (gone == kept || plain.hasPathThroughOthers(gone, kept, kept) || plain.hasPathThroughOthers(kept, gone, gone)) {
      if (pick(40) == 0)
        return;
      continue;
    }
    graph.merge(gone, kept);
    for (uint32_t &owner : plain.owners)
      if (owner == gone)
        owner = kept;
    live.erase(std::find(live.begin(), live.end(), gone));
    for (uint32_t node = 0; node < numNodes; ++node)
      ASSERT_EQ(graph.find(node), plain.owners[node]);
  }
}

TEST(MergingGraph, AnswersAsASearchOfEverything) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    tryGraph(seed, 12, 16, 4);
    tryGraph(seed, 24, 40, 24);
    tryGraph(seed, 40, 44, 3);
  }
}

TEST(MergingGraph, JoinsAlongAChainInAnyOrder) {
  constexpr uint32_t numNodes = 20'000;
  std::vector<MergingGraph::Edge> edges;
  for (uint32_t node = 1; node < numNodes; ++node)
    edges.push_back({node - 1, node});
  // What the ends of the chain have to do with each other: a pass forward and back.
  for (uint32_t node = 0; node < numNodes / 2; ++node)
    edges.push_back({node, numNodes - 1 - node});
  MergingGraph graph(numNodes, edges);
  for (uint32_t node = 0; node + 1 < numNodes / 2; ++node)
    EXPECT_TRUE(graph.hasPathThroughOthers(node, numNodes - 1 - node, numNodes - 1 - node));
  for (uint32_t node = 0; node + 3 < numNodes; node += 2) {
    EXPECT_FALSE(graph.hasPathThroughOthers(graph.find(node), graph.find(node + 1), graph.find(node + 1)));
    graph.merge(node, node + 1);
  }
  EXPECT_TRUE(graph.hasPathThroughOthers(graph.find(0), graph.find(4), graph.find(4)));
}

} // namespace
