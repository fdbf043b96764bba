//===- MergingGraph.h - an acyclic graph whose nodes join -------*- C++ -*-===//
//
// Answers whether a path leads from one node to another while nodes join, in time that grows with what lies near the
// shorter side of the question instead of with the graph.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lowtide::solve {

/// A directed acyclic graph. Two nodes may join while no path leads from one to the other through a third.
///
/// 1. A topological order is kept as labels with gaps; when nodes join, only those that depend on the earlier one move
///    after the union, or those that the later one depends on in front of it, whichever are fewer (Pearce and Kelly
///    2006, Bender et al. 2009).
/// 2. A longest path is the spine. Every node knows the first node of the spine that it leads to and the last one that
///    leads to it: long paths follow from two numbers, and short searches stop at the spine (Jagadish 1990).
/// 3. What is left is searched from both ends at once, step by step, until one side ends.
class MergingGraph {
public:
  using Edge = std::pair<uint32_t, uint32_t>;

  /// Edges lead from lower to higher numbers; they may be given more than once.
  MergingGraph(uint32_t numNodes, std::span<const Edge> edges);

  /// The node that `node` is part of by now.
  uint32_t find(uint32_t node);
  /// Nodes that an edge from `node` leads to, ascending, each once.
  std::span<const uint32_t> getSuccessors(uint32_t node) { return getNeighbors(successors, node); }
  /// Whether a path leads from `from` to `to` through at least one other node, none of them `without`.
  bool hasPathThroughOthers(uint32_t from, uint32_t to, uint32_t without);
  /// Joins `gone` with `kept`, whose number stays. No path may lead from one to the other through a third.
  void merge(uint32_t gone, uint32_t kept);
  /// Whether `first` comes before `second` in the topological order that is kept.
  bool comesBefore(uint32_t first, uint32_t second) const { return order[first].label < order[second].label; }

  MergingGraph(const MergingGraph &) = delete;
  MergingGraph &operator=(const MergingGraph &) = delete;

private:
  /// Neighbors of each node; those that joined are replaced when the list is read.
  struct Neighbors {
    std::vector<std::vector<uint32_t>> lists;
    std::vector<char> isStale;
  };
  /// A node of the topological order, in a ring that starts and ends at the last entry.
  struct Place {
    uint64_t label = 0;
    uint32_t previous = 0, next = 0;
  };
  /// Numbers on the spine: the first and last of a node's own members, the first that it leads to and the last that
  /// leads to it; `never` and -1 where there is none.
  struct Spine {
    int32_t first = never, last = -1, leadsTo = never, ledFrom = -1;
    int32_t enter() const { return first < leadsTo ? first : leadsTo; }
    int32_t leave() const { return last > ledFrom ? last : ledFrom; }
  };
  static constexpr int32_t never = INT32_MAX;
  /// One side of a search: the path that it is on, with the next edge of each node, and the search that met a node
  /// last.
  struct Side {
    Neighbors &neighbors;
    std::vector<uint32_t> seen;
    std::vector<std::pair<uint32_t, size_t>> path;
    std::vector<uint32_t> found;
  };

  std::span<const uint32_t> getNeighbors(Neighbors &neighbors, uint32_t node);
  void start(Side &side, uint32_t node);
  void findSpine();
  void mergeNeighbors(Neighbors &neighbors, Neighbors &opposite, uint32_t gone, uint32_t kept);
  void mergeSpine(uint32_t gone, uint32_t kept);
  void mergeOrder(uint32_t gone, uint32_t kept);
  /// Whether there is another edge to follow: then the side may have met one more node between `early` and `late`.
  bool collect(Side &side, uint32_t early, uint32_t late);
  void takeOut(uint32_t node);
  /// Puts `nodes` after `place`, in this order.
  void insertAfter(uint32_t place, std::span<const uint32_t> nodes);
  /// Spreads labels around `place` so that `count` more fit after it.
  void makeRoom(uint32_t place, uint64_t count);
  uint64_t labelAfter(uint32_t place) const;

  std::vector<uint32_t> owners;
  Neighbors successors, predecessors;
  std::vector<Place> order;
  std::vector<Spine> spine;
  Side ahead{successors, {}, {}, {}}, back{predecessors, {}, {}, {}};
  uint32_t round = 0;
};

} // namespace lowtide::solve
