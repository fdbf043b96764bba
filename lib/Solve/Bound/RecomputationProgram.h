//===- RecomputationProgram.h - recomputation as a program ------*- C++ -*-===//
//
// Which values are kept and which operations run again, as a linear program
// after Checkmate (Jain et al. 2020).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Searches/RerunOrder.h"
#include "lowtide/Solve/Algorithms/LinearProgram.h"
#include "lowtide/Solve/Model/Timeline.h"

namespace lowtide::solve {

/// Bytes are counted at program points: instructions of the order, all or a choice of them. Between two program points
/// lies an interval. Columns, each a share of 0 … 1: value v is there while the program point's instruction runs (S),
/// is still there after it (A, where that differs), operation k runs again in the interval (R), v is loaded from
/// another memory in it (L). Every schedule in the order gives such columns: what costs least among them is a lower
/// bound.
class RecomputationProgram {
public:
  /// `order` runs every operation once and is valid. `countsLanes`: values may be loaded (addLoads), and what costs is
  /// the time of the step beyond its operations (LaneRows.cpp), with which two copies and an operation may run at once.
  RecomputationProgram(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                       unsigned mostMoments, bool countsLanes = false);

  /// Cost 1 is the time of the order's operations.
  const LinearProgram &get() const { return program; }
  double getSecondsOfOne() const { return secondsOfOne; }
  unsigned getPoints() const { return points.size(); }

  /// Adds columns that keep the rows of chains short: call it once, before the program is solved and searched for them.
  void prepareChains();
  /// Rows over chains of values that a solution of the relaxation violates. They hold for every schedule, and make the
  /// program tighter than what was published.
  LinearRows findViolatedChains(const std::vector<double> &columns) const;

  /// Rows that whole numbers of a solution violate where what runs again in one interval has no order within the
  /// budget. They hold for every schedule. None unless bytes are counted at every instruction.
  LinearRows findImpossibleIntervals(const std::vector<double> &columns) const;

  /// When a schedule makes again what it does not keep: where it is read, or in the interval in which the program does,
  /// when what it is made from may still be there.
  enum class Again { OnDemand, AsSolved };
  /// The schedule that keeps, from program point to program point, what `columns` keep at least `threshold` of. Nothing
  /// if an updated argument forbids it.
  std::optional<Schedule> write(const std::vector<double> &columns, double threshold, Again when) const;

private:
  /// A column, or one of two constants.
  using Term = int32_t;
  static constexpr Term zero = -1, one = -2;

  void chooseMoments(unsigned most, uint64_t budget);
  void findLives();
  void addColumns(unsigned interval);
  /// The parts of `op` take as much as each alone or as the whole, whichever is less.
  void addWhole(unsigned interval, uint32_t op);
  void addNeeds(unsigned interval);
  /// Columns of loads in the interval.
  void addLoads(unsigned interval);
  /// Lets the program minimize what a step takes with its lanes.
  void addLaneRows();
  void countMoment(unsigned interval);
  void countReruns(unsigned interval);
  /// Managed values, each after those that it is made from: of one instruction, too, parts read parts.
  std::vector<uint32_t> sortByMakers() const;
  /// What is to run again in the interval by `columns`, beside what is there and stays.
  RerunQuestion ask(unsigned interval, const std::vector<double> &columns, double threshold) const;
  /// How much of the value comes into the interval: from the program point before, or made in it for the first time.
  Term comeInto(unsigned interval, uint32_t value) const;
  Term &at(std::vector<Term> &terms, unsigned interval, uint32_t index) const {
    return terms[size_t(interval) * stride + index];
  }
  Term at(const std::vector<Term> &terms, unsigned interval, uint32_t index) const {
    return terms[size_t(interval) * stride + index];
  }
  /// Adds `factor` · term to the row; what is constant comes back.
  double addTerm(Term term, double factor);
  /// left ≤ come + again, left a term.
  void addSupply(Term left, unsigned interval, uint32_t value);
  /// Bytes of a result that no operand hands on, in the best case.
  int64_t freshBytes(const StepOperation &operation) const;
  int64_t previous(unsigned interval) const { return interval ? int64_t(points[interval - 1]) : -1; }

  const StepGraph &graph;
  std::span<const uint32_t> order;
  const uint64_t budget;
  LinearProgram program;
  double secondsOfOne = 0;
  size_t stride = 0;
  std::vector<uint32_t> points;
  /// Values whose bytes count: made by operations, without an address of their own, not negligible.
  std::vector<uint32_t> managed;
  std::vector<char> isManaged;
  /// Per value: position of its producer, of its last reader, and the last at which it can be of use.
  std::vector<int64_t> begins, lastRead, until;
  /// Per value, what makes it again, and what loads it, a number of the graph's reruns; none: UINT32_MAX.
  std::vector<uint32_t> maker, loader;
  bool canReturn(uint32_t value) const { return maker[value] != UINT32_MAX || loader[value] != UINT32_MAX; }
  /// Per operation and rerun, the position from which it cannot run again.
  std::vector<int64_t> deadline;
  /// Those that can run again, and when the first of their results is made, and the last of them is of use.
  std::vector<uint32_t> reruns;
  std::vector<int64_t> rerunFrom, rerunUntil;
  /// Operations that run again in parts, or as a whole.
  std::vector<uint32_t> wholes;
  /// Per operation and rerun, the seconds and workspace that it counts with: of a part no more than of the whole.
  std::vector<double> leastSeconds;
  std::vector<uint64_t> leastWorkspace;
  /// Adds what of `terms` (by item) comes in this interval or a later one.
  void sumLater(const std::vector<Term> &terms, const std::vector<uint32_t> &items, std::vector<Term> &sums);
  /// By interval and value, or operation; `everAgain`: in this interval or a later one, once at most.
  std::vector<Term> resident, after, again, everAgain, back, everBack;
  const bool countsLanes;
  /// Per interval, its first column.
  std::vector<int32_t> firstColumns;
};

} // namespace lowtide::solve
