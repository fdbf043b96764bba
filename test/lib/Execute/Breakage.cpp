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
  return kind == "order" && isa<arith::AddFOp>(op);
}

static void breakOp(Operation *op, StringRef kind) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto sum = [&](Value x, Value y) -> Value { return arith::AddIOp::create(b, loc, x, y); };
  if (kind == "barrier" || kind == "store") {
    op->erase();
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
    return module.emitError("there are ") << found.size() << " ops of kind " << kind << " to break";
  breakOp(found[number], kind);
  return success();
}
