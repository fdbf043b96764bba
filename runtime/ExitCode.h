//===- ExitCode.h - the end of a program of the runtime --------------------===//
#ifndef LOWTIDE_RUNTIME_EXITCODE_H
#define LOWTIDE_RUNTIME_EXITCODE_H

#include "runtime/Status.h"

#include <cstdio>
#include <exception>
#include <new>

namespace lowtide::rt {

/// Does `work`, which returns a Status, says on the standard error stream what went wrong, and returns the exit code.
template <typename Work> int exitCodeOf(Work &&work) {
  try {
    Status status = work();
    if (!status.isOk())
      std::fprintf(stderr, "error: %s\n", status.str().c_str());
    return static_cast<int>(status.code());
  } catch (const std::bad_alloc &) {
    std::fputs("error: out of memory\n", stderr);
    return static_cast<int>(StatusCode::OverBudget);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: internal: %s\n", error.what());
    return static_cast<int>(StatusCode::Internal);
  }
}

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_EXITCODE_H
