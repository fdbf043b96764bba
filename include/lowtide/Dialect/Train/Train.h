//===- Train.h - the train dialect: one training step -----------*- C++ -*-===//
//
// Declares the dialect, its binding attributes and the optimizers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Interfaces/SpaceInterface.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <map>
#include <string>

namespace lowtide::train {

using lowtide::bindingAttrName;

/// What a tensor of state has one element for. Row and column are the last and the last but one dimension of the
/// parameter in the exporting framework.
enum class SlotShape : uint8_t {
  Param,   ///< every element of the parameter
  Scalar,  ///< the parameter: rank 0
  Rows,    ///< every row: the extent of the last dimension is 1
  Columns, ///< every column: the extent of the last but one dimension is 1
};

/// A tensor that an optimizer keeps per parameter.
struct StateSlot {
  llvm::StringLiteral name;
  double initial;
  SlotShape shape;
  bool isNonNegative; ///< no number is below zero
  bool isDifferenced; ///< the update takes the difference of this and another: it is stored as it is
};

/// A number that the user may set, with its default under PyTorch's and under
/// ONNX's convention.
struct OptimizerOption {
  llvm::StringLiteral name;
  double torchDefault;
  double onnxDefault;
  llvm::StringLiteral meaning;
  bool (*isValid)(double value);
  llvm::StringLiteral rule; ///< "must not be negative"
  bool isSwitch;            ///< 0 or 1, PyTorch's alone
};

/// Extents of a parameter. It is stored as transpose(framework's, permutation); empty: as the framework has it.
struct ParamShape {
  llvm::ArrayRef<int64_t> dims, permutation;

  int64_t getRank() const { return static_cast<int64_t>(dims.size()); }
  /// The stored dimension that is the framework's last (1), last but one (2), ….
  int64_t findDim(int64_t fromBack) const;
};

/// What an optimizer is apart from its arithmetic.
struct OptimizerTraits {
  bool isInOnnx;                ///< ONNX's convention has a formula for it
  bool readsPermutation;        ///< updates say the order of the framework's dimensions
  llvm::StringLiteral fallback; ///< optimizer of all that is no hidden matrix; empty: this one takes all
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
