//===- Lanes.cpp - what a schedule with loads does over time --------------===//
//
// Operations, and the stores and the loads of each memory, are lanes: each does one thing after the other. What waits
// for what, and for bytes, tells when each begins.
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace lowtide::solve {

static constexpr uint32_t none = UINT32_MAX;
using Kind = StepOperation::Kind;

std::vector<Stay> listStays(const StepGraph &graph, const Schedule &schedule) {
  std::vector<uint32_t> madeAt(graph.values.size(), none), stayOf(graph.values.size(), none);
  std::vector<Stay> stays;
  for (uint32_t now = 0; now < schedule.size(); ++now) {
    const StepOperation &operation = graph.at(schedule[now]);
    const bool isReload = operation.kind == Kind::Loads && schedule[now] >= graph.operations.size();
    for (uint32_t value : operation.writes) {
      if (!isReload) {
        madeAt[value] = madeAt[value] == none ? now : madeAt[value];
        continue;
      }
      if (stayOf[value] == none) {
        stayOf[value] = uint32_t(stays.size());
        stays.push_back({value, madeAt[value], now, operation.memory});
      }
      stays[stayOf[value]].end = now;
    }
  }
  return stays;
}

uint64_t countRoom(const StepGraph &graph, std::span<const Stay> stays, uint32_t memory) {
  std::vector<Buffer> buffers;
  for (const Stay &stay : stays)
    if (stay.memory == memory)
      buffers.push_back({graph.values[stay.value].bytes, stay.begin, stay.end + 1});
  if (buffers.empty())
    return 0;
  PackingOptions options;
  options.alignment = graph.memories[memory].alignment;
  return packOnce(buffers, options.getQuick()).arenaBytes;
}

std::vector<double> listSeconds(const StepGraph &graph, const FittedSchedule &plan) {
  std::vector<double> seconds(graph.operations.size() + graph.reruns.size());
  for (uint32_t op = 0; op < seconds.size(); ++op)
    seconds[op] = graph.at(op).seconds;
  for (size_t i = 0; i < std::min(graph.loops.size(), plan.bodies.size()); ++i)
    seconds[graph.loops[i].operation] = double(graph.loops[i].rounds) * plan.bodies[i].timeline.seconds;
  return seconds;
}

double countComputeSeconds(const StepGraph &graph, const FittedSchedule &plan) {
  const std::vector<double> all = listSeconds(graph, plan);
  double seconds = 0;
  for (uint32_t op : plan.schedule)
    seconds += graph.at(op).kind == Kind::Computes ? all[op] : 0;
  return seconds;
}

LaneTraffic LaneTimes::sum() const {
  LaneTraffic all;
  for (const LaneTraffic &memory : memories) {
    all.storedBytes += memory.storedBytes;
    all.loadedBytes += memory.loadedBytes;
    all.loads += memory.loads;
  }
  return all;
}

namespace {

/// What running stores still read of values that the schedule is done with: bytes that nothing else can have yet.
class RunningStores {
public:
  explicit RunningStores(const StepGraph &graph) : graph(graph) {}

  void add(uint32_t value, double leavesAt) {
    if (!graph.values[value].placed)
      push({leavesAt, graph.size(value)});
  }
  /// Those that are over then take nothing any more.
  void drop(double now) {
    while (!running.empty() && running.top().first <= now)
      pop();
  }
  /// From when on, but not before `start`, what needs a place has it: all but `room` bytes are those that leave first,
  /// and are spoken for.
  double waitForAllBut(uint64_t room, double start) {
    while (bytes > room) {
      auto [leavesAt, left] = pop();
      start = std::max(start, leavesAt);
      if (bytes < room)
        push({leavesAt, std::min(left, room - bytes)});
    }
    return start;
  }

private:
  /// When it is over, and the bytes that it reads.
  using Store = std::pair<double, uint64_t>;

  void push(Store store) {
    running.push(store);
    bytes += store.second;
  }
  Store pop() {
    const Store first = running.top();
    running.pop();
    bytes -= first.second;
    return first;
  }

  const StepGraph &graph;
  std::priority_queue<Store, std::vector<Store>, std::greater<>> running;
  uint64_t bytes = 0;
};

} // namespace

/// What is stored, by position of its last use before it is made or loaded again: where the schedule is done with it.
static std::vector<std::pair<uint32_t, uint32_t>> listLastUses(const StepGraph &graph, const Schedule &schedule,
                                                               const std::vector<Stay> &stays) {
  std::vector<uint32_t> usedAt(graph.values.size(), none);
  std::vector<char> isAgain(graph.values.size(), false), isStored(graph.values.size(), false);
  for (const Stay &stay : stays)
    isStored[stay.value] = true;
  for (uint32_t now = 0; now < schedule.size(); ++now) {
    const StepOperation &operation = graph.at(schedule[now]);
    for (uint32_t value : operation.reads) {
      usedAt[value] = isAgain[value] ? usedAt[value] : now;
      isStored[value] |= operation.kind == Kind::Stores;
    }
    for (uint32_t value : operation.writes) {
      isAgain[value] = usedAt[value] != none;
      usedAt[value] = isAgain[value] ? usedAt[value] : now;
    }
  }
  std::vector<std::pair<uint32_t, uint32_t>> uses;
  for (uint32_t value = 0; value < usedAt.size(); ++value)
    if (isStored[value] && usedAt[value] != none)
      uses.emplace_back(usedAt[value], value);
  std::sort(uses.begin(), uses.end());
  return uses;
}

/// Without the room for what waits.
static LaneTimes runLanes(const StepGraph &graph, const FittedSchedule &plan, const std::vector<Stay> &stays,
                          uint64_t deviceBytes) {
  LaneTimes times;
  times.memories.resize(graph.memories.size());
  std::vector<uint32_t> leavesAt(graph.values.size(), none), waitsIn(graph.values.size(), 0);
  for (const Stay &stay : stays) {
    leavesAt[stay.value] = stay.begin;
    waitsIn[stay.value] = stay.memory;
  }
  const std::vector<double> seconds = listSeconds(graph, plan);
  // When a value is there; when a stored one has left.
  std::vector<double> thereAt(graph.values.size(), 0), leftAt(graph.values.size(), 0);
  // When each lane is free.
  double compute = 0;
  std::vector<double> away(graph.memories.size(), 0), back = away;
  const std::vector<uint64_t> &live = plan.timeline.live;
  const std::vector<std::pair<uint32_t, uint32_t>> lastUses = listLastUses(graph, plan.schedule, stays);
  auto lastUse = lastUses.begin();
  RunningStores running(graph);
  for (uint32_t now = 0; now < plan.schedule.size(); ++now) {
    const uint32_t op = plan.schedule[now];
    const StepOperation &operation = graph.at(op);
    // What is stored is read until then, also where the schedule has no more use for it.
    for (; lastUse != lastUses.end() && lastUse->first < now; ++lastUse)
      running.add(lastUse->second, leftAt[lastUse->second]);
    running.drop(compute);
    const uint64_t room = now < live.size() && live[now] < deviceBytes ? deviceBytes - live[now] : 0;
    if (operation.kind == Kind::Loads) {
      const uint32_t value = operation.writes.front();
      double &lane = back[operation.memory];
      lane = running.waitForAllBut(room, std::max({lane, compute, leftAt[value]})) + graph.getCopySeconds(operation);
      thereAt[value] = lane;
      times.memories[operation.memory].loadedBytes += graph.values[value].bytes;
      ++times.memories[operation.memory].loads;
      continue;
    }
    auto store = [&](uint32_t value, uint32_t memory, double takes) {
      away[memory] = std::max(away[memory], thereAt[value]) + takes;
      leftAt[value] = away[memory];
      times.memories[memory].storedBytes += graph.values[value].bytes;
    };
    if (operation.kind == Kind::Stores) {
      store(operation.reads.front(), operation.memory, graph.getCopySeconds(operation));
      thereAt[operation.writes.front()] = leftAt[operation.reads.front()];
      continue;
    }
    double start = compute;
    for (uint32_t value : operation.reads)
      start = std::max(start, thereAt[value]);
    for (size_t i = 0; i < operation.overwrites.size(); ++i)
      for (uint32_t read : operation.overwrites[i])
        start = std::max(start, leftAt[read]);
    start = running.waitForAllBut(room, start);
    times.waitedSeconds += start - compute;
    compute = start + seconds[op];
    for (uint32_t value : operation.writes) {
      thereAt[value] = compute;
      if (leavesAt[value] == now)
        store(value, waitsIn[value], graph.getStoreSeconds(value, waitsIn[value]));
    }
  }
  times.seconds = compute;
  for (const auto *lanes : {&away, &back})
    for (double lane : *lanes)
      times.seconds = std::max(times.seconds, lane);
  times.waitedSeconds += times.seconds - compute;
  return times;
}

LaneTimes simulateLanes(const StepGraph &graph, const FittedSchedule &plan, uint64_t deviceBytes) {
  const std::vector<Stay> stays = listStays(graph, plan.schedule);
  LaneTimes times = runLanes(graph, plan, stays, deviceBytes);
  for (uint32_t memory = 0; memory < times.memories.size(); ++memory)
    times.memories[memory].roomBytes = countRoom(graph, stays, memory);
  return times;
}

bool fitsRooms(const StepGraph &graph, const FittedSchedule &plan, std::span<const uint64_t> roomBytes) {
  const std::vector<Stay> stays = listStays(graph, plan.schedule);
  for (uint32_t memory = 0; memory < graph.memories.size(); ++memory)
    if (countRoom(graph, stays, memory) > (memory < roomBytes.size() ? roomBytes[memory] : 0))
      return false;
  return true;
}

double countLaneSeconds(const StepGraph &graph, const FittedSchedule &plan, uint64_t deviceBytes) {
  return runLanes(graph, plan, listStays(graph, plan.schedule), deviceBytes).seconds;
}

double boundLaneSeconds(const StepGraph &graph, const FittedSchedule &plan) {
  // Loads and stores of each memory.
  std::vector<double> lanes(2 * graph.memories.size(), 0);
  for (uint32_t op : plan.schedule)
    if (const StepOperation &copy = graph.at(op); copy.kind != Kind::Computes)
      lanes[2 * copy.memory + (copy.kind == Kind::Stores)] += graph.getCopySeconds(copy);
  for (const Stay &stay : listStays(graph, plan.schedule))
    lanes[2 * stay.memory + 1] += graph.getStoreSeconds(stay.value, stay.memory);
  lanes.push_back(countComputeSeconds(graph, plan));
  return *std::max_element(lanes.begin(), lanes.end());
}

} // namespace lowtide::solve
