//===- PrintKernels.cpp - the code of a step instead of its artifact -*- C++ -*-===//
//
// --emit=kernels: kernels as code generation writes them; --emit=ptx: what a GPU's driver takes.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "lowtide/Codegen/KernelModule.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::driver;

int Compilation::printKernels(codegen::KernelModule &kernels, StringRef target) {
  std::string ptx;
  if (options.emit == "ptx") {
    if (!target.starts_with("cuda") || target == "cuda-emulated") {
      printError("--emit=ptx needs a GPU to write for, and the target is " + target);
      printNote("for example --target=cuda:sm_90; --emit=kernels prints the kernels of every target");
      return exitUsage;
    }
    FailureOr<codegen::KernelCode> code = kernels.link();
    if (failed(code))
      return exitInternal;
    ptx = std::move(code->ptx);
  }
  std::error_code error;
  llvm::ToolOutputFile out(options.output.empty() ? "-" : options.output, error, llvm::sys::fs::OF_Text);
  if (!error && options.emit == "ptx")
    out.os() << ptx;
  else if (!error)
    kernels.print(out.os());
  out.os().flush();
  if (error || out.os().has_error()) {
    printError("cannot write '" + options.output + "': " + (error ? error : out.os().error()).message());
    out.os().clear_error();
    return exitIo;
  }
  out.keep();
  return exitOk;
}
