//===- Main.cpp - lowtide-run: executes an artifact ------------------------===//
//
// Links no LLVM.
//
//===----------------------------------------------------------------------===//

#include "Signals.h"
#include "TrainingRun.h"

#include "runtime/ExitCode.h"

using namespace lowtide;

int main(int argc, char **argv) {
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
