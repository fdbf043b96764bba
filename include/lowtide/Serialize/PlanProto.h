//===- PlanProto.h - plan dialect ⇄ runtime/plan.proto ----------*- C++ -*-===//
//
// One to one in both directions: what is exported and imported again is the
// same text, what is imported and exported again is the same bytes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/Plan/Plan.h"
#include "mlir/IR/OwningOpRef.h"
#include "plan.pb.h"

namespace lowtide {

/// Writes `module` into `proto`. Fails, with a diagnostic, on buffers that
/// `plan-place` has not placed and on types that the format does not have.
llvm::LogicalResult exportPlan(plan::ModuleOp module, plan::Plan &proto);

/// Builds the op for `proto`. Fails, with a diagnostic at `loc`, on what the
/// dialect cannot say: unknown kinds, arenas or kernels that are not there,
/// names that are used twice.
mlir::OwningOpRef<plan::ModuleOp> importPlan(const plan::Plan &proto, mlir::Location loc);

/// Writes the options of a library call. Fails, with a diagnostic at `loc`, on
/// attributes that are not i64, f64, string or i64 array.
llvm::LogicalResult exportCallOptions(mlir::DictionaryAttr options, plan::Call &call, mlir::Location loc);

/// The bytes of the artifact's `plan` section: the same for equal messages.
std::string serializePlan(const plan::Plan &proto);

/// The element type's number in the format; DTYPE_UNSPECIFIED if it has none.
plan::DType getDType(mlir::Type elementType);
/// The type for a number of the format; null for an unknown one.
mlir::Type getElementType(plan::DType dtype, mlir::MLIRContext *context);
/// Bytes of one element; booleans take one byte.
uint64_t getElementBytes(mlir::Type elementType);

/// Of plans as they are written now.
uint32_t getPlanFormatVersion();

} // namespace lowtide
