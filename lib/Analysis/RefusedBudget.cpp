//===- RefusedBudget.cpp - what a budget lacks --------------------------------===//
//
// An attribute of the module that a pass fails on.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/RefusedBudget.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace lowtide;

static constexpr llvm::StringLiteral refusedBudgetAttrName = "train.refused_budget";

static constexpr llvm::StringLiteral unplannedBytesAttrName = "train.unplanned_bytes";

void lowtide::setUnplannedBytes(ModuleOp module, uint64_t bytes) {
  if (bytes)
    module->setAttr(unplannedBytesAttrName, Builder(module.getContext()).getI64IntegerAttr(int64_t(bytes)));
  else
    module->removeAttr(unplannedBytesAttrName);
}

uint64_t lowtide::getUnplannedBytes(ModuleOp module) {
  auto bytes = module->getAttrOfType<IntegerAttr>(unplannedBytesAttrName);
  return bytes ? bytes.getValue().getZExtValue() : 0;
}

void lowtide::setRefusedBudget(ModuleOp module, const RefusedBudget &refused) {
  Builder b(module.getContext());
  const SmallVector<StringRef> advice(refused.advice.begin(), refused.advice.end());
  auto bytes = [&](StringRef name, uint64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(int64_t(value)));
  };
  module->setAttr(
      refusedBudgetAttrName,
      b.getDictionaryAttr({bytes("budget_bytes", refused.budgetBytes), bytes("smallest_bytes", refused.smallestBytes),
                           bytes("least_bytes", refused.leastBytes), bytes("largest_bytes", refused.largestBytes),
                           b.getNamedAttr("advice", b.getStrArrayAttr(advice))}));
}

std::optional<RefusedBudget> lowtide::getRefusedBudget(ModuleOp module) {
  auto attribute = module->getAttrOfType<DictionaryAttr>(refusedBudgetAttrName);
  if (!attribute)
    return std::nullopt;
  auto bytes = [&](StringRef name) {
    auto value = attribute.getAs<IntegerAttr>(name);
    return value ? value.getValue().getZExtValue() : uint64_t(0);
  };
  RefusedBudget refused{bytes("budget_bytes"), bytes("smallest_bytes"), bytes("least_bytes"), bytes("largest_bytes")};
  if (auto advice = attribute.getAs<ArrayAttr>("advice"))
    for (Attribute option : advice)
      if (auto text = dyn_cast<StringAttr>(option))
        refused.advice.push_back(text.str());
  return refused;
}
