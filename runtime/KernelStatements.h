//===- KernelStatements.h - what machine code says of itself ---------------===//
//
// The verifier proves launches against the footprints of a plan, and believes the footprints. So the code carries them
// too, written when it was generated: one line for each launch that a kernel may serve. A plan that states anything
// else of a kernel is not the plan of this code.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_KERNELSTATEMENTS_H
#define LOWTIDE_RUNTIME_KERNELSTATEMENTS_H

#include "plan.pb.h"
#include "runtime/StatementMarks.h"
#include "runtime/Status.h"

#include <cstdint>
#include <span>
#include <string>

namespace lowtide::rt {

/// "loop_3: 64 by 16, 64x4 64x4 to 64x4 bytes, in place 0 on 1, scratch 0, threads 0, shared 0, for cpu:x86-64-v3":
/// extent and grain, then elements and their size of each operand and result, then the results that may take an
/// operand's place.
std::string stateKernel(const plan::Plan &plan, const plan::Kernel &kernel, const plan::Footprint &footprint);
/// One line for each footprint of each kernel of the plan.
std::string stateKernels(const plan::Plan &plan);

/// The code of an artifact; a device runs one of them.
struct CodeImages {
  std::span<const uint8_t> object; ///< an ELF shared object
  std::span<const uint8_t> cubin, ptx;
};

/// Whether all code that there is states all that the plan does.
Status checkStatements(const plan::Plan &plan, const CodeImages &code);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_KERNELSTATEMENTS_H
