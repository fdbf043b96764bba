//===- KernelModule.cpp - kernel ops become machine code --------*- C++ -*-===//
//
// Chooses the emitter of each kernel and gives kernels with equal code one
// symbol.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Codegen/KernelModule.h"
#include "Emitters.h"
#include "GpuLowering.h"
#include "MachineCode.h"
#include "PtxCode.h"
#include "TrialTable.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "runtime/StatementMarks.h"

#include <mutex>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

void KernelModule::registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                  math::MathDialect, NVVM::NVVMDialect, scf::SCFDialect>();
  registerTranslations(registry);
  registerKernelTrials(registry);
}

KernelModule::KernelModule(MLIRContext *context, CodegenOptions options) : options(std::move(options)) {
  DialectRegistry registry;
  registerDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, gpu::GPUDialect,
                       LLVM::LLVMDialect, math::MathDialect, NVVM::NVVMDialect, scf::SCFDialect>();
  trials = getKernelTrials(*context);
  module = ModuleOp::create(UnknownLoc::get(context));
  if (this->options.isGpu())
    addGpuModule(*module);
}

KernelModule::KernelModule(OwningOpRef<ModuleOp> functions, size_t numKernels, CodegenOptions options)
    : options(std::move(options)), module(std::move(functions)), numGiven(numKernels) {}

CodegenOptions CodegenOptions::get(const TargetInfo &target) {
  CodegenOptions options;
  options.processors = target.processors;
  switch (target.kind) {
  case TargetKind::Cpu:
    options.cpu = target.chip;
    options.vectorBits = target.vectorBits;
    break;
  case TargetKind::Cuda:
    options.chip = target.chip;
    break;
  case TargetKind::CudaEmulated:
    options.chip = "emulated";
    break;
  case TargetKind::Reference:
    options.cpu = "reference";
    break;
  }
  return options;
}

/// Refuses a tensor of no elements, and one of more than a kernel's indices count: products of its extents would wrap.
static LogicalResult verifyExtents(Operation *op, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t elements = 1;
  for (int64_t extent : tensor.getShape())
    if (extent <= 0)
      return op->emitError("cannot generate code: ") << type << " has no elements";
    else if (__builtin_mul_overflow(elements, extent, &elements))
      return op->emitError("cannot generate code: ") << type << " has more elements than 2^63 - 1";
  return success();
}

/// Whether memory holds elements of this type one by one: numbers of whole bytes, and booleans.
static bool isStored(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element))
    return llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() % 8 == 0;
}

static LogicalResult verifyBody(nn::KernelOp kernel) {
  for (Type type : llvm::concat<const Type>(kernel.getOperandTypes(), kernel.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return kernel.emitError("kernel operands and results must be tensors of "
                              "static shape, found ")
             << type;
    if (!isStored(tensor.getElementType()))
      return kernel.emitError("cannot generate code: ") << type << " has elements that take no place of their own";
    if (failed(verifyExtents(kernel, type)))
      return failure();
  }
  for (Operation &op : kernel.getBlock()->without_terminator())
    for (Type type : op.getResultTypes())
      if (isa<RankedTensorType>(type) && failed(verifyExtents(&op, type)))
        return failure();
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (!isa<ElementInterface>(op))
      return op.emitError("cannot generate code: ") << op.getName()
                                                    << " has no element description; run nn-decompose before kernels "
                                                       "are formed";
  return success();
}

std::string codegen::describe(nn::KernelOp kernel) {
  std::string text = stringifyEmitter(kernel.getEmitter()).str() + ":";
  unsigned count = 0;
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (++count > 8)
      return text + " …";
    text += " " + op.getName().stripDialect().str();
  }
  return text;
}

std::pair<std::string, bool> KernelModule::getSymbol(nn::Emitter emitter, TextNumber text) {
  std::string &symbol = symbols[text];
  bool isNew = symbol.empty();
  if (isNew)
    symbol = (stringifyEmitter(emitter) + "_" + Twine(symbols.size() - 1)).str();
  return {symbol, isNew};
}

std::pair<std::string, bool> KernelModule::getSymbol(nn::Emitter emitter, ModuleOp trial) {
  return getSymbol(emitter, numberText([&](llvm::raw_ostream &os) { os << trial; }));
}

/// Writes the function of a kernel at the end of `target`; fills what `info` says of the launch. Fails where `domain`
/// is there and the kernel has not its form.
static FailureOr<func::FuncOp> emitCpu(ModuleOp target, StringRef name, nn::KernelOp kernel,
                                       const FailureOr<StagedDomain> &domain, KernelInfo &info) {
  ScatterInterface scatter = getFedScatter(kernel);
  nn::CumSumOp runningSum = getRunningSum(kernel);
  nn::TransposeOp transpose = getCrosswiseTranspose(kernel);
  LaunchShape launch = scatter             ? getScatterShape(scatter)
                       : runningSum        ? getRunningSumShape(runningSum)
                       : transpose         ? getTransposeShape(transpose)
                       : succeeded(domain) ? getStagedShape(kernel, *domain)
                                           : getLoopShape(kernel);
  info.extent = launch.extent;
  info.grain = launch.grain;
  info.scratchBytes = launch.scratchBytes;
  info.inPlace = findInPlace(kernel, succeeded(domain));
  SmallVector<bool> mayAlias(kernel.getNumOperands() + kernel.getNumResults(), false);
  for (auto [result, operands] : llvm::enumerate(info.inPlace))
    for (int operand : operands)
      mayAlias[operand] = mayAlias[kernel.getNumOperands() + result] = true;
  KernelFunction function(target, name, mayAlias, launch.scratchBytes > 0);
  RegionEvaluator evaluator(function);
  for (auto [i, argument] : llvm::enumerate(kernel.getBlock()->getArguments()))
    evaluator.bindArray(argument, function.getPointer(i));
  KernelContext context{kernel, function, evaluator};
  if (scatter) {
    emitScatter(context, scatter);
  } else if (runningSum) {
    emitRunningSum(context, runningSum);
  } else if (transpose) {
    emitTranspose(context, transpose);
  } else if (succeeded(domain)) {
    if (failed(emitStaged(context, *domain)))
      return failure();
  } else {
    emitLoop(context);
  }
  function.finishTables();
  return cast<func::FuncOp>(function.function.getOperation());
}

/// Staged where the kernel asks for it and has the form; the loop emitter takes everything.
static FailureOr<StagedDomain> findDomain(nn::KernelOp kernel) {
  if (kernel.getEmitter() == nn::Emitter::row || kernel.getEmitter() == nn::Emitter::column)
    return StagedDomain::get(kernel);
  return failure();
}

KernelTrials::KernelTrials() : table(std::make_unique<Table>()) {}
KernelTrials::~KernelTrials() = default;

namespace {

/// The place for them in a context: the dialect that kernels are of.
class TrialsInterface : public DialectInterface::Base<TrialsInterface> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TrialsInterface)
  TrialsInterface(Dialect *dialect) : Base(dialect) {}

  std::shared_ptr<KernelTrials> trials = std::make_shared<KernelTrials>();
};

} // namespace

/// Null where the context has none.
static TrialsInterface *findTrials(MLIRContext &context) {
  Dialect *dialect = context.getLoadedDialect<nn::NNDialect>();
  return dialect ? dialect->getRegisteredInterface<TrialsInterface>() : nullptr;
}

void codegen::registerKernelTrials(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, nn::NNDialect *dialect) {
    if (!dialect->getRegisteredInterface<TrialsInterface>())
      dialect->addInterfaces<TrialsInterface>();
  });
}

void codegen::shareKernelTrials(MLIRContext &context, std::shared_ptr<KernelTrials> trials) {
  if (TrialsInterface *own = findTrials(context))
    own->trials = std::move(trials);
}

std::shared_ptr<KernelTrials> codegen::getKernelTrials(MLIRContext &context) {
  TrialsInterface *own = findTrials(context);
  return own ? own->trials : std::make_shared<KernelTrials>();
}

KernelModule::CpuTrial KernelModule::tryCpu(nn::KernelOp kernel) {
  std::mutex &mutex = trials->table->mutex;
  auto &known = trials->table->known;
  TextNumber key = numberText([&](llvm::raw_ostream &os) { printBody(os, kernel); });
  {
    std::lock_guard lock(mutex);
    if (auto it = known.find(key); it != known.end())
      return it->second;
  }
  // The trial lives in a module of its own, so that constants are part of its text.
  CpuTrial trial;
  FailureOr<StagedDomain> domain = findDomain(kernel);
  OwningOpRef<ModuleOp> own = ModuleOp::create(module->getLoc());
  if (failed(emitCpu(*own, "kernel", kernel, domain, trial.info))) {
    domain = failure();
    own = ModuleOp::create(module->getLoc());
    (void)emitCpu(*own, "kernel", kernel, domain, trial.info);
  }
  trial.isStaged = succeeded(domain);
  trial.info.description = describe(kernel);
  trial.text = numberText([&](llvm::raw_ostream &os) { os << *own; });
  std::lock_guard lock(mutex);
  return known.emplace(key, std::move(trial)).first->second;
}

FailureOr<KernelInfo> KernelModule::query(nn::KernelOp kernel) {
  if (options.isGpu())
    return add(kernel);
  if (failed(verifyBody(kernel)))
    return failure();
  return tryCpu(kernel).info;
}

FailureOr<KernelInfo> KernelModule::add(nn::KernelOp kernel) {
  if (failed(verifyBody(kernel)))
    return failure();
  if (options.isGpu())
    return addGpu(kernel);
  CpuTrial trial = tryCpu(kernel);
  auto [symbol, isNew] = getSymbol(kernel.getEmitter(), trial.text);
  trial.info.symbol = symbol;
  if (isNew) {
    FailureOr<func::FuncOp> body =
        emitCpu(*module, symbol + ".body", kernel,
                trial.isStaged ? findDomain(kernel) : FailureOr<StagedDomain>(failure()), trial.info);
    addEntryPoint(*module, symbol, *body,
                  kernel.getNumOperands() + kernel.getNumResults() + (trial.info.scratchBytes > 0));
  }
  return trial.info;
}

FailureOr<KernelCode> KernelModule::link(StringRef statements) {
  if (failed(verify(*module)))
    return failure();
  KernelCode code;
  if (options.isGpu() && !options.isEmulated()) {
    gpu::GPUModuleOp kernels = getGpuModule(*module);
    FailureOr<std::string> ptx = compileToPtx(kernels, options.chip);
    if (failed(ptx))
      return failure();
    FailureOr<std::vector<char>> cubin = assemble(kernels, *ptx, options.chip);
    if (failed(cubin))
      return failure();
    std::string stated = "\n";
    for (StringRef line : llvm::split(statements.rtrim('\n'), '\n'))
      stated += (rt::statementMark + line + "\n").str();
    code.ptx = *ptx + stated;
    code.cubin = std::move(*cubin);
    if (!code.cubin.empty())
      llvm::append_range(code.cubin, stated);
    return code;
  }
  FailureOr<std::vector<char>> object = options.isGpu()
                                            ? compileEmulated(getGpuModule(*module), options, statements)
                                            : compileToSharedObject(*module, options, statements, code.numKept);
  if (failed(object))
    return failure();
  code.object = std::move(*object);
  return code;
}

void KernelModule::print(llvm::raw_ostream &os) { module->print(os); }
