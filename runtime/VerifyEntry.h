//===- VerifyEntry.h - executes one entry on shadow memory -----------------===//
#ifndef LOWTIDE_RUNTIME_VERIFYENTRY_H
#define LOWTIDE_RUNTIME_VERIFYENTRY_H

#include "runtime/Verify.h"

#include <span>

namespace lowtide::rt {

/// Slice inside its arena, by checked arithmetic.
Status checkSlice(const plan::Plan &plan, const plan::Slice &slice);

/// Attributes of a library call against the bytes of its operands: shapes, aliasing, workspace.
Status checkCall(const plan::Call &call, std::string_view target);

/// Proves one entry; `persistent` are the bindings of all entries that outlive a step: those that this entry does not
/// list must come out untouched.
Status verifyEntry(const plan::Plan &plan, const plan::Entry &entry, std::span<const plan::Binding *const> persistent,
                   VerifyReport::EntryReport &report);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_VERIFYENTRY_H
