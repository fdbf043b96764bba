//===- ScatterStart.h - what updates of a scatter meet ----------*- C++ -*-===//
//
// Zeros and sums, unless the op says otherwise (MeetingInterface).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RegionEvaluator.h"

namespace lowtide::codegen {

/// What the scatter's result has at `index` before any update.
mlir::Value emitStart(RegionEvaluator &evaluator, ScalarBuilder &b, ScatterInterface op, mlir::ValueRange index);
/// What is there after `update` has met `there`.
mlir::Value meetThere(ScalarBuilder &b, ScatterInterface op, mlir::Value there, mlir::Value update);

} // namespace lowtide::codegen
