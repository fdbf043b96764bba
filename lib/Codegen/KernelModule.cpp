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
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

void KernelModule::registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                  math::MathDialect, NVVM::NVVMDialect, scf::SCFDialect>();
  registerTranslations(registry);
}

KernelModule::KernelModule(MLIRContext *context, CodegenOptions options) : options(std::move(options)) {
  DialectRegistry registry;
  registerDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, gpu::GPUDialect,
                       LLVM::LLVMDialect, math::MathDialect, NVVM::NVVMDialect, scf::SCFDialect>();
  module = ModuleOp::create(UnknownLoc::get(context));
  if (this->options.isGpu())
    addGpuModule(*module);
}

CodegenOptions CodegenOptions::get(StringRef machine) {
  CodegenOptions options;
  if (machine == "cuda-emulated")
    options.chip = "emulated";
  else if (machine.starts_with("sm_"))
    options.chip = machine.str();
  else
    options.cpu = machine.str();
  return options;
}

static LogicalResult verifyBody(nn::KernelOp kernel) {
  for (Type type : llvm::concat<const Type>(kernel.getOperandTypes(), kernel.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return kernel.emitError("kernel operands and results must be tensors of "
                              "static shape, found ")
             << type;
  }
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (!isa<ElementInterface>(op))
      return op.emitError("cannot generate code: ") << op.getName()
                                                    << " has no element description; run nn-decompose before kernels "
                                                       "are formed";
  return success();
}

std::string codegen::describe(nn::KernelOp kernel) {
  std::string text = kernel.getEmitter().str() + ":";
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

std::pair<std::string, bool> KernelModule::getSymbol(StringRef emitter, ModuleOp trial) {
  std::string text;
  llvm::raw_string_ostream(text) << trial;
  std::string &symbol = symbols[text];
  bool isNew = symbol.empty();
  if (isNew)
    symbol = (emitter + "_" + Twine(symbols.size() - 1)).str();
  return {symbol, isNew};
}

FailureOr<KernelInfo> KernelModule::add(nn::KernelOp kernel) {
  if (failed(verifyBody(kernel)))
    return failure();
  if (options.isGpu())
    return addGpu(kernel);
  KernelInfo info;
  info.description = describe(kernel);
  LaunchShape launch;
  unsigned numPointers = kernel.getNumOperands() + kernel.getNumResults();
  // Staged where the kernel asks for it and has the form; the loop emitter takes everything.
  FailureOr<StagedDomain> domain = failure();
  if (kernel.getEmitter() == "row" || kernel.getEmitter() == "column")
    domain = StagedDomain::get(kernel);

  ScatterInterface scatter = getScatter(kernel);

  auto emit = [&](ModuleOp target, StringRef name) -> FailureOr<func::FuncOp> {
    launch = scatter             ? getScatterShape(scatter)
             : succeeded(domain) ? getStagedShape(kernel, *domain)
                                 : getLoopShape(kernel);
    info.inPlace = findInPlace(kernel, succeeded(domain));
    SmallVector<bool> mayAlias(numPointers, false);
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
    } else if (succeeded(domain)) {
      if (failed(emitStaged(context, *domain)))
        return failure();
    } else {
      emitLoop(context);
    }
    return cast<func::FuncOp>(function.function.getOperation());
  };

  // Equal text, equal code. The trial lives in a module of its own, so that constants are part of its text.
  OwningOpRef<ModuleOp> trial = ModuleOp::create(module->getLoc());
  if (failed(emit(*trial, "kernel"))) {
    domain = failure();
    trial = ModuleOp::create(module->getLoc());
    (void)emit(*trial, "kernel");
  }
  auto [symbol, isNew] = getSymbol(kernel.getEmitter(), *trial);
  if (isNew) {
    FailureOr<func::FuncOp> body = emit(*module, symbol + ".body");
    addEntryPoint(*module, symbol, *body, numPointers + (launch.scratchBytes > 0));
  }
  info.extent = launch.extent;
  info.grain = launch.grain;
  info.scratchBytes = launch.scratchBytes;
  info.symbol = symbol;
  return info;
}

FailureOr<KernelCode> KernelModule::link() {
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
    code.ptx = std::move(*ptx);
    code.cubin = std::move(*cubin);
    return code;
  }
  FailureOr<std::vector<char>> object =
      options.isGpu() ? compileEmulated(getGpuModule(*module), options) : compileToSharedObject(*module, options);
  if (failed(object))
    return failure();
  code.object = std::move(*object);
  return code;
}

void KernelModule::print(llvm::raw_ostream &os) { module->print(os); }
