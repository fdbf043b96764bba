//===- BudgetFlips.cpp - what other budgets decide ------------------------===//
#include "BudgetFlips.h"
#include "lowtide/Analysis/StepProblem.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace lowtide;

/// The number of what makes the value; nothing: no instruction that was numbered.
static std::optional<uint64_t> getNumber(Operation *op) {
  auto number = op ? op->getAttrOfType<IntegerAttr>(flipsAttrName) : IntegerAttr();
  return number ? std::optional(uint64_t(number.getInt())) : std::nullopt;
}

/// What was stored when it was made, and is loaded; null: `op` is no such load.
static Operation *findStored(Operation *op) {
  if (!StepStorage::isMove(op))
    return nullptr;
  Operation *store = StepStorage::getRoot(op->getOperand(0)).getDefiningOp();
  return StepStorage::isMove(store) ? StepStorage::getRoot(store->getOperand(0)).getDefiningOp() : nullptr;
}

/// Calls `visit` with what computes, in loops and outside of them.
static void forEachInstruction(Block &block, llvm::function_ref<void(Operation *)> visit) {
  for (Operation &op : block)
    if (isa<RepeatInterface>(op))
      forEachInstruction(op.getRegion(0).front(), visit);
    else if (!op.hasTrait<OpTrait::IsTerminator>())
      visit(&op);
}

static void forEachInstruction(ModuleOp module, llvm::function_ref<void(Operation *)> visit) {
  for (auto step : module.getOps<func::FuncOp>())
    forEachInstruction(step.getBody().front(), visit);
}

void lowtide::numberInstructions(ModuleOp module) {
  Builder builder(module.getContext());
  int64_t next = 0;
  forEachInstruction(module, [&](Operation *op) {
    if (!StepStorage::isView(op) && !StepStorage::isMove(op))
      op->setAttr(flipsAttrName, builder.getI64IntegerAttr(next++));
  });
}

BudgetDecisions lowtide::readDecisions(ModuleOp module) {
  BudgetDecisions decisions;
  auto decide = [&](Operation *op, BudgetDecision decision) {
    const std::optional<uint64_t> number = getNumber(op);
    if (!number)
      return;
    if (*number >= decisions.size())
      decisions.resize(*number + 1, BudgetDecision::Keep);
    // Of an instruction with several results some may come back this way, others that way: copies are told.
    decisions[*number] = std::max(decisions[*number], decision);
  };
  forEachInstruction(module, [&](Operation *op) {
    decide(op, op->hasAttr(recomputedAttrName) ? BudgetDecision::Recompute : BudgetDecision::Keep);
    decide(findStored(op), BudgetDecision::Store);
  });
  return decisions;
}

void lowtide::noteFlips(ModuleOp module, const std::map<uint64_t, BudgetDecisions> &decided, uint64_t ownBytes) {
  Builder builder(module.getContext());
  const auto own = decided.find(ownBytes);
  auto get = [](const BudgetDecisions &decisions, uint64_t number) {
    return number < decisions.size() ? decisions[number] : BudgetDecision::Keep;
  };
  // The first budget on the way from the own one that decides otherwise.
  auto addFlip = [&](uint64_t number, auto begin, auto end, SmallVectorImpl<int64_t> &flips) {
    for (uint64_t nearer = ownBytes; begin != end; nearer = begin++->first)
      if (const BudgetDecision other = get(begin->second, number); other != get(own->second, number)) {
        flips.append({int64_t(other), int64_t(begin->first), int64_t(nearer)});
        return;
      }
  };
  const int64_t planned[] = {int64_t(decided.size()), int64_t(decided.begin()->first),
                             int64_t(decided.rbegin()->first)};
  forEachInstruction(module, [&](Operation *op) {
    const std::optional<uint64_t> number = getNumber(op);
    if (!number)
      return;
    SmallVector<int64_t> flips;
    addFlip(*number, std::make_reverse_iterator(own), decided.rend(), flips);
    addFlip(*number, std::next(own), decided.end(), flips);
    op->removeAttr(flipsAttrName);
    if (!flips.empty())
      op->setAttr(flipsAttrName, builder.getDenseI64ArrayAttr(flips));
  });
  for (auto step : module.getOps<func::FuncOp>())
    step->setAttr(plannedBudgetsAttrName, builder.getDenseI64ArrayAttr(planned));
}
