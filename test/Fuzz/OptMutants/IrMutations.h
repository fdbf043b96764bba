//===- IrMutations.h - what may be wrong in a module ------------*- C++ -*-===//
#pragma once

#include "../PlanMutants/Dice.h"
#include "mlir/IR/BuiltinOps.h"

namespace lowtide::fuzz {

struct IrMutation {
  const char *name;
  /// Changes the module; false where it has nothing of the kind. What comes out need not be legal.
  bool (*apply)(mlir::ModuleOp module, Dice &dice);
};

llvm::ArrayRef<IrMutation> irMutations();

/// Some characters, words or numbers of a text are others.
std::string changeText(std::string text, Dice &dice);

} // namespace lowtide::fuzz
