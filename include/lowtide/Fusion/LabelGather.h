//===- LabelGather.h - one element of each row of a matrix -----*- C++ -*-===//
//
// A loss picks the logit of each row's label; its gradient compares every column with the label.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace lowtide {

/// gather_elements(x, labels) → sum(select(column = label, x, 0)) where the columns are compared anyway: the row that
/// does so picks the element too. The sum is one element and zeros, its bits are the element's (of −0, those of 0).
void pickByComparison(mlir::Operation *root);

} // namespace lowtide
