//===- lowtide-lsp-server.cpp - editors understand our IR -------*- C++ -*-===//
//
// MLIR's language server with our dialects, in a child process: what it writes passes through here, where the records'
// documentation is added, and so does what it reads, where texts are made such that its parser can refuse them. Its
// library has no other place for that.
//
//===----------------------------------------------------------------------===//

#include "OpDocs.h"
#include "lowtide/InitAll.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static int serve(int argc, char **argv) {
  mlir::DialectRegistry registry;
  lowtide::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}

/// Copies lines, and messages that a header `Content-Length: N` announces as `change` has them.
static void passOn(FILE *in, FILE *out, std::string (*change)(llvm::StringRef message)) {
  char *line = nullptr;
  size_t capacity = 0;
  for (ssize_t length; (length = getline(&line, &capacity, in)) > 0; fflush(out)) {
    unsigned long bytes = 0;
    if (std::sscanf(line, "Content-Length: %lu", &bytes) != 1) {
      fwrite(line, 1, length, out);
      continue;
    }
    // Other headers, up to an empty line.
    while ((length = getline(&line, &capacity, in)) > 0 && line[0] != '\r' && line[0] != '\n')
      ;
    std::string message(bytes, '\0');
    message.resize(fread(message.data(), 1, bytes, in));
    message = change(message);
    std::fprintf(out, "Content-Length: %zu\r\n\r\n", message.size());
    fwrite(message.data(), 1, message.size(), out);
  }
  std::free(line);
}

int main(int argc, char **argv) {
  int ends[2], texts[2];
  if (pipe(ends) != 0 || pipe(texts) != 0) {
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
    dup2(texts[0], STDIN_FILENO);
    for (int end : {ends[0], ends[1], texts[0], texts[1]})
      close(end);
    return serve(argc, argv);
  }
  close(ends[1]);
  close(texts[0]);
  signal(SIGPIPE, SIG_IGN); // the server may end first
  // Ends with the editor's messages, or with this process.
  std::thread([to = texts[1]] {
    FILE *out = fdopen(to, "w");
    passOn(stdin, out, lowtide::boundTexts);
    fclose(out);
  }).detach();
  FILE *in = fdopen(ends[0], "r");
  passOn(in, stdout, lowtide::addOpDocs);
  fclose(in);
  int status = 0;
  waitpid(child, &status, 0);
  fflush(stdout);
  // The thread may wait for the editor's next word.
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
