//===- lowtide-lsp-server.cpp - editors understand our IR -------*- C++ -*-===//
//
// MLIR's language server with our dialects, in a child process: what it writes passes through here, where the records'
// documentation is added. Its library has no other place for that.
//
//===----------------------------------------------------------------------===//

#include "OpDocs.h"
#include "lowtide/InitAll.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

static int serve(int argc, char **argv) {
  mlir::DialectRegistry registry;
  lowtide::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}

/// Copies lines, and messages that a header `Content-Length: N` announces with documentation added.
static void passOn(FILE *in) {
  char *line = nullptr;
  size_t capacity = 0;
  for (ssize_t length; (length = getline(&line, &capacity, in)) > 0; fflush(stdout)) {
    unsigned long bytes = 0;
    if (std::sscanf(line, "Content-Length: %lu", &bytes) != 1) {
      fwrite(line, 1, length, stdout);
      continue;
    }
    // Other headers, up to an empty line.
    while ((length = getline(&line, &capacity, in)) > 0 && line[0] != '\r' && line[0] != '\n')
      ;
    std::string message(bytes, '\0');
    message.resize(fread(message.data(), 1, bytes, in));
    message = lowtide::addOpDocs(message);
    std::printf("Content-Length: %zu\r\n\r\n", message.size());
    fwrite(message.data(), 1, message.size(), stdout);
  }
  std::free(line);
}

int main(int argc, char **argv) {
  int ends[2];
  if (pipe(ends) != 0) {
    std::perror("error: pipe");
    return 1;
  }
  pid_t child = fork();
  if (child < 0) {
    std::perror("error: fork");
    return 1;
  }
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    return serve(argc, argv);
  }
  close(ends[1]);
  FILE *in = fdopen(ends[0], "r");
  passOn(in);
  fclose(in);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
