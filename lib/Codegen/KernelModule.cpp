//===- KernelModule.cpp - kernel ops become machine code --------*- C++ -*-===//
//
// Chooses the emitter of each kernel and gives kernels with equal code one
// symbol.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Codegen/KernelModule.h"
#include "Emitters.h"
#include "MachineCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

void KernelModule::registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect>();
  registerTranslations(registry);
}

KernelModule::KernelModule(MLIRContext *context, CodegenOptions options) : options(std::move(options)) {
  DialectRegistry registry;
  registerDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect,
                       math::MathDialect, scf::SCFDialect>();
  module = ModuleOp::create(UnknownLoc::get(context));
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

static std::string describe(nn::KernelOp kernel) {
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

FailureOr<KernelInfo> KernelModule::add(nn::KernelOp kernel) {
  if (failed(verifyBody(kernel)))
    return failure();
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
    return function.function;
  };

  // Equal text, equal code. The trial lives in a module of its own, so that constants are part of its text.
  OwningOpRef<ModuleOp> trial = ModuleOp::create(module->getLoc());
  if (failed(emit(*trial, "kernel"))) {
    domain = failure();
    trial = ModuleOp::create(module->getLoc());
    (void)emit(*trial, "kernel");
  }
  std::string text;
  llvm::raw_string_ostream(text) << *trial;
  std::string &symbol = symbols[text];
  if (symbol.empty()) {
    symbol = (kernel.getEmitter() + "_" + Twine(symbols.size() - 1)).str();
    FailureOr<func::FuncOp> body = emit(*module, symbol + ".body");
    addEntryPoint(*module, symbol, *body, numPointers + (launch.scratchBytes > 0));
  }
  info.extent = launch.extent;
  info.grain = launch.grain;
  info.scratchBytes = launch.scratchBytes;
  info.symbol = symbol;
  return info;
}

FailureOr<std::vector<char>> KernelModule::link() {
  if (failed(verify(*module)))
    return failure();
  return compileToSharedObject(*module, options);
}

void KernelModule::print(llvm::raw_ostream &os) { module->print(os); }
