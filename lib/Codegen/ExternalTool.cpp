//===- ExternalTool.cpp - runs a linker or assembler ------------*- C++ -*-===//
//
// A folder, two files, a process.
//
//===----------------------------------------------------------------------===//

#include "ExternalTool.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace lowtide;

FailureOr<std::vector<char>> codegen::runTool(Operation *errors, StringRef what, StringRef program,
                                              ArrayRef<StringRef> arguments, StringRef input, std::string *log) {
  SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("lowtide-tool", folder)) {
    errors->emitError() << what << ": cannot create a temporary folder: " << error.message();
    return failure();
  }
  std::string inputPath = (folder + "/input").str(), outputPath = (folder + "/output").str(),
              logPath = (folder + "/log").str();
  FailureOr<std::vector<char>> result = failure();
  std::error_code error;
  {
    llvm::raw_fd_ostream file(inputPath, error);
    if (!error) {
      file << input;
      file.close();
      // A stream that is left with an error ends the program.
      error = file.error();
      file.clear_error();
    }
  }
  SmallVector<StringRef> command{program};
  for (StringRef argument : arguments)
    command.push_back(argument == "%input"    ? StringRef(inputPath)
                      : argument == "%output" ? StringRef(outputPath)
                                              : argument);
  std::string message;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(logPath), StringRef(logPath)};
  bool ran = !error && llvm::sys::ExecuteAndWait(program, command, std::nullopt, redirects, /*SecondsToWait=*/0,
                                                 /*MemoryLimit=*/0, &message) == 0;
  auto text = llvm::MemoryBuffer::getFile(logPath);
  std::string printed = text ? (*text)->getBuffer().str() : message;
  if (log)
    *log = printed;
  if (error) {
    errors->emitError() << what << ": cannot write " << inputPath << ": " << error.message()
                        << "; TMPDIR names the folder for such files";
  } else if (!ran) {
    errors->emitError() << what << ": " << (printed.empty() ? message : printed);
  } else if (auto file = llvm::MemoryBuffer::getFile(outputPath)) {
    result = std::vector<char>((*file)->getBufferStart(), (*file)->getBufferEnd());
  } else {
    errors->emitError() << what << ": " << program << " wrote nothing";
  }
  llvm::sys::fs::remove_directories(folder);
  return result;
}
