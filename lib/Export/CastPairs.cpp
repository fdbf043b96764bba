//===- CastPairs.cpp - bf16 arithmetic in f32 between casts ---------------===//
//
// Runtimes move bf16 but rarely compute in it: every rounding becomes a node that they have.
//
//===----------------------------------------------------------------------===//

#include "CastPairs.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Interfaces/OpInterfaces.h"

using namespace mlir;
using namespace lowtide;

static bool isBf16(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isBF16();
}

/// Whether the op has its meaning from the element type and is not a conversion or a constant.
static bool computes(Operation *op) {
  if (op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>() || op->hasTrait<OpTrait::ConstantLike>())
    return false;
  if (isa<nn::CastOp>(op))
    return false;
  auto facts = dyn_cast<FactsInterface>(op);
  return !facts || facts.getFacts().aliasing != Aliasing::View;
}

static void castAround(Operation *op) {
  Type f32 = Float32Type::get(op->getContext()), bf16 = BFloat16Type::get(op->getContext());
  OpBuilder before(op), after(op->getContext());
  after.setInsertionPointAfter(op);
  for (OpOperand &operand : op->getOpOperands())
    if (isBf16(operand.get()))
      operand.set(nn::cast(nn::Expr(before, op->getLoc(), operand.get()), f32));
  for (Value result : op->getResults()) {
    if (!isBf16(result))
      continue;
    result.setType(cast<RankedTensorType>(result.getType()).clone(f32));
    Value rounded = nn::cast(nn::Expr(after, op->getLoc(), result), bf16);
    result.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
  }
}

void lowtide::castAroundBf16(func::FuncOp step) {
  SmallVector<Operation *> ops;
  step.walk([&](Operation *op) {
    bool touches = llvm::any_of(op->getOperands(), isBf16) || llvm::any_of(op->getResults(), isBf16);
    if (touches && computes(op))
      ops.push_back(op);
  });
  for (Operation *op : ops)
    castAround(op);
}
