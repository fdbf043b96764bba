//===- lowtide.cpp - the compiler's driver ----------------------*- C++ -*-===//
//
// Dispatches to the commands; a crash leaves exit code 70 and a line that says so.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Inspect.h"
#include "Options.h"
#include "VerifyModel.h"
#include "runtime/LeastRoom.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Signals.h"
#include <csignal>
#include <cstring>
#include <string>
#include <unistd.h>

using namespace lowtide::driver;

/// What to print when the compiler itself fails; made before anything can, since a signal handler may not allocate.
static std::string lastWords;

[[noreturn]] static void leave() {
  (void)!write(STDERR_FILENO, lastWords.data(), lastWords.size());
  _exit(exitInternal);
}

/// A defect of the compiler ends in words, exit code 70 and the command that shows it, not in a bare signal.
static void promiseLastWords(int argc, char **argv) {
  lastWords = "error: the compiler crashed; this is a defect of the compiler, whatever the input\nnote: to reproduce:";
  for (int i = 0; i < argc; ++i)
    lastWords += std::string(" ") + argv[i];
  lastWords += "\nnote: attach what `lowtide doctor` prints, and the lines above\n";
  llvm::sys::AddSignalHandler([](void *) { leave(); }, nullptr);
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    (void)!write(STDERR_FILENO, reason, std::strlen(reason));
    (void)!write(STDERR_FILENO, "\n", 1);
    leave();
  });
}

/// What the initialization of LLVM and MLIR takes, and a little more.
static void checkRoom(int, char **, char **) {
  lowtide::rt::needRoom(size_t(32) << 20);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { lowtide::rt::endWithoutMemory(); });
}
LOWTIDE_BEFORE_EVERYTHING(checkRoom);

int main(int argc, char **argv) {
  llvm::InitLLVM initialize(argc, argv);
  promiseLastWords(argc, argv);
  lowtide::rt::prepareUnwinding();
  // A file that may not grow is an error of the write, which names it.
  std::signal(SIGXFSZ, SIG_IGN);
  Options options;
  if (std::optional<int> code = parseOptions(argc, argv, options))
    return *code;
  switch (options.command) {
  case Command::Compile:
    return compileModel(options);
  case Command::Check:
    return checkModel(options);
  case Command::Fit:
    return fitModel(options);
  case Command::Report:
    return drawReport(options);
  case Command::Explain:
    return explainArtifact(options);
  case Command::Diff:
    return showDifference(options);
  case Command::Verify:
    return options.against.empty() ? verifyArtifact(options) : verifyModel(options);
  case Command::Doctor:
    return describeMachine();
  }
  return exitInternal;
}
