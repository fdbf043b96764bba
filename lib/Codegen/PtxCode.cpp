//===- PtxCode.cpp - kernels of a GPU module as PTX and machine code -*- C++ -*-===//
//
// Kernels with 32-bit and with 64-bit indices are lowered apart and meet in one LLVM module.
//
//===----------------------------------------------------------------------===//

#include "PtxCode.h"
#include "ExternalTool.h"
#include "GpuLowering.h"
#include "MachineCode.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

std::optional<std::string> codegen::findInToolkit(StringRef file) {
  SmallVector<std::string> roots;
  for (StringRef name : {"CUDA_HOME", "CUDA_PATH"})
    if (auto root = llvm::sys::Process::GetEnv(name); root && !root->empty())
      roots.push_back(*root);
  if (auto dependencies = llvm::sys::Process::GetEnv("LOWTIDE_DEPS"))
    roots.push_back(*dependencies + "/cuda");
  SmallString<128> cache;
  if (llvm::sys::path::cache_directory(cache))
    roots.push_back((cache + "/lowtide/cuda").str());
  roots.push_back("/usr/local/cuda");
  for (const std::string &root : roots)
    if (std::string path = root + "/" + file.str(); llvm::sys::fs::exists(path))
      return path;
  if (file.consume_front("bin/"))
    if (auto program = llvm::sys::findProgramByName(file))
      return *program;
  return std::nullopt;
}

static std::unique_ptr<llvm::TargetMachine> createNvptxMachine(Operation *errors, StringRef chip) {
  // The registry of the process is a list without a lock.
  static std::once_flag isRegistered;
  std::call_once(isRegistered, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    errors->emitError("cannot generate PTX: ") << error;
    return nullptr;
  }
  llvm::TargetOptions options;
  // Strict also spells every product and sum with its rounding, which keeps ptxas from contracting them.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, chip, findChip(chip) ? findChip(chip)->ptx : "+ptx81", options, std::nullopt,
                                  std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

FailureOr<std::string> codegen::compileToPtx(gpu::GPUModuleOp kernels, StringRef chip) {
  llvm::LLVMContext context;
  auto code = std::make_unique<llvm::Module>("kernels", context);
  ModuleOp errors = kernels->getParentOfType<ModuleOp>();
  std::unique_ptr<llvm::TargetMachine> machine = createNvptxMachine(kernels, chip);
  if (!machine)
    return failure();
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  for (bool wideIndex : {false, true}) {
    FailureOr<OwningOpRef<ModuleOp>> functions = toDeviceFunctions(kernels, wideIndex);
    if (failed(functions))
      return failure();
    expandMath(**functions, /*useLibm=*/false);
    expandNarrowFloats(**functions, /*canRound=*/true);
    callLibdevice(**functions);
    std::unique_ptr<llvm::Module> part = translate(**functions, context, wideIndex ? 64 : 32);
    if (!part)
      return failure();
    part->setTargetTriple(machine->getTargetTriple());
    part->setDataLayout(machine->createDataLayout());
    if (llvm::Linker::linkModules(*code, std::move(part)))
      return errors.emitError("cannot join kernels of two index widths");
  }
  if (failed(linkLibdevice(kernels, *code)))
    return failure();
  optimize(errors, *code, *machine, {});
  SmallVector<char, 0> text;
  if (failed(emit(errors, *code, *machine, llvm::CodeGenFileType::AssemblyFile, text)))
    return failure();
  return std::string(text.data(), text.size());
}

FailureOr<std::vector<char>> codegen::assemble(gpu::GPUModuleOp kernels, StringRef ptx, StringRef chip) {
  auto ptxas = findInToolkit("bin/ptxas");
  if (!ptxas) {
    kernels.emitWarning("ptxas is neither on the path nor in a CUDA toolkit: the artifact has no machine code of ")
        << chip << ", the driver will compile its PTX at every load; tools/dev setup brings it";
    return std::vector<char>();
  }
  std::string architecture = ("-arch=" + chip).str();
  return runTool(kernels, "cannot assemble kernels", *ptxas,
                 {architecture, "-O3", "-fmad=false", "-o", "%output", "%input"}, ptx);
}
