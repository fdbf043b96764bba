//===- Main.cpp - lowtide-run: executes an artifact ------------------------===//
//
// Links no LLVM.
//
//===----------------------------------------------------------------------===//

#include "Signals.h"
#include "TrainingRun.h"

#include "runtime/ExitCode.h"

#include <new>
#include <sys/mman.h>
#include <unistd.h>

using namespace lowtide;

namespace {

/// Ends the program in words; allocates nothing.
[[noreturn]] void endWithoutMemory() {
  const char text[] = "error: there is no memory left: a limit on the address space (ulimit -v), or the machine's\n";
  (void)!::write(STDERR_FILENO, text, sizeof text - 1);
  ::_exit(static_cast<int>(rt::StatusCode::OverBudget));
}

/// The stack as deep as it goes in a run, so that it need not grow when nothing is left.
__attribute__((noinline)) void touchStack() {
  volatile char stack[size_t(256) << 10];
  for (size_t at = 0; at < sizeof stack; at += 4096)
    stack[at] = 0;
}

/// Before any library initializes itself: what cannot get through that would end by a signal, without a word.
void checkRoom(int, char **, char **) {
  constexpr size_t leastRoom = size_t(16) << 20;
  void *room = ::mmap(nullptr, leastRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    endWithoutMemory();
  ::munmap(room, leastRoom);
  touchStack();
}
__attribute__((section(".preinit_array"), used)) void (*const beforeEverything)(int, char **, char **) = checkRoom;

int runTool(int argc, char **argv) {
  run::Options options;
  if (std::optional<int> code = run::parseOptions(argc, argv, options))
    return *code;
  run::catchSignals();
  int stoppedBy = 0;
  const int code = rt::exitCodeOf([&] {
    run::TrainingRun run(options);
    rt::Status status = run.run();
    stoppedBy = run.stoppedBy();
    return status;
  });
  return code || !stoppedBy ? code : 128 + stoppedBy;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return runTool(argc, argv);
  } catch (const std::bad_alloc &) {
    endWithoutMemory();
  }
}
