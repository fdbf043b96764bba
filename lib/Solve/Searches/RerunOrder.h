//===- RerunOrder.h - what runs again between two instructions --*- C++ -*-===//
//
// In which order operations run again between two instructions of a schedule,
// so that no more bytes than the budget are alive.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

namespace lowtide::solve {

/// Values that are there after one instruction, operations that may run again before the next one, any number of
/// times, and values that must be there then. More that is there or may run makes it easier, more that must be there
/// harder.
struct RerunQuestion {
  std::vector<uint32_t> there, mayRun, wanted;
};

struct RerunAnswer {
  enum class State {
    Found,
    /// No order stays within the budget.
    Impossible,
    /// There are too many sets of values to look at.
    Unknown,
  };
  State state = State::Unknown;
  Schedule order = {};
};

class RerunOrder {
public:
  /// Values that are not `counted` are always there and have no bytes. `workspaces`: bytes by operation and rerun.
  RerunOrder(const StepGraph &graph, std::span<const char> counted, std::span<const uint64_t> workspaces,
             uint64_t budgetBytes)
      : graph(graph), counted(counted), workspaces(workspaces), budget(budgetBytes) {}

  RerunAnswer find(const RerunQuestion &question) const;
  bool isImpossible(const RerunQuestion &question) const {
    return find(question).state == RerunAnswer::State::Impossible;
  }

private:
  /// Those of `question.mayRun` whose operands can be there and whose results are of use.
  std::vector<uint32_t> listUseful(const RerunQuestion &question) const;

  const StepGraph &graph;
  std::span<const char> counted;
  std::span<const uint64_t> workspaces;
  const uint64_t budget;
};

} // namespace lowtide::solve
