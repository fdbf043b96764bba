//===- Verify.h - proves a plan, knowing nothing of who made it ------------===//
//
// Runs at every load, and at the end of every compile. It looks at the plan alone: bounds and alignment by checked
// arithmetic, arity of kernels and calls, every byte read carries exactly the value number announced, no byte is read
// undefined, streams are ordered by record and wait, every binding holds its final value at the end.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_VERIFY_H
#define LOWTIDE_RUNTIME_VERIFY_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace lowtide::rt {

/// What the verifier found out on the way.
struct VerifyReport {
  struct EntryReport {
    /// Largest number of bytes of TRANSIENT arenas that hold a value still needed, or are operand, scratch or
    /// workspace, at any one instruction: no plan with these instructions in this order can do with less.
    uint64_t peakLiveBytes = 0;
    uint64_t instructions = 0;
  };
  std::vector<EntryReport> entries; ///< parallel to Plan.entries
  /// Where the proof failed, if it was at an instruction: index of the entry, and of the instruction there; inside a
  /// repeat, of the repeat first and then of the instruction in its body.
  struct Place {
    int entry = 0;
    std::vector<int> instruction;
    /// Where it reads a value and finds another: the instruction that writes the other one; empty: none does.
    std::vector<int> writer;
  };
  std::optional<Place> failure;
};

/// Proves `plan`, or says what is wrong and where. `where` names entry and instruction.
Status verifyPlan(const plan::Plan &plan, VerifyReport *report = nullptr);

/// Of plans that this runtime reads and this compiler writes.
inline constexpr uint32_t planFormatVersion = 3;

/// Size in bytes of one element, 0 for an unknown type.
uint64_t elementBytes(plan::DType dtype);

/// Bytes of a dense tensor; nothing if a dimension is negative or the product does not fit.
std::optional<uint64_t> tensorBytes(const plan::Binding &binding);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_VERIFY_H
