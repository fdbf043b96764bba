//===- Main.cpp - lowtide-run: executes an artifact ------------------------===//
//
// Links no LLVM.
//
//===----------------------------------------------------------------------===//

#include "Signals.h"
#include "TrainingRun.h"

#include "runtime/ExitCode.h"
#include "runtime/LeastRoom.h"

#include <new>

using namespace lowtide;

namespace {

/// The stack as deep as it goes in a run, so that it need not grow when nothing is left.
__attribute__((noinline)) void touchStack() {
  volatile char stack[size_t(256) << 10];
  for (size_t at = 0; at < sizeof stack; at += 4096)
    stack[at] = 0;
}

void checkRoom(int, char **, char **) {
  rt::needRoom(size_t(16) << 20);
  touchStack();
}
LOWTIDE_BEFORE_EVERYTHING(checkRoom);

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
  rt::prepareUnwinding();
  try {
    return runTool(argc, argv);
  } catch (const std::bad_alloc &) {
    rt::endWithoutMemory();
  }
}
