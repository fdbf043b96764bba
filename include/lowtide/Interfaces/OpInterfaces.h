//===- OpInterfaces.h - what a pass may ask an op ---------------*- C++ -*-===//
//
// Interfaces of the op registry and the plain data that they exchange.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/BatchSplit.h"
#include "lowtide/Interfaces/DimensionOrder.h"
#include "lowtide/Interfaces/OpFacts.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir {
class OpBuilder;
}
namespace lowtide {
class ElementBuilder;
class ScalarBuilder;
class GradientBuilder;
} // namespace lowtide

#include "lowtide/Interfaces/OpInterfaces.h.inc"
