//===- GpuLowering.h - kernels of a GPU module as plain functions -*- C++ -*-===//
//
// The two ways out of the gpu dialect. Both start from the same functions; what differs is what a thread's ids, shared
// memory, barriers and shuffles become.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace lowtide::codegen {

/// The GPU module in a module for a GPU: made, found.
void addGpuModule(mlir::ModuleOp module);
mlir::gpu::GPUModuleOp getGpuModule(mlir::ModuleOp module);

/// On a kernel whose arrays are too large for 32-bit indices.
inline constexpr llvm::StringLiteral kWideIndexAttrName = "lowtide.wide_index";

/// The kernels whose indices are (not) wide, with NVVM's ids, barriers and shuffles. Fails, with a diagnostic, on any
/// other op of the gpu dialect.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> toDeviceFunctions(mlir::gpu::GPUModuleOp kernels, bool wideIndex);

/// The same kernels as `symbol(args, thread, shared)`, see runtime/devices/FakeCuda/EmulatedThread.h. Fails as above.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> toHostFunctions(mlir::gpu::GPUModuleOp kernels, bool wideIndex);

} // namespace lowtide::codegen
