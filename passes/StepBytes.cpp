//===- StepBytes.cpp - bytes that a step stores ---------------------------===//

#include "StepBytes.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/Train/Optimizers.h"

using namespace mlir;
using namespace lowtide;

/// The parameter that an update reads as `value`: an argument, or what a codec makes of one.
static BlockArgument findParameter(Value value) {
  while (Operation *maker = value.getDefiningOp()) {
    if (!maker->getNumOperands())
      return {};
    value = maker->getOperand(0);
  }
  return dyn_cast<BlockArgument>(value);
}

StoredBytes lowtide::countStoredBytes(func::FuncOp step) {
  StoredBytes counted;
  auto sizeOf = [](Value value) { return getTensorBytes(value.getType()).value_or(0); };
  for (BlockArgument argument : step.getArguments())
    if (auto param = dyn_cast_or_null<train::ParamAttr>(train::getArgBinding(step, argument.getArgNumber()))) {
      auto type = cast<RankedTensorType>(argument.getType());
      if (!type.hasStaticShape())
        continue;
      auto group = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::groupAttrName);
      counted.addParameter(param.getName().getValue(), group ? group.getValue() : StringRef(),
                           uint64_t(type.getNumElements()), sizeOf(argument));
    }
  for (BlockArgument argument : step.getArguments())
    if (auto state = dyn_cast_or_null<train::StateAttr>(train::getArgBinding(step, argument.getArgNumber())))
      counted.addState(state.getName().getValue(), sizeOf(argument));
  for (auto update : step.getBody().getOps<train::OptimizerInterface>()) {
    const train::UpdateOperands operands = train::getUpdateOperands(update);
    BlockArgument parameter = findParameter(operands.param);
    auto binding = parameter ? dyn_cast_or_null<train::ParamAttr>(train::getArgBinding(step, parameter.getArgNumber()))
                             : train::ParamAttr();
    if (binding)
      counted.addGradient(binding.getName().getValue(), sizeOf(operands.grad));
  }
  return counted;
}
