//===- MergingGraph.cpp - an acyclic graph whose nodes join ---------------===//
#include "lowtide/Solve/Algorithms/MergingGraph.h"

#include <algorithm>
#include <cassert>

namespace lowtide::solve {

/// Labels of the order are below this; a fresh order leaves gaps of equal size.
static constexpr uint64_t kLabels = uint64_t(1) << 62;
/// So many labels for each node are room enough for a while.
static constexpr uint64_t kRoom = uint64_t(1) << 20;

MergingGraph::MergingGraph(uint32_t numNodes, std::span<const Edge> edges) {
  owners.resize(numNodes);
  for (Neighbors *each : {&successors, &predecessors}) {
    each->lists.resize(numNodes);
    each->isStale.assign(numNodes, true);
  }
  for (auto [from, to] : edges) {
    assert(from < to && to < numNodes && "edges lead from lower to higher numbers");
    successors.lists[from].push_back(to);
    predecessors.lists[to].push_back(from);
  }
  order.resize(numNodes + 1);
  const uint64_t gap = kLabels / (uint64_t(numNodes) + 1);
  for (uint32_t node = 0; node <= numNodes; ++node) {
    if (node < numNodes)
      owners[node] = node;
    order[node] = {node == numNodes ? 0 : gap * (node + 1), node == 0 ? numNodes : node - 1,
                   node == numNodes ? 0 : node + 1};
  }
  ahead.seen.assign(numNodes, 0);
  back.seen.assign(numNodes, 0);
  spine.resize(numNodes);
  findSpine();
}

uint32_t MergingGraph::find(uint32_t node) {
  while (owners[node] != node)
    node = owners[node] = owners[owners[node]];
  return node;
}

std::span<const uint32_t> MergingGraph::getNeighbors(Neighbors &neighbors, uint32_t node) {
  std::vector<uint32_t> &list = neighbors.lists[node];
  if (neighbors.isStale[node]) {
    neighbors.isStale[node] = false;
    for (uint32_t &neighbor : list)
      neighbor = find(neighbor);
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    if (auto self = std::lower_bound(list.begin(), list.end(), node); self != list.end() && *self == node)
      list.erase(self);
  }
  return list;
}

void MergingGraph::findSpine() {
  const uint32_t numNodes = owners.size();
  std::vector<uint32_t> length(numNodes, 0), from(numNodes, numNodes);
  uint32_t end = 0;
  for (uint32_t node = 0; node < numNodes; ++node) {
    for (uint32_t before : getNeighbors(predecessors, node))
      if (length[before] + 1 > length[node]) {
        length[node] = length[before] + 1;
        from[node] = before;
      }
    if (length[node] > length[end])
      end = node;
  }
  for (uint32_t node = end; node < numNodes; node = from[node])
    spine[node].first = spine[node].last = int32_t(length[node]);
  for (uint32_t node = 0; node < numNodes; ++node)
    for (uint32_t before : getNeighbors(predecessors, node))
      spine[node].ledFrom = std::max(spine[node].ledFrom, spine[before].leave());
  for (uint32_t node = numNodes; node-- > 0;)
    for (uint32_t after : getNeighbors(successors, node))
      spine[node].leadsTo = std::min(spine[node].leadsTo, spine[after].enter());
}

void MergingGraph::start(Side &side, uint32_t node) {
  side.path.assign(1, {node, 0});
  side.found.clear();
}

bool MergingGraph::hasPathThroughOthers(uint32_t from, uint32_t to, uint32_t without) {
  if (!comesBefore(from, to))
    return false;
  // A node of the spine between the two that no path to or from `without` leads through.
  int32_t low = spine[from].leadsTo, high = spine[to].ledFrom;
  if (without != from && without != to && comesBefore(from, without) && comesBefore(without, to)) {
    low = std::max(low, spine[without].leave() + 1);
    high = std::min(high, spine[without].enter() - 1);
  }
  if (low <= high)
    return true;
  // What lies between them leads to no node of the spine that leads to neither, and so back.
  low = spine[from].leadsTo, high = spine[to].ledFrom;
  ++round;
  start(ahead, from);
  start(back, to);
  /// 1: the sides meet; -1: this one has ended; 0: it goes on.
  auto step = [&](Side &side, Side &other, uint32_t origin, uint32_t goal, auto mayLead) {
    auto &[node, next] = side.path.back();
    std::span<const uint32_t> neighbors = getNeighbors(side.neighbors, node);
    if (next == neighbors.size()) {
      side.path.pop_back();
      return side.path.empty() ? -1 : 0;
    }
    const uint32_t neighbor = neighbors[next++];
    if (neighbor == goal)
      return node == origin ? 0 : 1;
    if (neighbor == without || side.seen[neighbor] == round || !mayLead(neighbor))
      return 0;
    if (other.seen[neighbor] == round)
      return 1;
    side.seen[neighbor] = round;
    side.path.push_back({neighbor, 0});
    return 0;
  };
  while (true) {
    if (int met = step(ahead, back, from, to,
                       [&](uint32_t node) { return comesBefore(node, to) && spine[node].leave() <= high; }))
      return met > 0;
    if (int met = step(back, ahead, to, from,
                       [&](uint32_t node) { return comesBefore(from, node) && spine[node].enter() >= low; }))
      return met > 0;
  }
}

void MergingGraph::merge(uint32_t gone, uint32_t kept) {
  mergeOrder(gone, kept);
  owners[gone] = kept;
  mergeNeighbors(successors, predecessors, gone, kept);
  mergeNeighbors(predecessors, successors, gone, kept);
  mergeSpine(gone, kept);
}

void MergingGraph::mergeNeighbors(Neighbors &neighbors, Neighbors &opposite, uint32_t gone, uint32_t kept) {
  for (uint32_t neighbor : neighbors.lists[gone])
    opposite.isStale[find(neighbor)] = true;
  std::vector<uint32_t> &list = neighbors.lists[kept];
  list.insert(list.end(), neighbors.lists[gone].begin(), neighbors.lists[gone].end());
  neighbors.isStale[kept] = true;
  neighbors.lists[gone] = {};
}

void MergingGraph::mergeSpine(uint32_t gone, uint32_t kept) {
  Spine &both = spine[kept];
  both = {std::min(both.first, spine[gone].first), std::max(both.last, spine[gone].last), never, -1};
  for (uint32_t after : getNeighbors(successors, kept))
    both.leadsTo = std::min(both.leadsTo, spine[after].enter());
  for (uint32_t before : getNeighbors(predecessors, kept))
    both.ledFrom = std::max(both.ledFrom, spine[before].leave());
  std::vector<uint32_t> worklist{kept};
  while (!worklist.empty()) {
    const uint32_t node = worklist.back();
    worklist.pop_back();
    for (uint32_t before : getNeighbors(predecessors, node)) {
      const int32_t old = spine[before].enter();
      spine[before].leadsTo = std::min(spine[before].leadsTo, spine[node].enter());
      if (spine[before].enter() < old)
        worklist.push_back(before);
    }
  }
  worklist.push_back(kept);
  while (!worklist.empty()) {
    const uint32_t node = worklist.back();
    worklist.pop_back();
    for (uint32_t after : getNeighbors(successors, node)) {
      const int32_t old = spine[after].leave();
      spine[after].ledFrom = std::max(spine[after].ledFrom, spine[node].leave());
      if (spine[after].leave() > old)
        worklist.push_back(after);
    }
  }
}

bool MergingGraph::collect(Side &side, uint32_t early, uint32_t late) {
  auto &[node, next] = side.path.back();
  std::span<const uint32_t> neighbors = getNeighbors(side.neighbors, node);
  if (next == neighbors.size()) {
    side.path.pop_back();
    return !side.path.empty();
  }
  const uint32_t neighbor = neighbors[next++];
  if (neighbor == early || neighbor == late || side.seen[neighbor] == round || !comesBefore(early, neighbor) ||
      !comesBefore(neighbor, late))
    return true;
  side.seen[neighbor] = round;
  side.found.push_back(neighbor);
  side.path.push_back({neighbor, 0});
  return true;
}

void MergingGraph::mergeOrder(uint32_t gone, uint32_t kept) {
  const uint32_t early = comesBefore(gone, kept) ? gone : kept, late = early == gone ? kept : gone;
  ++round;
  start(ahead, early);
  start(back, late);
  bool movesDown;
  while (true) {
    if ((movesDown = !collect(ahead, early, late)))
      break;
    if (!collect(back, early, late))
      break;
  }
  const uint32_t place = movesDown ? late : early;
  std::vector<uint32_t> &moved = movesDown ? ahead.found : back.found;
  std::sort(moved.begin(), moved.end(), [&](uint32_t a, uint32_t b) { return comesBefore(a, b); });
  if (kept != place) {
    takeOut(kept);
    insertAfter(place, std::span(&kept, 1));
  }
  takeOut(gone);
  for (uint32_t node : moved)
    takeOut(node);
  insertAfter(movesDown ? kept : order[kept].previous, moved);
}

void MergingGraph::takeOut(uint32_t node) {
  order[order[node].previous].next = order[node].next;
  order[order[node].next].previous = order[node].previous;
}

uint64_t MergingGraph::labelAfter(uint32_t place) const {
  const uint32_t next = order[place].next;
  return next == owners.size() ? kLabels : order[next].label;
}

void MergingGraph::insertAfter(uint32_t place, std::span<const uint32_t> nodes) {
  if (nodes.empty())
    return;
  if ((labelAfter(place) - order[place].label) / (nodes.size() + 1) == 0)
    makeRoom(place, nodes.size());
  const uint64_t gap = (labelAfter(place) - order[place].label) / (nodes.size() + 1);
  for (uint32_t node : nodes) {
    const uint32_t next = order[place].next;
    order[node] = {order[place].label + gap, place, next};
    order[place].next = order[next].previous = node;
    place = node;
  }
}

void MergingGraph::makeRoom(uint32_t place, uint64_t count) {
  const uint32_t end = owners.size();
  uint32_t first = place, last = place;
  for (uint64_t width = 1, nodes = 1;; width *= 2) {
    for (uint64_t i = 0; i < width && first != end; ++i, ++nodes)
      first = order[first].previous;
    for (uint64_t i = 0; i < width && order[last].next != end; ++i, ++nodes)
      last = order[last].next;
    const uint64_t below = order[first].label, room = (labelAfter(last) - below) / (nodes + count + 1);
    const bool isAll = first == end && order[last].next == end;
    if (room < kRoom && !isAll)
      continue;
    assert(room > 0 && "labels outnumber nodes");
    uint64_t label = place == first ? below + room * count : below;
    for (uint32_t node = order[first].next;; node = order[node].next) {
      order[node].label = label += room;
      if (node == place)
        label += room * count;
      if (node == last)
        return;
    }
  }
}

} // namespace lowtide::solve
