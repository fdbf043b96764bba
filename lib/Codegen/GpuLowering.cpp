//===- GpuLowering.cpp - kernels of a GPU module as plain functions -*- C++ -*-===//
//
// Copies the functions and replaces the few ops of the gpu dialect that emitters use.
//
//===----------------------------------------------------------------------===//

#include "GpuLowering.h"
#include "KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

/// Threads that a multiprocessor is asked to hold at once; it has 65,536 registers.
static constexpr int32_t kThreadsPerProcessor = 512;

void codegen::addGpuModule(ModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
}

gpu::GPUModuleOp codegen::getGpuModule(ModuleOp module) { return *module.getOps<gpu::GPUModuleOp>().begin(); }

/// A copy of `kernel` at the builder's place, with further arguments.
static func::FuncOp copyKernel(OpBuilder &builder, gpu::GPUFuncOp kernel, const Twine &name, TypeRange further) {
  SmallVector<Type> types(kernel.getArgumentTypes());
  llvm::append_range(types, further);
  auto function = func::FuncOp::create(builder, kernel.getLoc(), name.str(), builder.getFunctionType(types, {}));
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (DictionaryAttr attributes = kernel.getArgAttrDict(i))
      function.setArgAttrs(i, attributes);
  IRMapping mapping;
  kernel.getBody().cloneInto(&function.getBody(), mapping);
  for (Type type : further)
    function.getBody().front().addArgument(type, kernel.getLoc());
  return function;
}

static LogicalResult refuse(Operation *op) {
  return op->emitError("cannot generate code for a GPU: ") << op->getName() << " has no lowering here";
}

namespace {
/// What a target makes of the ops; each function replaces its op's results.
struct GpuTarget {
  virtual ~GpuTarget() = default;
  virtual Value threadId(OpBuilder &b, Location loc) = 0;
  virtual Value blockId(OpBuilder &b, Location loc) = 0;
  virtual void barrier(OpBuilder &b, Location loc) = 0;
  virtual Value shuffle(OpBuilder &b, gpu::ShuffleOp op) = 0;

  LogicalResult replaceOps(func::FuncOp function);
};
} // namespace

LogicalResult GpuTarget::replaceOps(func::FuncOp function) {
  auto result = function.walk([&](Operation *op) {
    if (!isa_and_nonnull<gpu::GPUDialect>(op->getDialect()))
      return WalkResult::advance();
    OpBuilder b(op);
    auto isX = [](auto id) { return id.getDimension() == gpu::Dimension::x; };
    auto id = [&](Value number) {
      op->getResult(0).replaceAllUsesWith(
          arith::IndexCastUIOp::create(b, op->getLoc(), b.getIndexType(), number).getResult());
    };
    if (auto thread = dyn_cast<gpu::ThreadIdOp>(op); thread && isX(thread)) {
      id(threadId(b, op->getLoc()));
    } else if (auto block = dyn_cast<gpu::BlockIdOp>(op); block && isX(block)) {
      id(blockId(b, op->getLoc()));
    } else if (isa<gpu::BarrierOp>(op)) {
      barrier(b, op->getLoc());
    } else if (auto shuffled = dyn_cast<gpu::ShuffleOp>(op); shuffled && shuffled.getValid().use_empty()) {
      shuffled.getShuffleResult().replaceAllUsesWith(shuffle(b, shuffled));
    } else if (isa<gpu::ReturnOp>(op)) {
      func::ReturnOp::create(b, op->getLoc());
    } else {
      (void)refuse(op);
      return WalkResult::interrupt();
    }
    op->erase();
    return WalkResult::skip();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct DeviceTarget : GpuTarget {
  Value threadId(OpBuilder &b, Location loc) override { return NVVM::ThreadIdXOp::create(b, loc, b.getI32Type()); }
  Value blockId(OpBuilder &b, Location loc) override { return NVVM::BlockIdXOp::create(b, loc, b.getI32Type()); }
  void barrier(OpBuilder &b, Location loc) override { NVVM::Barrier0Op::create(b, loc); }
  Value shuffle(OpBuilder &b, gpu::ShuffleOp op) override {
    auto constant = [&](int32_t value) -> Value {
      return arith::ConstantOp::create(b, op.getLoc(), b.getI32IntegerAttr(value));
    };
    NVVM::ShflKind kind = NVVM::ShflKind::bfly;
    switch (op.getMode()) {
    case gpu::ShuffleMode::XOR:
      kind = NVVM::ShflKind::bfly;
      break;
    case gpu::ShuffleMode::DOWN:
      kind = NVVM::ShflKind::down;
      break;
    case gpu::ShuffleMode::UP:
      kind = NVVM::ShflKind::up;
      break;
    case gpu::ShuffleMode::IDX:
      kind = NVVM::ShflKind::idx;
      break;
    }
    return NVVM::ShflOp::create(b, op.getLoc(), op.getValue().getType(), constant(-1), op.getValue(), op.getOffset(),
                                constant(kind == NVVM::ShflKind::up ? 0 : 31), kind, UnitAttr());
  }
};

/// Ids are fields of the thread's description, waiting is a call through it.
struct HostTarget : GpuTarget {
  Value thread;

  Value field(OpBuilder &b, Location loc, int32_t offset, Type type) {
    Value at = LLVM::GEPOp::create(b, loc, thread.getType(), b.getI8Type(), thread, ArrayRef<LLVM::GEPArg>{offset});
    return LLVM::LoadOp::create(b, loc, type, at);
  }
  Value threadId(OpBuilder &b, Location loc) override { return field(b, loc, 0, b.getI32Type()); }
  Value blockId(OpBuilder &b, Location loc) override { return field(b, loc, 4, b.getI32Type()); }
  void barrier(OpBuilder &b, Location loc) override {
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {thread.getType()});
    LLVM::CallOp::create(b, loc, type, ValueRange{field(b, loc, 16, thread.getType()), thread});
  }
  Value shuffle(OpBuilder &b, gpu::ShuffleOp op) override {
    Location loc = op.getLoc();
    Type i32 = b.getI32Type(), given = op.getValue().getType();
    Value word = given == i32 ? op.getValue() : arith::BitcastOp::create(b, loc, i32, op.getValue()).getResult();
    Value mode = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(op.getMode())));
    auto type = LLVM::LLVMFunctionType::get(i32, {thread.getType(), i32, i32, i32});
    Value back = LLVM::CallOp::create(
                     b, loc, type, ValueRange{field(b, loc, 24, thread.getType()), thread, word, mode, op.getOffset()})
                     .getResult();
    return given == i32 ? back : arith::BitcastOp::create(b, loc, given, back).getResult();
  }
};
} // namespace

/// Constants and shared arrays of functions that were not copied.
static void eraseUnusedGlobals(ModuleOp module) {
  llvm::StringSet<> used;
  module.walk([&](LLVM::AddressOfOp address) { used.insert(address.getGlobalName()); });
  for (auto global : llvm::make_early_inc_range(module.getOps<LLVM::GlobalOp>()))
    if (!used.contains(global.getSymName()))
      global.erase();
}

FailureOr<OwningOpRef<ModuleOp>> codegen::toDeviceFunctions(gpu::GPUModuleOp kernels, bool wideIndex) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernels.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  for (Operation &op : *kernels.getBody()) {
    builder.setInsertionPointToEnd(module->getBody());
    if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
      builder.clone(op)->removeAttr(kSharedOffsetAttrName);
      continue;
    }
    auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
    if (!kernel)
      return refuse(&op);
    if (kernel->hasAttr(kWideIndexAttrName) != wideIndex)
      continue;
    func::FuncOp function = copyKernel(builder, kernel, kernel.getName(), {});
    function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    if (DenseI32ArrayAttr size = kernel.getKnownBlockSizeAttr()) {
      function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(), size);
      // Up to 128 registers a thread: left to itself, ptxas rather spills than takes a 49th one.
      int32_t blocks = std::max(1, kThreadsPerProcessor / size[0]);
      function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(blocks));
    }
    if (failed(DeviceTarget().replaceOps(function)))
      return failure();
  }
  eraseUnusedGlobals(*module);
  return module;
}

FailureOr<OwningOpRef<ModuleOp>> codegen::toHostFunctions(gpu::GPUModuleOp kernels, bool wideIndex) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernels.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto pointer = LLVM::LLVMPointerType::get(kernels.getContext());
  for (Operation &op : *kernels.getBody()) {
    builder.setInsertionPointToEnd(module->getBody());
    if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
      if (!global->hasAttr(kSharedOffsetAttrName))
        builder.clone(op);
      continue;
    }
    auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
    if (!kernel)
      return refuse(&op);
    if (kernel->hasAttr(kWideIndexAttrName) != wideIndex)
      continue;
    const unsigned numPointers = kernel.getNumArguments();
    // A table of pointers is what such a function is called with: it needs no entry point that unpacks it.
    const bool takesTable = kernel->hasAttr(kPointerTableAttrName);
    func::FuncOp body = copyKernel(builder, kernel, kernel.getName() + (takesTable ? "" : ".body"), {pointer, pointer});
    if (takesTable) {
      body.setArgAttrs(0, ArrayRef<NamedAttribute>());
    } else {
      body.setPrivate();
      body->setAttr("passthrough", builder.getArrayAttr({builder.getStringAttr("noinline")}));
    }
    HostTarget target;
    target.thread = body.getArgument(numPointers);
    Value shared = body.getArgument(numPointers + 1);
    if (failed(target.replaceOps(body)))
      return failure();
    body.walk([&](LLVM::AddressOfOp address) {
      auto global = kernels.lookupSymbol<LLVM::GlobalOp>(address.getGlobalName());
      auto offset = global->getAttrOfType<IntegerAttr>(kSharedOffsetAttrName);
      if (!offset)
        return;
      OpBuilder b(address);
      Value at = LLVM::GEPOp::create(b, address.getLoc(), pointer, b.getI8Type(), shared,
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset.getInt())});
      address.getResult().replaceAllUsesWith(at);
      address.erase();
    });
    if (!takesTable)
      addEntryPoint(*module, kernel.getName(), body, numPointers);
  }
  eraseUnusedGlobals(*module);
  // The host has one address space.
  AttrTypeReplacer replacer;
  replacer.addReplacement([=](LLVM::LLVMPointerType type) -> Type { return pointer; });
  replacer.recursivelyReplaceElementsIn(*module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
  return module;
}
