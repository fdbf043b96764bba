//===- Breakage.cpp - mistakes put into kernels of a GPU --------*- C++ -*-===//
//
// Finds the op by kind and number, and changes it in place.
//
//===----------------------------------------------------------------------===//

#include "Breakage.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lowtide;

/// Where an array lies in the shared memory of its kernel.
static constexpr StringLiteral kSharedOffset = "lowtide.shared_offset";

static bool isOfKind(Operation *op, StringRef kind) {
  if (kind == "barrier")
    return isa<gpu::BarrierOp>(op);
  if (kind == "shuffle")
    return isa<gpu::ShuffleOp>(op);
  if (kind == "guard")
    return isa<scf::IfOp>(op);
  if (kind == "bound" || kind == "step")
    return isa<scf::ForOp>(op);
  if (kind == "store")
    return isa<LLVM::StoreOp>(op);
  if (kind == "early")
    return isa<gpu::BarrierOp>(op) && op->getPrevNode() && isa<LLVM::StoreOp, scf::IfOp>(op->getPrevNode());
  if (kind == "address")
    return isa<LLVM::GEPOp>(op);
  if (kind == "lane")
    return isa<arith::RemUIOp>(op);
  if (kind == "shared") {
    auto global = dyn_cast<LLVM::GlobalOp>(op);
    auto offset = global ? global->getAttrOfType<IntegerAttr>(kSharedOffset) : IntegerAttr();
    return offset && offset.getInt() > 0;
  }
  return kind == "order" && isa<arith::AddFOp>(op);
}

static void breakOp(Operation *op, StringRef kind) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto sum = [&](Value x, Value y) -> Value { return arith::AddIOp::create(b, loc, x, y); };
  if (kind == "barrier" || kind == "store") {
    op->erase();
  } else if (kind == "early") {
    op->moveBefore(op->getPrevNode());
  } else if (kind == "shared") {
    op->setAttr(kSharedOffset, b.getI64IntegerAttr(0));
  } else if (auto address = dyn_cast<LLVM::GEPOp>(op)) {
    b.setInsertionPointAfter(op);
    Value further = LLVM::GEPOp::create(b, loc, address.getType(), address.getElemType(), address.getResult(),
                                        ArrayRef<LLVM::GEPArg>{1});
    address.getResult().replaceAllUsesExcept(further, further.getDefiningOp());
  } else if (isa<arith::RemUIOp>(op)) {
    b.setInsertionPointAfter(op);
    Value further = sum(op->getResult(0), arith::ConstantIndexOp::create(b, loc, 1));
    op->getResult(0).replaceAllUsesExcept(further, further.getDefiningOp());
  } else if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) {
    Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
    shuffle.getOffsetMutable().assign(sum(shuffle.getOffset(), one));
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    branch.getConditionMutable().assign(arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (kind == "bound")
      loop.setUpperBound(sum(loop.getUpperBound(), arith::ConstantIndexOp::create(b, loc, 1)));
    else
      loop.setStep(sum(loop.getStep(), loop.getStep()));
  } else {
    op->setOperand(0, op->getOperand(1));
  }
}

LogicalResult test::breakKernels(ModuleOp module, StringRef what) {
  auto [kind, text] = what.split(':');
  unsigned number = 0;
  if (text.getAsInteger(10, number))
    return module.emitError("not of the form KIND:NUMBER: ") << what;
  SmallVector<Operation *> found;
  module.walk<WalkOrder::PreOrder>([&, kind = kind](Operation *op) {
    if (isOfKind(op, kind))
      found.push_back(op);
  });
  if (number >= found.size())
    return module.emitError(kNothingToBreak) << ": there are " << found.size() << " ops of kind " << kind;
  breakOp(found[number], kind);
  return success();
}
