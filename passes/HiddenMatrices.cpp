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
      for (Operation *user : names.pop_back_val().getUsers()) {
        Operation *reader = step.getBody().front().findAncestorOpInBlock(*user);
        if (!reader || !forward.contains(reader))
          continue;
        if (isSameElements(user))
          llvm::append_range(names, user->getResults());
        else if (reader == user && isProduct(user))
          products[i].push_back(user);
        else
          hasOther = true;
      }
    }
    weighted.insert(products[i].begin(), products[i].end());
    if (hasOther)
      isMatrix[i] = false;
  }
  // Whether a product of a parameter reads what an op makes, however far on.
  DenseSet<Operation *> feedsProduct;
  for (Operation *op : llvm::reverse(forward.getArrayRef()))
    for (Operation *user : op->getUsers()) {
      Operation *reader = step.getBody().front().findAncestorOpInBlock(*user);
      if (reader && forward.contains(reader) && (weighted.contains(reader) || feedsProduct.contains(reader)))
        feedsProduct.insert(op);
    }
  for (unsigned i : isMatrix.set_bits())
    hidden[i] =
        !products[i].empty() && llvm::all_of(products[i], [&](Operation *op) { return feedsProduct.contains(op); });
  return hidden;
}
