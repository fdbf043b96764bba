//===- Main.cpp - lowtide-run: executes an artifact ------------------------===//
//
// Links no LLVM.
//
//===----------------------------------------------------------------------===//

#include "TrainingRun.h"

#include "runtime/ExitCode.h"

using namespace lowtide;

int main(int argc, char **argv) {
  run::Options options;
  if (std::optional<int> code = run::parseOptions(argc, argv, options))
    return *code;
  return rt::exitCodeOf([&] { return run::TrainingRun(options).run(); });
}
