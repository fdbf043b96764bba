//===- Train.h - the train dialect: the structure of one step ---*- C++ -*-===//
//
// Bindings of a step's arguments and results.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "lowtide/Dialect/Train/TrainDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "lowtide/Dialect/Train/TrainAttrs.h.inc"

namespace lowtide::train {

/// Name of the argument and result attribute that holds a binding.
inline constexpr llvm::StringLiteral bindingAttrName = "train.binding";

} // namespace lowtide::train
