//===- LeastRoom.h - programs that start where memory is short -------------===//
#ifndef LOWTIDE_RUNTIME_LEASTROOM_H
#define LOWTIDE_RUNTIME_LEASTROOM_H

#include "runtime/Status.h"

#include <cstddef>
#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

namespace lowtide::rt {

/// Ends the program in words; allocates nothing.
[[noreturn]] inline void endWithoutMemory() {
  const char text[] = "error: there is no memory left: a limit on the address space (ulimit -v), or the machine's\n";
  (void)!::write(STDERR_FILENO, text, sizeof text - 1);
  ::_exit(static_cast<int>(StatusCode::OverBudget));
}

/// Ends the program unless that many bytes can be had.
inline void needRoom(size_t bytes) {
  void *room = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    endWithoutMemory();
  ::munmap(room, bytes);
}

/// glibc opens the library that unwinds its own functions, such as a pthread_once that an exception leaves, when it
/// first needs it. Then there may be no memory: it is opened here.
inline void prepareUnwinding() {
  void *frame = nullptr;
  (void)::backtrace(&frame, 1);
}

} // namespace lowtide::rt

/// Of a program's main file: `check` runs before any library initializes itself. What cannot get through that would end
/// by a signal, without a word.
#define LOWTIDE_BEFORE_EVERYTHING(check)                                                                               \
  __attribute__((section(".preinit_array"), used)) void (*const beforeEverything)(int, char **, char **) = check

#endif // LOWTIDE_RUNTIME_LEASTROOM_H
