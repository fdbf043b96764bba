//===- Walk.h - a schedule, read by read ------------------------*- C++ -*-===//
//
// Two walks: the first binds every read to the result that it sees and finds last uses, the second hands bytes from
// dying operands to results and sums up. Whoever counts many schedules of one step keeps the object, and its memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

namespace lowtide::solve {

class Walk {
public:
  static constexpr uint32_t none = UINT32_MAX;

  /// One result of one execution.
  struct Instance {
    uint32_t value;
    uint32_t begin;
    uint32_t last;     ///< instruction of the last read; `begin` if nothing reads it
    uint32_t previous; ///< of the same value; `none`: it is the first
    bool taken;        ///< its bytes are handed on
  };

  explicit Walk(const StepGraph &graph);

  /// Binds reads to instances; false if the schedule is not valid. The schedule stays where it is until the next one.
  bool bind(std::span<const uint32_t> newSchedule);
  /// Sums up; lists the buffers if `buffers` is not null.
  Timeline sumUp(std::vector<Buffer> *buffers = nullptr);

  /// Both, as `solve::evaluate` does them.
  std::optional<Timeline> evaluate(std::span<const uint32_t> schedule) {
    if (!bind(schedule))
      return std::nullopt;
    return sumUp();
  }

  std::span<const Instance> getInstances() const { return instances; }
  /// The last one of the value that is made before `position`; null: none is.
  const Instance *findInstance(uint32_t value, uint32_t position) const {
    for (uint32_t index = newest[value]; index != none; index = instances[index].previous)
      if (instances[index].begin < position)
        return &instances[index];
    return nullptr;
  }
  /// After `listReads`: the instructions that read an instance, in order.
  std::span<const uint32_t> getReads(const Instance &instance) const {
    const size_t index = size_t(&instance - instances.data());
    return std::span(reads).subspan(firstRead[index], firstRead[index + 1] - firstRead[index]);
  }
  void listReads();
  /// When an argument is updated; `none`: it is not.
  uint32_t getUpdate(uint32_t argument) const { return updatedAt[argument]; }

private:
  /// What a walk asks of an operation, without a way through lists of lists: where its own begin in the lists below,
  /// and those of the next one.
  struct Step {
    uint32_t firstOperand, firstArgument, firstUpdate, firstWritten;
    double seconds;
    uint64_t flops, workspaceBytes;
    bool mayRunAgain, isLoad;
  };
  struct Written {
    uint32_t value;
    /// Of the operands that it may be written over.
    uint32_t firstTarget;
    int64_t bytes;
    bool isPlaced, isKept;
  };
  void add(uint32_t op);

  const StepGraph &graph;
  std::vector<Step> steps;
  /// Operands that are made by operations, arguments that are read and updated by others, arguments that are updated.
  std::vector<uint32_t> operands, arguments, updates;
  std::vector<Written> written;
  /// Numbers of operands among those of their operation.
  std::vector<uint32_t> targets;

  std::span<const uint32_t> schedule;
  std::vector<Instance> instances;
  /// Per value, the last instance.
  std::vector<uint32_t> newest;
  /// Per instruction, its first result's instance and its first operand in `bound`.
  std::vector<uint32_t> firstResult, firstBound;
  std::vector<uint32_t> updatedAt;
  std::vector<char> ran;
  std::vector<int64_t> change;
  /// Who reads which instance, as they come; then by instance.
  struct Read {
    uint32_t instance, position;
  };
  std::vector<Read> bound;
  std::vector<uint32_t> firstRead, reads;
};

/// `dropRecomputations` of whoever keeps a walk.
void dropRecomputations(const StepGraph &graph, uint64_t budgetBytes, Schedule &schedule, Timeline &timeline,
                        Walk &walk);

} // namespace lowtide::solve
