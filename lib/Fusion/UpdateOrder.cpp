//===- UpdateOrder.cpp - updates and who reads what they update -*- C++ -*-===//
//
// A parameter is updated in place: after all that reads it.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Analysis/BlockPlaces.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Fusion/FusionGroups.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lowtide;

/// Who reads the argument, or a view of it.
static SmallVector<Operation *> listReaders(Value argument) {
  SmallVector<Operation *> readers;
  SmallVector<Value> shown{argument};
  while (!shown.empty())
    for (Operation *reader : shown.pop_back_val().getUsers()) {
      readers.push_back(reader);
      if (auto facts = dyn_cast<FactsInterface>(reader); facts && facts.getFacts().aliasing == Aliasing::View)
        shown.push_back(reader->getResult(0));
    }
  return readers;
}

void FusionGroups::findUpdates() {
  auto step = dyn_cast<func::FuncOp>(block.getParentOp());
  if (!step || !block.isEntryBlock())
    return;
  DenseMap<Attribute, Value> updated;
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands()))
    if (auto binding = step.getResultAttrOfType<BindingInterface>(i, bindingAttrName))
      if (isUpdated(binding.getBindingKind())) {
        updated[binding] = value;
        updates.insert(StepStorage::getRoot(value).getDefiningOp());
      }
  BlockPlaces places(block);
  auto comesBefore = [&](Operation *reader, Operation *update) {
    return reader != update && reader->getBlock() == &block && places.isBefore(reader, update);
  };
  SmallVector<std::pair<Operation *, SmallVector<Operation *>>> updatesOfRead;
  for (BlockArgument argument : block.getArguments()) {
    Attribute binding = step.getArgAttr(argument.getArgNumber(), bindingAttrName);
    Operation *update = binding && updated.count(binding) ? updated[binding].getDefiningOp() : nullptr;
    if (!update || update->getBlock() != &block)
      continue;
    SmallVector<Operation *> readers = listReaders(argument);
    // Library forms move reads down to where the last of their operands is made, which may be after the update.
    Operation *last = update;
    for (Operation *reader : readers)
      if (reader->getBlock() == &block && !reader->hasTrait<OpTrait::IsTerminator>() && places.isBefore(last, reader))
        last = reader;
    if (last != update && llvm::none_of(update->getUsers(), [&](Operation *user) {
          Operation *own = block.findAncestorOpInBlock(*user);
          return own == last || places.isBefore(own, last);
        }))
      places.moveAfter(update, last);
    updatesOfRead.emplace_back(update, std::move(readers));
  }
  // Once none moves any more: a reader may be an update itself.
  for (const auto &[update, readers] : updatesOfRead)
    for (Operation *reader : readers)
      if (comesBefore(reader, update))
        updatesAfter[reader].push_back(update);
}
