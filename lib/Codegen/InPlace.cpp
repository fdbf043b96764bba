//===- InPlace.cpp - which results may overwrite which operands -*- C++ -*-===//
//
// An operand that is read at a result's own position only, before that position is written.
//
//===----------------------------------------------------------------------===//

#include "Emitters.h"
#include "lowtide/Interfaces/MeetingInterface.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

static RankedTensorType getType(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

/// Whether a scatter starts as the operand: it reads each element before it writes there, and that one alone.
static bool isStart(OpOperand &use) {
  auto scatter = dyn_cast<MeetingInterface>(use.getOwner());
  return scatter && scatter.getInitialOperand() == use.getOperandNumber();
}

/// The yield operands that `argument` reaches through elementwise ops; none if
/// anything else reads it.
static SmallVector<unsigned> getPointwiseResults(Value argument, bool staged) {
  SmallVector<unsigned> reached;
  SmallVector<Value> worklist{argument};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      if (isa<nn::YieldOp>(use.getOwner()))
        reached.push_back(use.getOperandNumber());
      else if (use.getOwner()->hasTrait<OpTrait::Elementwise>() || isStart(use))
        llvm::append_range(worklist, use.getOwner()->getResults());
      else if (!staged || !isa<ReductionInterface>(use.getOwner()))
        return {};
    }
  }
  llvm::sort(reached);
  return reached;
}

SmallVector<SmallVector<int, 4>> codegen::findInPlace(nn::KernelOp kernel, bool staged) {
  SmallVector<SmallVector<int, 4>> inPlace(kernel.getNumResults());
  for (BlockArgument argument : kernel.getBlock()->getArguments()) {
    RankedTensorType type = getType(argument);
    if (type.getNumElements() == 1 && kernel.getNumResults() > 1)
      continue;
    for (unsigned result : getPointwiseResults(argument, staged)) {
      RankedTensorType resultType = getType(kernel.getResult(result));
      if (resultType.getShape() == type.getShape() &&
          elementBytes(resultType.getElementType()) == elementBytes(type.getElementType()))
        inPlace[result].push_back(argument.getArgNumber());
    }
  }
  return inPlace;
}
