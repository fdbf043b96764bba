//===- SpecialFile.h - what a file must not take the place of ---*- C++ -*-===//
#pragma once

#include <string>
#include <sys/stat.h>

namespace lowtide::rt {

/// Whether a path is a device such as /dev/null, a pipe or a socket. It is written in place: a file that were renamed
/// to it would stand there for everybody.
inline bool isSpecialFile(const std::string &path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

} // namespace lowtide::rt
