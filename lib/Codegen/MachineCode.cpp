//===- MachineCode.cpp - from MLIR to an ELF shared object ------*- C++ -*-===//
//
// MLIR's lowering passes, LLVM's O3 without fast-math and without contraction,
// an object in memory, and the linker. Kernels of a CPU are compiled one by one,
// so that those of earlier compiles need not be compiled again, and LLVM's part
// of it on all processors.
//
//===----------------------------------------------------------------------===//

#include "MachineCode.h"
#include "ExternalTool.h"
#include "KernelCache.h"
#include "SharedBodies.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "runtime/StatementMarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include <mutex>

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
  // The registry of the process is a list without a lock.
  static std::once_flag isRegistered;
  std::call_once(isRegistered, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
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
  using Say = std::function<void(llvm::DiagnosticSeverity, std::string)>;
  explicit KernelDiagnostics(Say say) : say(std::move(say)) {}

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
    say(info.getSeverity(), std::move(text));
    return true;
  }

  Say say;
};
} // namespace

static void emitMessage(ModuleOp errors, llvm::DiagnosticSeverity severity, StringRef text) {
  (severity == llvm::DS_Error ? errors.emitError("kernels: ") : errors.emitWarning("kernels: ")) << text;
}

static OptimizeOptions getCpuOptions(const CodegenOptions &options) {
  // Threads of a GPU are scalar code that is called once a thread: compiling it takes longer than running it.
  const bool isQuick = options.isReference() || options.isEmulated();
  return {/*vectorize=*/!isQuick, /*quick=*/isQuick, /*plain=*/options.isPlain,
          /*vectorBits=*/options.vectorBits > 256 ? options.vectorBits : 0}; // up to 256 LLVM uses what there is
}

/// LLVM's passes; what it says goes to the handler of the module's context.
static void runPasses(llvm::Module &module, llvm::TargetMachine &machine, OptimizeOptions options) {
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

void codegen::optimize(ModuleOp errors, llvm::Module &module, llvm::TargetMachine &machine, OptimizeOptions options) {
  module.getContext().setDiagnosticHandler(std::make_unique<KernelDiagnostics>(
      [errors](llvm::DiagnosticSeverity severity, std::string text) { emitMessage(errors, severity, text); }));
  runPasses(module, machine, options);
}

/// False where the target has no such code.
static bool writeCode(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type,
                      SmallVectorImpl<char> &bytes) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return false;
  passes.run(module);
  return true;
}

LogicalResult codegen::emit(ModuleOp errors, llvm::Module &module, llvm::TargetMachine &machine,
                            llvm::CodeGenFileType type, SmallVectorImpl<char> &bytes) {
  if (!writeCode(module, machine, type, bytes))
    return errors.emitError("cannot write code for this target");
  return failure(module.getContext().getDiagHandlerPtr()->HasErrors);
}

/// Links an object file, or all of an archive.
static FailureOr<std::vector<char>> linkObjects(ModuleOp module, StringRef file) {
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
                  "--strip-debug", "--whole-archive", "-o", "%output", "%input"},
                 file);
}

/// Adds a section of the object that holds the text.
static void addStatements(llvm::Module &module, StringRef statements) {
  if (statements.empty())
    return;
  llvm::Constant *text = llvm::ConstantDataArray::getString(module.getContext(), statements, /*AddNull=*/false);
  auto *stated = new llvm::GlobalVariable(module, text->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, text, "statements");
  stated->setSection(rt::statementSection);
  stated->setAlignment(llvm::Align(1));
  llvm::appendToUsed(module, {stated});
}

/// What a kernel and its body are called in an object of their own.
static constexpr StringLiteral kernelName = "kernel", bodyName = "kernel.0";

/// The function `entry` and all that it uses, in a module of its own, under names that do not depend on other kernels.
static OwningOpRef<ModuleOp> isolate(const SymbolTable &symbols, func::FuncOp entry) {
  OwningOpRef<ModuleOp> own = ModuleOp::create(entry.getLoc());
  llvm::SetVector<Operation *> used;
  used.insert(entry);
  for (unsigned i = 0; i < used.size(); ++i)
    if (auto uses = SymbolTable::getSymbolUses(used[i]))
      for (const SymbolTable::SymbolUse &use : *uses)
        if (Operation *definition = symbols.lookup(use.getSymbolRef().getRootReference()))
          used.insert(definition);
  OpBuilder builder = OpBuilder::atBlockEnd(own->getBody());
  for (Operation *definition : used)
    builder.clone(*definition);
  SymbolTable names(*own);
  unsigned count = 0;
  for (Operation &definition : llvm::make_early_inc_range(*own->getBody())) {
    auto function = dyn_cast<FunctionOpInterface>(definition);
    if (function && function.isExternal())
      continue; // of a library
    const std::string name = count ? (kernelName + "." + Twine(count - 1)).str() : kernelName.str();
    (void)names.rename(&definition, name);
    ++count;
  }
  return own;
}

namespace {
/// One kernel on its way to an object, or a body that several share. From LLVM IR on it shares nothing with others, and
/// any thread may go on with it.
struct KernelJob {
  std::string symbol, key;
  unsigned numKernels = 1;
  OwningOpRef<ModuleOp> kernel;
  /// The object under the names of an isolated kernel.
  std::unique_ptr<llvm::MemoryBuffer> object;
  bool isKept = false;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> code;
  std::vector<std::pair<llvm::DiagnosticSeverity, std::string>> messages;

  void compile(llvm::TargetMachine &machine, OptimizeOptions options);
};
} // namespace

void KernelJob::compile(llvm::TargetMachine &machine, OptimizeOptions options) {
  context->setDiagnosticHandler(
      std::make_unique<KernelDiagnostics>([this](llvm::DiagnosticSeverity severity, std::string text) {
        messages.emplace_back(severity, std::move(text));
      }));
  runPasses(*code, machine, options);
  SmallVector<char, 0> bytes;
  if (!writeCode(*code, machine, llvm::CodeGenFileType::ObjectFile, bytes))
    messages.emplace_back(llvm::DS_Error, "cannot write code for this target");
  else if (!context->getDiagHandlerPtr()->HasErrors)
    object = llvm::MemoryBuffer::getMemBufferCopy(StringRef(bytes.data(), bytes.size()));
  code.reset();
  context.reset();
}

/// The object with the symbols that the plan knows.
static FailureOr<std::unique_ptr<llvm::MemoryBuffer>> nameObject(ModuleOp errors, llvm::MemoryBufferRef object,
                                                                 StringRef symbol) {
  auto fail = [&](llvm::Error error) -> LogicalResult {
    return errors.emitError("cannot name kernel ") << symbol << ": " << llvm::toString(std::move(error));
  };
  auto binary = llvm::object::ObjectFile::createObjectFile(object);
  if (!binary)
    return fail(binary.takeError());
  llvm::objcopy::ConfigManager config;
  config.Common.SymbolsToRename[kernelName] = symbol;
  const std::string body = (symbol + ".body").str();
  config.Common.SymbolsToRename[bodyName] = body;
  SmallVector<char, 0> named;
  llvm::raw_svector_ostream stream(named);
  if (llvm::Error error = llvm::objcopy::executeObjcopyOnBinary(config, **binary, stream))
    return fail(std::move(error));
  return llvm::MemoryBuffer::getMemBufferCopy(StringRef(named.data(), named.size()), symbol);
}

/// Fewer kernels than this are compiled one by one: what an earlier compile kept is found again whatever else there is.
static constexpr size_t fewestToShare = 4;

/// Adds the entry point of a kernel to `points`: it calls the shared body `symbol`, with further arguments.
static void addSharedEntry(ModuleOp points, func::FuncOp entry, StringRef symbol, func::FuncOp body,
                           ArrayRef<int64_t> further) {
  OpBuilder builder = OpBuilder::atBlockEnd(points.getBody());
  auto own = cast<func::FuncOp>(builder.clone(*entry));
  auto call = *own.getOps<func::CallOp>().begin();
  builder.setInsertionPoint(call);
  SmallVector<Value> arguments(call.getOperands());
  for (int64_t value : further)
    arguments.push_back(arith::ConstantIndexOp::create(builder, call.getLoc(), value));
  func::CallOp::create(builder, call.getLoc(), symbol, body.getResultTypes(), arguments);
  call.erase();
}

/// What is compiled for the kernels of a module, in the order of their functions; entry points of those that share a
/// body go to `points`.
static std::vector<std::unique_ptr<KernelJob>> createJobs(ModuleOp module, ModuleOp points) {
  const SymbolTable symbols(module);
  struct Kernel {
    func::FuncOp entry;
    OwningOpRef<ModuleOp> own;
    func::FuncOp body;
    std::unique_ptr<KernelForm> form;
  };
  std::vector<Kernel> kernels;
  llvm::MapVector<StringRef, SmallVector<Kernel *>> groups;
  for (auto entry : module.getOps<func::FuncOp>())
    if (entry.isPublic()) {
      OwningOpRef<ModuleOp> own = isolate(symbols, entry);
      auto body = own->lookupSymbol<func::FuncOp>(bodyName);
      auto form = std::make_unique<KernelForm>(*own, body);
      kernels.push_back({entry, std::move(own), body, std::move(form)});
    }
  for (Kernel &kernel : kernels)
    groups[kernel.form->getText()].push_back(&kernel);
  std::vector<std::unique_ptr<KernelJob>> jobs;
  auto addJob = [&](Kernel &kernel, size_t numKernels) {
    KernelJob &job = *jobs.emplace_back(std::make_unique<KernelJob>());
    job.symbol = kernel.entry.getName();
    job.numKernels = numKernels;
    job.kernel = std::move(kernel.own);
  };
  for (Kernel &kernel : kernels) {
    ArrayRef<Kernel *> group = groups[kernel.form->getText()];
    if (group.size() < fewestToShare) {
      addJob(kernel, 1);
      continue;
    }
    if (group.front() != &kernel)
      continue;
    SmallVector<SmallVector<int64_t>> further =
        shareBody(kernel.body,
                  llvm::map_to_vector(group, [](const Kernel *one) -> const KernelForm * { return one->form.get(); }));
    const std::string symbol = (kernel.entry.getName() + ".body").str();
    OpBuilder builder = OpBuilder::atBlockEnd(points.getBody());
    func::FuncOp::create(builder, kernel.body.getLoc(), symbol, kernel.body.getFunctionType()).setPrivate();
    for (auto [one, values] : llvm::zip_equal(group, further))
      addSharedEntry(points, one->entry, symbol, kernel.body, values);
    kernel.own->lookupSymbol(kernelName)->erase();
    addJob(kernel, group.size());
  }
  return jobs;
}

/// The kernels' objects in the order of their functions. MLIR's part is done in this thread, LLVM's on all processors:
/// which of them a kernel meets is nothing that its code depends on.
static FailureOr<std::vector<std::unique_ptr<KernelJob>>> compileJobs(ModuleOp module, ModuleOp points,
                                                                      const CodegenOptions &options) {
  KernelCache cache(options.cacheFolder);
  std::vector<std::unique_ptr<KernelJob>> jobs = createJobs(module, points);
  llvm::DefaultThreadPool threads(llvm::hardware_concurrency());
  bool isFailed = false;
  for (const std::unique_ptr<KernelJob> &next : jobs) {
    KernelJob &job = *next;
    OwningOpRef<ModuleOp> kernel = std::move(job.kernel);
    std::string text = options.cpu + "\n";
    llvm::raw_string_ostream(text) << *kernel;
    job.key = KernelCache::getKey(text);
    job.object = cache.find(job.key);
    job.isKept = job.object != nullptr;
    if (job.isKept)
      continue;
    std::shared_ptr<llvm::TargetMachine> machine = createTargetMachine(module, options);
    expandMath(*kernel, /*useLibm=*/false);
    expandNarrowFloats(*kernel);
    job.context = std::make_unique<llvm::LLVMContext>();
    if (machine)
      job.code = translate(*kernel, *job.context, /*indexBits=*/0);
    if (!job.code) {
      isFailed = true;
      break;
    }
    threads.async([&job, &options, machine] { job.compile(*machine, getCpuOptions(options)); });
  }
  threads.wait();
  for (const std::unique_ptr<KernelJob> &job : jobs) {
    for (const auto &[severity, said] : job->messages)
      emitMessage(module, severity, said);
    isFailed |= !job->object;
    if (job->object && !job->isKept)
      cache.keep(job->key, llvm::ArrayRef(job->object->getBufferStart(), job->object->getBufferSize()));
  }
  if (isFailed)
    return failure();
  return jobs;
}

/// As compileToSharedObject does it, kernel by kernel.
static FailureOr<std::vector<char>> compileEach(ModuleOp module, const CodegenOptions &options, StringRef statements,
                                                unsigned &numKept) {
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(module, options);
  if (!machine)
    return failure();
  OwningOpRef<ModuleOp> points = ModuleOp::create(module.getLoc());
  auto jobs = compileJobs(module, *points, options);
  if (failed(jobs))
    return failure();
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  std::vector<llvm::NewArchiveMember> members;
  for (const std::unique_ptr<KernelJob> &job : *jobs) {
    numKept += job->isKept ? job->numKernels : 0;
    auto named = nameObject(module, job->object->getMemBufferRef(), job->symbol);
    if (failed(named))
      return failure();
    objects.push_back(std::move(*named));
    members.emplace_back(objects.back()->getMemBufferRef());
  }
  llvm::LLVMContext context;
  // Entry points of shared bodies, and what is stated: nothing that would be worth vectors.
  std::unique_ptr<llvm::Module> rest = translate(*points, context, /*indexBits=*/0);
  if (!rest)
    return failure();
  rest->setSourceFileName("statements");
  optimize(module, *rest, *machine, {/*vectorize=*/false, /*quick=*/true});
  addStatements(*rest, statements);
  SmallVector<char, 0> object;
  if (failed(emit(module, *rest, *machine, llvm::CodeGenFileType::ObjectFile, object)))
    return failure();
  members.emplace_back(llvm::MemoryBufferRef(StringRef(object.data(), object.size()), "statements"));
  auto archive =
      llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU,
                                 /*Deterministic=*/true, /*Thin=*/false);
  if (!archive)
    return module.emitError("cannot collect kernels: ") << llvm::toString(archive.takeError());
  return linkObjects(module, (*archive)->getBuffer());
}

FailureOr<std::vector<char>> codegen::compileToSharedObject(ModuleOp module, const CodegenOptions &options,
                                                            StringRef statements, unsigned &numKept) {
  // Code that LLVM hardly looks at is made faster than it is found.
  if (!options.isReference() && !options.isPlain)
    return compileEach(module, options, statements, numKept);
  expandMath(module, /*useLibm=*/options.isReference());
  expandNarrowFloats(module);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translate(module, context, /*indexBits=*/0);
  if (!code)
    return failure();
  return emitSharedObject(module, *code, options, statements);
}

FailureOr<std::vector<char>> codegen::emitSharedObject(ModuleOp errors, llvm::Module &module,
                                                       const CodegenOptions &options, StringRef statements) {
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(errors, options);
  if (!machine)
    return failure();
  optimize(errors, module, *machine, getCpuOptions(options));
  addStatements(module, statements);
  SmallVector<char, 0> object;
  if (failed(emit(errors, module, *machine, llvm::CodeGenFileType::ObjectFile, object)))
    return failure();
  return linkObjects(errors, StringRef(object.data(), object.size()));
}
