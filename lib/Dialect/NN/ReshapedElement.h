//===- ReshapedElement.h - elements of the same tensor in another shape -*- C++ -*-===//
#pragma once

#include "lowtide/Interfaces/ScalarBuilder.h"
#include "mlir/IR/BuiltinTypes.h"

namespace lowtide::nn {

/// The element of operand 0, of shape `from`, that stands at `index` of the same elements in shape `to`, row-major.
mlir::Value emitReshapedElement(ElementBuilder &b, mlir::RankedTensorType from, mlir::RankedTensorType to,
                                mlir::ValueRange index);

} // namespace lowtide::nn
