//===- CutOutputs.h - outputs that no step needs ----------------*- C++ -*-===//
//
// Files hand out more than a step asks for: labels and tables of a classifier, boxes that were picked out of many. What
// leads only there and cannot be compiled is cut away.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Legalize/LegalizeContext.h"

namespace lowtide {

/// Whether every node of `model` that was refused leads only to outputs that can be left out: the loss that `context`'s
/// options ask for is made of the others, of which there is one at least. A file that contradicts itself cannot.
bool canCutOutputs(mlir::func::FuncOp model, const LegalizeContext &context);

/// Warns about output `name` of `model`, which has no meaning as a tensor, and names the operators that it would need.
void warnAboutCutOutput(mlir::Value output, llvm::StringRef name, const LegalizeContext &context);

} // namespace lowtide
