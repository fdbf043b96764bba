//===- lowtide.cpp - the compiler's driver ----------------------*- C++ -*-===//
//
// Dispatches to the commands; a crash leaves exit code 70 and a line that says so.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "Inspect.h"
#include "Options.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/TargetSelect.h"

using namespace lowtide::driver;

int main(int argc, char **argv) {
  llvm::InitLLVM initialize(argc, argv);
  Options options;
  if (std::optional<int> code = parseOptions(argc, argv, options))
    return *code;
  switch (options.command) {
  case Command::Compile:
    return Compilation(options).compile();
  case Command::Check:
    return Compilation(options).check();
  case Command::Report:
    return drawReport(options);
  case Command::Verify:
    return verifyArtifact(options);
  case Command::Doctor:
    return describeMachine();
  }
  return exitInternal;
}
