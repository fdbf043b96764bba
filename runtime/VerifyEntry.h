//===- VerifyEntry.h - executes one entry on shadow memory -----------------===//
#ifndef LOWTIDE_RUNTIME_VERIFYENTRY_H
#define LOWTIDE_RUNTIME_VERIFYENTRY_H

#include "runtime/Verify.h"

#include <span>

namespace lowtide::rt {

/// Whether a binding keeps its value from one step to the next.
bool isPersistent(const plan::Binding &binding);

/// A size as messages show it: what a tool wrote as a negative number reads as one.
inline std::string showSize(uint64_t size) { return std::to_string(static_cast<int64_t>(size)); }

/// Slice inside its arena, by checked arithmetic.
Status checkSlice(const plan::Plan &plan, const plan::Slice &slice);

using Slices = google::protobuf::RepeatedPtrField<plan::Slice>;

inline bool overlap(const plan::Slice &a, const plan::Slice &b) {
  return a.arena() == b.arena() && a.bytes() && b.bytes() && a.offset() < b.offset() + b.bytes() &&
         b.offset() < a.offset() + a.bytes();
}
inline bool sameRange(const plan::Slice &a, const plan::Slice &b) {
  return a.arena() == b.arena() && a.offset() == b.offset() && a.bytes() == b.bytes();
}

/// Operands and results of one instruction: slices in their arenas; no two results overlap, and a result overlaps an
/// operand only as the very same range. O(n log n).
Status checkAliases(const plan::Plan &plan, const Slices &reads, const Slices &writes);

/// A launch against what its kernel states: number, sizes and alignment of operands and results, extent, grain,
/// scratch.
Status checkLaunch(const plan::Plan &plan, const plan::Launch &launch);

/// The part of checkLaunch's statement that needs no launch: footprints that make sense, for the plan's target.
Status checkFootprints(const plan::Plan &plan, const plan::Kernel &kernel);

/// Attributes of a library call against the bytes of its operands: shapes, aliasing, workspace.
Status checkCall(const plan::Call &call, std::string_view target);

/// Proves one entry; `persistent` are the bindings of all entries that outlive a step: those that this entry does not
/// list must come out untouched. Where it fails at an instruction, `failure` says which.
Status verifyEntry(const plan::Plan &plan, const plan::Entry &entry, std::span<const plan::Binding *const> persistent,
                   VerifyReport::EntryReport &report, VerifyReport::Place &failure);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_VERIFYENTRY_H
