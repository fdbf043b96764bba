//===- Train.h - the train dialect: one training step -----------*- C++ -*-===//
//
// Declares the dialect, its binding attributes and the optimizers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace lowtide::train {

/// Name of the argument and result attribute that holds a binding.
inline constexpr llvm::StringLiteral bindingAttrName = "train.binding";

/// A tensor of the parameter's shape that an optimizer keeps per parameter.
/// `initialOption`, when set, names the option that holds the initial value
/// instead of `initial`.
struct StateSlot {
  llvm::StringLiteral name;
  double initial;
  llvm::StringLiteral initialOption;
};

/// A number that the user may set, with its default under PyTorch's and under
/// ONNX's convention.
struct OptimizerOption {
  llvm::StringLiteral name;
  double torchDefault;
  double onnxDefault;
  llvm::StringLiteral meaning;
};

/// What an update does to rows of its parameter whose gradient is zero.
enum class RowRule : uint8_t {
  Exact, ///< nothing: updating the other rows alone is the same update
  Lazy,  ///< their state changes: updating the other rows alone is another algorithm, which the record states
  Whole, ///< the rows themselves decay: there is no update of the other rows alone
};

} // namespace lowtide::train

#include "lowtide/Dialect/Train/OptimizerInterface.h.inc"
#include "lowtide/Dialect/Train/TrainDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "lowtide/Dialect/Train/TrainAttrs.h.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/Train/TrainOps.h.inc"
