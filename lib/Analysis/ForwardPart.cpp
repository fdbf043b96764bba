//===- ForwardPart.cpp - what the loss is made from ------------------------===//
//
// From the metrics backwards, value by value: a result of a loop leads to what
// its rounds hand on, an argument of a body to what the loop was given.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/ForwardPart.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Interfaces/BindingInterface.h"

using namespace mlir;
using namespace lowtide;

bool ForwardPart::makes(Value root) const {
  Operation *op = root.getDefiningOp();
  return op && isa<RepeatInterface>(op) ? values.contains(root) : ops.contains(op);
}

ForwardPart::ForwardPart(func::FuncOp step) {
  SmallVector<Value> worklist;
  auto need = [&](Value value) {
    if (Value root = StepStorage::getRoot(value); values.insert(root).second)
      worklist.push_back(root);
  };
  // Other metrics may be made of gradients; without a loss, metrics are all there is.
  Operation *terminator = step.getBody().front().getTerminator();
  auto needMetrics = [&](bool onlyLoss) {
    for (auto [i, returned] : llvm::enumerate(terminator->getOperands()))
      if (auto binding = dyn_cast_or_null<BindingInterface>(step.getResultAttr(i, bindingAttrName));
          binding && binding.getBindingKind() == BindingKind::Metric && (!onlyLoss || binding.getName() == "loss"))
        need(returned);
  };
  needMetrics(/*onlyLoss=*/true);
  if (values.empty())
    needMetrics(/*onlyLoss=*/false);
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<RepeatInterface>(argument.getOwner()->getParentOp());
      if (!loop)
        continue;
      need(loop->getOperand(argument.getArgNumber()));
      // What follows is the same in every round.
      if (const unsigned sliced = loop.getNumSliced();
          argument.getArgNumber() >= sliced && argument.getArgNumber() - sliced < loop.getNumCarried())
        need(argument.getOwner()->getTerminator()->getOperand(argument.getArgNumber() - sliced));
      continue;
    }
    auto result = cast<OpResult>(value);
    ops.insert(result.getOwner());
    if (isa<RepeatInterface>(result.getOwner()))
      need(result.getOwner()->getRegion(0).front().getTerminator()->getOperand(result.getResultNumber()));
    else
      llvm::for_each(result.getOwner()->getOperands(), need);
  }
}
