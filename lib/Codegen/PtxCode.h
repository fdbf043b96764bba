//===- PtxCode.h - kernels of a GPU module as PTX and machine code -*- C++ -*-===//
//
// LLVM's NVPTX back end in process; ptxas and libdevice from the CUDA toolkit, wherever it lies. No GPU is needed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Codegen/Toolkit.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace lowtide::codegen {

/// PTX of all kernels for `chip` ("sm_90"). Products and sums are never contracted, denormals are kept, divisions and
/// roots are rounded. Fails, with a diagnostic, when a function of libdevice is needed and it is not there.
mlir::FailureOr<std::string> compileToPtx(mlir::gpu::GPUModuleOp kernels, llvm::StringRef chip);

/// Machine code of the chip; nothing, after a warning that says what is missing, where ptxas is not found.
mlir::FailureOr<std::vector<char>> assemble(mlir::gpu::GPUModuleOp kernels, llvm::StringRef ptx, llvm::StringRef chip);

/// Replaces calls of mathematical functions that have no instruction by calls of libdevice (`__nv_tanf`).
void callLibdevice(mlir::ModuleOp module);
/// Links the functions of libdevice that `module` calls into it.
mlir::LogicalResult linkLibdevice(mlir::Operation *errors, llvm::Module &module);

} // namespace lowtide::codegen
