//===- PrintKernels.cpp - the code of a step instead of its artifact -*- C++ -*-===//
//
// --emit=kernels: kernels as code generation writes them; --emit=ptx: what a GPU's driver takes.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "lowtide/Codegen/KernelModule.h"

using namespace mlir;
using namespace lowtide;

Failure Compilation::checkPtx(const TargetInfo &machine) {
  if (options.emit == "ptx" && machine.kind != TargetKind::Cuda)
    return refuse(FailureKind::Usage, "--emit=ptx needs a GPU to write for, and the target is " + machine.name,
                  {"for example --target=cuda:sm_90; --emit=kernels prints the kernels of every target"});
  return {};
}

Failure Compilation::print(llvm::raw_ostream &os) {
  if (!kernels) {
    printStage(os);
    return {};
  }
  if (options.emit == "kernels") {
    kernels->print(os);
    return {};
  }
  FailureOr<codegen::KernelCode> code = kernels->link();
  if (failed(code))
    return FailureKind::Internal;
  os << code->ptx;
  return {};
}
