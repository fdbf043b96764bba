//===- MachineCode.cpp - from MLIR to an ELF shared object ------*- C++ -*-===//
//
// MLIR's lowering passes, LLVM's O3 without fast-math and without contraction,
// an object in memory, and the linker.
//
//===----------------------------------------------------------------------===//

#include "MachineCode.h"
#include "ExternalTool.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
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
  registerNVVMDialectTranslation(registry);
}

static LogicalResult lower(ModuleOp module, unsigned indexBits) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.enableVerifier(false);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  ArithToLLVMConversionPassOptions arithmetic;
  ConvertIndexToLLVMPassOptions index;
  UBToLLVMConversionPassOptions undefined;
  ConvertFuncToLLVMPassOptions functions;
  ConvertControlFlowToLLVMPassOptions branches;
  arithmetic.indexBitwidth = index.indexBitwidth = undefined.indexBitwidth = functions.indexBitwidth =
      branches.indexBitwidth = indexBits;
  pm.addPass(createArithToLLVMConversionPass(arithmetic));
  pm.addPass(createConvertIndexToLLVMPass(index));
  pm.addPass(createUBToLLVMConversionPass(undefined));
  pm.addPass(createConvertFuncToLLVMPass(functions));
  pm.addPass(createConvertControlFlowToLLVMPass(branches));
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

std::unique_ptr<llvm::Module> codegen::translate(ModuleOp module, llvm::LLVMContext &context, unsigned indexBits) {
  if (failed(lower(module, indexBits)))
    return nullptr;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, "kernels");
  if (!code)
    module.emitError("cannot translate kernels to LLVM IR");
  return code;
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
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, cpu, "", targetOptions, llvm::Reloc::PIC_, std::nullopt,
                                  options.isPlain                                 ? llvm::CodeGenOptLevel::None
                                  : options.isReference() || options.isEmulated() ? llvm::CodeGenOptLevel::Less
                                                                                  : llvm::CodeGenOptLevel::Aggressive));
}

namespace {
/// What LLVM says of kernels becomes a message of ours. LLVM itself would print it, and leave the process at an error.
struct KernelDiagnostics : llvm::DiagnosticHandler {
  explicit KernelDiagnostics(ModuleOp errors) : errors(errors) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    // A kernel asks for vectors wherever they might help; that a loop has none is nothing for the user to mend.
    const bool isForTheUser = info.getSeverity() == llvm::DS_Error || (info.getSeverity() == llvm::DS_Warning &&
                                                                       info.getKind() != llvm::DK_OptimizationFailure);
    if (!isForTheUser)
      return true;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    (info.getSeverity() == llvm::DS_Error ? errors.emitError("kernels: ") : errors.emitWarning("kernels: ")) << text;
    return true;
  }

  ModuleOp errors;
};
} // namespace

void codegen::optimize(ModuleOp errors, llvm::Module &module, llvm::TargetMachine &machine, OptimizeOptions options) {
  module.getContext().setDiagnosticHandler(std::make_unique<KernelDiagnostics>(errors));
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : module)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", machine.getTargetCPU());
      function.addFnAttr("no-trapping-math", "true");
      function.addFnAttr(llvm::Attribute::NoUnwind);
      if (options.vectorBits)
        function.addFnAttr("prefer-vector-width", std::to_string(options.vectorBits));
    }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = options.vectorize;
  llvm::PassBuilder passes(&machine, tuning);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  auto level = options.plain   ? llvm::OptimizationLevel::O0
               : options.quick ? llvm::OptimizationLevel::O1
                               : llvm::OptimizationLevel::O3;
  (options.plain ? passes.buildO0DefaultPipeline(level) : passes.buildPerModuleDefaultPipeline(level))
      .run(module, modules);
}

LogicalResult codegen::emit(ModuleOp errors, llvm::Module &module, llvm::TargetMachine &machine,
                            llvm::CodeGenFileType type, SmallVectorImpl<char> &bytes) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return errors.emitError("cannot write code for this target");
  passes.run(module);
  return failure(module.getContext().getDiagHandlerPtr()->HasErrors);
}

/// Links one object file.
static FailureOr<std::vector<char>> linkObject(ModuleOp module, StringRef object) {
  auto linker = llvm::sys::findProgramByName("ld.lld-22");
  if (!linker)
    linker = llvm::sys::findProgramByName("ld.lld");
  if (!linker) {
    module.emitError("cannot link kernels: ld.lld is not on the path (Debian "
                     "package lld-22)");
    return failure();
  }
  // Fixed names and no build id: equal kernels give equal bytes.
  return runTool(module, "cannot link kernels", *linker,
                 {"-shared", "--build-id=none", "-z", "noexecstack", "--hash-style=gnu", "--soname=kernels.so",
                  "--strip-debug", "-o", "%output", "%input"},
                 object);
}

FailureOr<std::vector<char>> codegen::compileToSharedObject(ModuleOp module, const CodegenOptions &options) {
  expandMath(module, /*useLibm=*/options.isReference());
  expandNarrowFloats(module);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translate(module, context, /*indexBits=*/0);
  if (!code)
    return failure();
  return emitSharedObject(module, *code, options);
}

FailureOr<std::vector<char>> codegen::emitSharedObject(ModuleOp errors, llvm::Module &module,
                                                       const CodegenOptions &options) {
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(errors, options);
  if (!machine)
    return failure();
  // Threads of a GPU are scalar code that is called once a thread: compiling it takes longer than running it.
  const bool isQuick = options.isReference() || options.isEmulated();
  optimize(errors, module, *machine,
           {/*vectorize=*/!isQuick, /*quick=*/isQuick, /*plain=*/options.isPlain,
            /*vectorBits=*/options.cpu == "x86-64-v4" ? 512u : 0u});
  SmallVector<char, 0> object;
  if (failed(emit(errors, module, *machine, llvm::CodeGenFileType::ObjectFile, object)))
    return failure();
  return linkObject(errors, StringRef(object.data(), object.size()));
}
