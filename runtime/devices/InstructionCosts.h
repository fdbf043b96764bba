//===- InstructionCosts.h - what instructions of a step cost together ------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_INSTRUCTIONCOSTS_H
#define LOWTIDE_RUNTIME_DEVICES_INSTRUCTIONCOSTS_H

#include "runtime/devices/InstructionTime.h"

#include <vector>

namespace lowtide::rt {

/// What several instructions cost together, per step.
struct InstructionCosts {
  std::string name;
  std::string location;   ///< of the first of them
  bool generated = false; ///< kernels of ours
  uint64_t count = 0;     ///< instructions of the plan
  double runs = 0, milliseconds = 0, bytes = 0, flops = 0;

  void add(const InstructionTime &time, double steps);
  void add(const InstructionCosts &costs);
};

/// One row for each kernel ("loop_3: broadcast add") and each library call of the same sizes ("gemm 512×96×288"), the
/// longest first. `times` are of `steps` steps.
std::vector<InstructionCosts> sumByKernel(const std::vector<InstructionTime> &times, double steps);
/// One row for each emitter ("loop", "row", "batch": several kernels in one launch) and each callee, the longest first.
std::vector<InstructionCosts> sumByKind(const std::vector<InstructionTime> &times, double steps);
/// All rows in one, "all".
InstructionCosts sumOf(const std::vector<InstructionCosts> &rows);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_INSTRUCTIONCOSTS_H
