//===- Plan.h - the plan dialect: bytes, not tensors ------------*- C++ -*-===//
//
// Declares the dialect, its slices and ops, and the walk over what an
// instruction touches.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

#include "lowtide/Dialect/Plan/PlanDialect.h.inc"
#include "lowtide/Dialect/Plan/PlanEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "lowtide/Dialect/Plan/PlanAttrs.h.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/Plan/PlanOps.h.inc"

namespace lowtide::plan {

/// How an instruction or binding uses a slice.
enum class Access : uint8_t {
  Read,
  Write,
  /// Bytes that it may use as it likes while it runs.
  Workspace,
};

/// Calls `visit` on every slice of one instruction: reads, then writes, then
/// workspace; on what a repeat carries. Instructions nested in a repeat are not
/// looked at.
void forEachSlice(mlir::Operation *instruction, llvm::function_ref<void(Access, SliceAttr)> visit);

/// Replaces every slice of an instruction or binding by what `map` returns.
void mapSlices(mlir::Operation *op, llvm::function_ref<SliceAttr(SliceAttr)> map);

/// Whether `op` is an instruction (not a binding or buffer).
bool isInstruction(mlir::Operation *op);

} // namespace lowtide::plan
