//===- InstructionTime.h - what an instruction cost, for profiles ----------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_INSTRUCTIONTIME_H
#define LOWTIDE_RUNTIME_DEVICES_INSTRUCTIONTIME_H

#include "plan.pb.h"

#include <cstdint>
#include <string>

namespace lowtide::rt {

/// What an instruction cost, summed over the steps that were measured.
struct InstructionTime {
  std::string what;     ///< kernel description or callee
  std::string symbol;   ///< of a kernel
  std::string location; ///< ONNX node or module path
  uint64_t nanoseconds = 0, runs = 0, flops = 0;
  uint64_t bytes = 0;     ///< of its operands, read and written, once each
  bool generated = false; ///< a kernel of ours, not a library's call, a copy or a fill
};

/// Name, place and bytes of an instruction that is not a repeat; no times yet.
InstructionTime describeInstruction(const plan::Plan &plan, const plan::Instruction &instruction);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_INSTRUCTIONTIME_H
