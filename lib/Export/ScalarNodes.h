//===- ScalarNodes.h - scalar operations as ONNX operators ------*- C++ -*-===//
//
// The one table from the vocabulary of element descriptions (`arith`, `math`) to operators of the standard.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Export/FormBuilder.h"
#include "lowtide/Interfaces/ScalarBuilder.h"

namespace lowtide {

/// The nodes that compute scalar operation `op` on tensors; null if there is no operator for it. Integers of all widths
/// are signed tensors (`index` is int64), as signless bits; unsigned operations are written around that.
mlir::Value writeScalarOp(FormBuilder &form, mlir::Operation *op, mlir::ArrayRef<mlir::Value> operands);

} // namespace lowtide
