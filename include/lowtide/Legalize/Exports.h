//===- Exports.h - what goes back into the model file -----------*- C++ -*-===//
//
// The importer adds functions that compute what the model file holds of parameters in another form, their images.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/ExportNames.h"
#include "lowtide/Support/Failure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace lowtide {

/// The functions of a module that compute images (`isExportEntry`), in their order.
llvm::SmallVector<mlir::func::FuncOp> findExports(mlir::ModuleOp module);
void eraseExports(mlir::ModuleOp module);

/// Legalizes them, next to the entries that were made of the model. What is computed of a tensor that none of these
/// holds is left out, for it would have to be stored. Fails as `legalizeModel` does.
mlir::LogicalResult legalizeExports(mlir::ModuleOp module, FailureKind *failure = nullptr);

} // namespace lowtide
