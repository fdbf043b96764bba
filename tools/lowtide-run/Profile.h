//===- Profile.h - where the time of a step goes ---------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_PROFILE_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_PROFILE_H

#include "runtime/Session.h"

#include <string>

namespace lowtide::run {

/// What `writeProfile` needs to have been measured: nothing without a path, rates for a table, lanes for a file.
rt::Measuring getMeasuring(const std::string &path);

/// Time per instruction, most expensive first. `path` "-": a table on standard output, milliseconds per step, with
/// the bytes that the operands have and the rates that follow; else JSON, in microseconds, which also has number and
/// lane of each instruction, and when it ran in the newest step.
rt::Status writeProfile(const rt::Session &session, const lowtide::plan::Entry &entry, const std::string &path);

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_PROFILE_H
