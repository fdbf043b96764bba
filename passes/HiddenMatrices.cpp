//===- HiddenMatrices.cpp - which parameters are hidden matrices ----------===//
//
// Only what the loss is computed of counts: backward products read weights too.
//
//===----------------------------------------------------------------------===//

#include "HiddenMatrices.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

/// A loss that reads a matrix multiplies by it: it is a head that was fused with its loss.
static bool isProduct(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts && (facts.getFacts().family == OpFamily::Contraction || facts.getFacts().family == OpFamily::Loss);
}

/// Whether `op` hands on the elements of its only operand, one by one: in another order, shape or type.
static bool isSameElements(Operation *op) {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return false;
  auto from = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto facts = dyn_cast<FactsInterface>(op);
  return facts && from && to && from.hasStaticShape() && to.hasStaticShape() &&
         from.getNumElements() == to.getNumElements() &&
         (facts.getFacts().family == OpFamily::Movement || facts.getFacts().family == OpFamily::Elementwise);
}

/// What each round of a loop has of an operand that is the same in all of them; null for any other.
static Value findInRound(OpOperand &use) {
  auto loop = dyn_cast<RepeatInterface>(use.getOwner());
  if (!loop || use.getOperandNumber() < loop.getNumSliced() + loop.getNumCarried())
    return {};
  return loop->getRegion(0).front().getArgument(use.getOperandNumber());
}

/// The ops that the loss is computed of, in their order.
static SetVector<Operation *> findForward(func::FuncOp step) {
  SetVector<Operation *> forward;
  std::optional<unsigned> loss = train::findResult<train::MetricAttr>(step, "loss");
  if (!loss)
    return forward;
  Block &body = step.getBody().front();
  DenseSet<Operation *> needed;
  SmallVector<Value> worklist{body.getTerminator()->getOperand(*loss)};
  while (!worklist.empty()) {
    Operation *maker = worklist.pop_back_val().getDefiningOp();
    if (!maker || !needed.insert(maker).second)
      continue;
    maker->walk([&](Operation *inner) { llvm::append_range(worklist, inner->getOperands()); });
  }
  for (Operation &op : body)
    if (needed.contains(&op))
      forward.insert(&op);
  return forward;
}

/// The ops that make what `readers` read, however far on: through rounds of loops, too.
static DenseSet<Operation *> findMakers(const DenseSet<Operation *> &readers) {
  DenseSet<Operation *> makers;
  DenseSet<Value> seen;
  SmallVector<Value> worklist;
  for (Operation *reader : readers)
    llvm::append_range(worklist, reader->getOperands());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<RepeatInterface>(argument.getOwner()->getParentOp());
      if (!loop)
        continue;
      const unsigned number = argument.getArgNumber(), sliced = loop.getNumSliced();
      worklist.push_back(loop->getOperand(number));
      if (number >= sliced && number < sliced + loop.getNumCarried())
        worklist.push_back(argument.getOwner()->getTerminator()->getOperand(number - sliced));
      continue;
    }
    Operation *maker = value.getDefiningOp();
    if (isa<RepeatInterface>(maker)) {
      // Its results are what its rounds hand on, in this order.
      worklist.push_back(
          maker->getRegion(0).front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
    } else if (makers.insert(maker).second) {
      maker->walk([&](Operation *inner) { llvm::append_range(worklist, inner->getOperands()); });
    }
  }
  return makers;
}

llvm::BitVector lowtide::findHiddenMatrices(func::FuncOp step) {
  const unsigned arguments = step.getNumArguments();
  llvm::BitVector hidden(arguments), isMatrix(arguments);
  for (unsigned i = 0; i < arguments; ++i) {
    auto type = dyn_cast<RankedTensorType>(step.getArgumentTypes()[i]);
    if (type && isa_and_nonnull<train::ParamAttr>(train::getArgBinding(step, i)))
      isMatrix[i] = type.getRank() == 2;
  }
  const SetVector<Operation *> forward = findForward(step);
  // Products of each matrix; a reader of another kind rules it out.
  std::vector<SmallVector<Operation *>> products(arguments);
  DenseSet<Operation *> weighted;
  for (unsigned i = 0; i < arguments; ++i) {
    if (!isa_and_nonnull<train::ParamAttr>(train::getArgBinding(step, i)))
      continue;
    bool hasOther = false;
    SmallVector<Value> names{step.getArgument(i)};
    while (!names.empty()) {
      Value name = names.pop_back_val();
      for (OpOperand &use : name.getUses()) {
        Operation *user = use.getOwner(), *reader = step.getBody().front().findAncestorOpInBlock(*user);
        if (!reader || !forward.contains(reader))
          continue;
        if (isSameElements(user))
          llvm::append_range(names, user->getResults());
        else if (Value inside = findInRound(use))
          names.push_back(inside);
        else if (isProduct(user))
          products[i].push_back(user);
        else
          hasOther = true;
      }
    }
    weighted.insert(products[i].begin(), products[i].end());
    if (hasOther)
      isMatrix[i] = false;
  }
  const DenseSet<Operation *> feedsProduct = findMakers(weighted);
  for (unsigned i : isMatrix.set_bits())
    hidden[i] =
        !products[i].empty() && llvm::all_of(products[i], [&](Operation *op) { return feedsProduct.contains(op); });
  return hidden;
}
