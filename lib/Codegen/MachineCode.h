//===- MachineCode.h - from MLIR to an ELF shared object --------*- C++ -*-===//
//
// Lowering, optimization, code generation and linking of a module of kernel
// functions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Codegen/KernelModule.h"

namespace lowtide::codegen {

/// Translations to LLVM IR that lowering needs.
void registerTranslations(mlir::DialectRegistry &registry);

/// Lowers `module` in place and returns the bytes of a shared object that
/// exports its public functions. Emits an error when LLVM lacks the CPU or the
/// linker cannot be run.
mlir::FailureOr<std::vector<char>> compileToSharedObject(mlir::ModuleOp module, const CodegenOptions &options);

/// Rewrites f32 math functions into polynomials that vectorize
/// (docs/rationale/kernels.md, "Functions"); `useLibm` leaves them as calls and
/// lowers only what has no call.
void expandMath(mlir::ModuleOp module, bool useLibm);
/// Rewrites conversions to and from bf16 into integer arithmetic: CPUs without them would call compiler runtime
/// functions.
void expandNarrowFloats(mlir::ModuleOp module);

} // namespace lowtide::codegen
