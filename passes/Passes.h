//===- Passes.h - declarations of all passes --------------------*- C++ -*-===//
//
// Generated from Passes.td: options, create functions, registration.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace lowtide {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"
} // namespace lowtide
