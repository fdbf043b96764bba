//===- MachineCode.cpp - from MLIR to an ELF shared object ------*- C++ -*-===//
//
// MLIR's lowering passes, LLVM's O3 without fast-math and without contraction,
// an object in memory, and the linker.
//
//===----------------------------------------------------------------------===//

#include "MachineCode.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

void codegen::registerTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

static LogicalResult lower(ModuleOp module) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.enableVerifier(false);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  if (failed(pm.run(module)))
    return failure();
  // Branches keep a loop's annotation as a mere attribute; translation reads the property.
  module.walk([](LLVM::BrOp branch) {
    if (auto annotation = branch->getAttrOfType<LLVM::LoopAnnotationAttr>("llvm.loop_annotation")) {
      branch.setLoopAnnotationAttr(annotation);
      branch->removeAttr("llvm.loop_annotation");
    }
  });
  return success();
}

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(ModuleOp module, const CodegenOptions &options) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    module.emitError("cannot generate machine code: ") << error;
    return nullptr;
  }
  llvm::TargetOptions targetOptions;
  // A product and a sum stay two operations: fusing kernels or changing their
  // order must not change bits.
  targetOptions.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::string cpu = options.isReference() ? "x86-64" : options.cpu;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu, "", targetOptions, llvm::Reloc::PIC_, std::nullopt,
      options.isReference() ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Aggressive));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine, const CodegenOptions &options) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", machine.getTargetCPU());
      function.addFnAttr("no-trapping-math", "true");
      function.addFnAttr(llvm::Attribute::NoUnwind);
      if (options.cpu == "x86-64-v4")
        function.addFnAttr("prefer-vector-width", "512");
    }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = !options.isReference();
  llvm::PassBuilder passes(&machine, tuning);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  auto level = options.isReference() ? llvm::OptimizationLevel::O1 : llvm::OptimizationLevel::O3;
  passes.buildPerModuleDefaultPipeline(level).run(module, modules);
}

/// Links one object file. The linker reads and writes files: they live in a
/// temporary folder of their own.
static FailureOr<std::vector<char>> linkObject(ModuleOp module, StringRef object) {
  auto linker = llvm::sys::findProgramByName("ld.lld-22");
  if (!linker)
    linker = llvm::sys::findProgramByName("ld.lld");
  if (!linker) {
    module.emitError("cannot link kernels: ld.lld is not on the path (Debian "
                     "package lld-22)");
    return failure();
  }
  SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("lowtide-link", folder)) {
    module.emitError("cannot link kernels: cannot create a temporary folder: ") << error.message();
    return failure();
  }
  std::string input = (folder + "/kernels.o").str(), output = (folder + "/kernels.so").str(),
              log = (folder + "/log").str();
  FailureOr<std::vector<char>> result = failure();
  std::error_code error;
  {
    llvm::raw_fd_ostream file(input, error);
    if (!error)
      file << object;
  }
  std::string message;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  // Fixed names and no build id: equal kernels give equal bytes.
  if (error) {
    module.emitError("cannot link kernels: cannot write ") << input << ": " << error.message();
  } else if (llvm::sys::ExecuteAndWait(*linker,
                                       {*linker, "-shared", "--build-id=none", "-z", "noexecstack", "--hash-style=gnu",
                                        "--soname=kernels.so", "--strip-debug", "-o", output, input},
                                       std::nullopt, redirects, /*SecondsToWait=*/0,
                                       /*MemoryLimit=*/0, &message)) {
    auto text = llvm::MemoryBuffer::getFile(log);
    module.emitError("cannot link kernels: ") << (text ? (*text)->getBuffer() : StringRef(message));
  } else if (auto file = llvm::MemoryBuffer::getFile(output)) {
    result = std::vector<char>((*file)->getBufferStart(), (*file)->getBufferEnd());
  } else {
    module.emitError("cannot link kernels: the linker wrote nothing");
  }
  llvm::sys::fs::remove_directories(folder);
  return result;
}

FailureOr<std::vector<char>> codegen::compileToSharedObject(ModuleOp module, const CodegenOptions &options) {
  expandMath(module, /*useLibm=*/options.isReference());
  expandNarrowFloats(module);
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(module, options);
  if (!machine || failed(lower(module)))
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, "kernels");
  if (!code) {
    module.emitError("cannot translate kernels to LLVM IR");
    return failure();
  }
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  optimize(*code, *machine, options);
  SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emit;
  if (machine->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    module.emitError("cannot write object code for this target");
    return failure();
  }
  emit.run(*code);
  return linkObject(module, StringRef(object.data(), object.size()));
}
