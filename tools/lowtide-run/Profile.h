//===- Profile.h - where the time of a step goes ---------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_PROFILE_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_PROFILE_H

#include "runtime/Session.h"

#include <string>

namespace lowtide::run {

/// Time per instruction, most expensive first. `path` "-": a table on standard output, milliseconds per step, with
/// the bytes that the operands have and the rates that follow; else JSON, in microseconds.
rt::Status writeProfile(const rt::Device &device, const lowtide::plan::Entry &entry, const std::string &path);

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_PROFILE_H
