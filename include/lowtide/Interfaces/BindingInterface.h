//===- BindingInterface.h - what arguments and results are bound to -*- C++ -*-===//
//
// Bindings as analyses see them: kind, name, first value.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/BindingNames.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace lowtide {

/// What an argument or result of a step is bound to; the numbers are those of runtime/plan.proto.
enum class BindingKind : uint32_t { Param = 1, State, Constant, Batch, Scalar, Metric, Output, Gradient };

/// Kept between steps: a parameter, a state or a constant.
inline bool isPersistent(BindingKind kind) { return kind <= BindingKind::Constant; }
/// Updated in place by the step.
inline bool isUpdated(BindingKind kind) { return kind == BindingKind::Param || kind == BindingKind::State; }

/// Made by the step and read outside: the loss, logits, gradients.
inline bool isResult(BindingKind kind) { return kind >= BindingKind::Metric && kind <= BindingKind::Gradient; }

} // namespace lowtide

#include "lowtide/Interfaces/BindingInterface.h.inc"
