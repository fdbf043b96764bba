//===- InstructionTime.h - what an instruction cost, for profiles ----------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_INSTRUCTIONTIME_H
#define LOWTIDE_RUNTIME_DEVICES_INSTRUCTIONTIME_H

#include "plan.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lowtide::rt {

/// How the runs of an entry are measured: not at all, each instruction alone, or each in its lane while the other lanes
/// run. On a CPU lanes are threads that run at once either way.
enum class Measuring { None, Alone, Lanes };

/// When an instruction ran, in nanoseconds from the begin of its step.
struct InstructionSpan {
  uint64_t begin = 0, end = 0;
};

/// Spans kept of an instruction at most; further rounds of a loop count only in its time.
constexpr uint64_t maxSpans = 4096;

/// What an instruction cost, summed over the steps that were measured.
struct InstructionTime {
  /// In the order of the plan, the body of a repeat once; repeats, records and waits have none.
  uint64_t number = 0;
  uint32_t lane = 0;                  ///< the stream that it ran on, where there are spans
  std::vector<InstructionSpan> spans; ///< of the newest measured step, one for each round
  std::string what;                   ///< kernel description or callee
  std::string symbol;                 ///< of a kernel
  std::string location;               ///< ONNX node or module path
  uint64_t nanoseconds = 0, runs = 0, flops = 0;
  uint64_t bytes = 0;     ///< of its operands, read and written, once each
  bool generated = false; ///< a kernel of ours, not a library's call, a copy or a fill
};

/// Name, place and bytes of an instruction that is not a repeat; no times yet.
InstructionTime describeInstruction(const plan::Plan &plan, const plan::Instruction &instruction);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_INSTRUCTIONTIME_H
