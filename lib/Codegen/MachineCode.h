//===- MachineCode.h - from MLIR to an ELF shared object --------*- C++ -*-===//
//
// Lowering, optimization, code generation and linking of a module of kernel
// functions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Codegen/KernelModule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/CodeGen.h"

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
} // namespace llvm

namespace lowtide::codegen {

/// Translations to LLVM IR that lowering needs.
void registerTranslations(mlir::DialectRegistry &registry);

/// Lowers `module` in place and returns the bytes of a shared object that
/// exports its public functions. Emits an error when LLVM lacks the CPU or the
/// linker cannot be run. Adds to `numKept` the kernels that `options.cacheFolder` had.
mlir::FailureOr<std::vector<char>> compileToSharedObject(mlir::ModuleOp module, const CodegenOptions &options,
                                                         llvm::StringRef statements, unsigned &numKept);

/// Lowers a module of functions of scalar code in place and translates it; `index` has `indexBits` bits, 0: those of a
/// pointer. Null after an error.
std::unique_ptr<llvm::Module> translate(mlir::ModuleOp module, llvm::LLVMContext &context, unsigned indexBits);

struct OptimizeOptions {
  bool vectorize = false, quick = false, plain = false;
  /// Preferred width of vectors; 0: LLVM's choice.
  unsigned vectorBits = 0;
};
/// LLVM's pipeline for the machine, without fast-math. What LLVM says from here on is emitted at `errors`, which must
/// outlive `module`.
void optimize(mlir::ModuleOp errors, llvm::Module &module, llvm::TargetMachine &machine, OptimizeOptions options);
/// Object code or assembler text of an optimized module; fails where LLVM has said an error.
mlir::LogicalResult emit(mlir::ModuleOp errors, llvm::Module &module, llvm::TargetMachine &machine,
                         llvm::CodeGenFileType type, llvm::SmallVectorImpl<char> &bytes);
/// The kernels of a GPU as functions of the host, one call per thread; otherwise as above.
mlir::FailureOr<std::vector<char>> compileEmulated(mlir::gpu::GPUModuleOp kernels, const CodegenOptions &options,
                                                   llvm::StringRef statements);

/// Optimizes `module` for the host's CPU and links it, with `statements` in a section of their own.
mlir::FailureOr<std::vector<char>> emitSharedObject(mlir::ModuleOp errors, llvm::Module &module,
                                                    const CodegenOptions &options, llvm::StringRef statements);

/// Rewrites f32 math functions into polynomials that vectorize
/// (docs/rationale/kernels.md, "Functions"); `useLibm` leaves them as calls and
/// lowers only what has no call.
void expandMath(mlir::ModuleOp module, bool useLibm);
/// Rewrites conversions to and from bf16 into integer arithmetic: CPUs without them would call compiler runtime
/// functions. `canRound`: the target rounds f32 to bf16 by an instruction; the bits are the same, NaNs aside.
void expandNarrowFloats(mlir::ModuleOp module, bool canRound = false);

} // namespace lowtide::codegen
