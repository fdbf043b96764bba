//===- SharedBodies.h - one body for kernels that differ in counts --*- C++ -*-===//
//
// Layers that grow, each a few channels wider than the one before, are kernels of the same form. Numbers that only say
// where elements lie become arguments of a body that they share, and LLVM compiles it once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace lowtide::codegen {

/// A kernel in a module of its own, whose counts are taken out: index constants that may become arguments without a
/// change of what LLVM makes of the loops. Those are no bound or step of a loop, no divisor, and no factor of what
/// changes within an innermost loop.
class KernelForm {
public:
  /// `module`: entry point, `body` and what it uses; it stays as it is.
  KernelForm(mlir::ModuleOp module, mlir::func::FuncOp body);

  /// Equal texts: the bodies are equal but for counts.
  const std::string &getText() const { return text; }

private:
  friend llvm::SmallVector<llvm::SmallVector<int64_t>> shareBody(mlir::func::FuncOp body,
                                                                 llvm::ArrayRef<const KernelForm *> forms);
  llvm::SmallVector<int64_t> counts;
  std::string text;
};

/// Counts in which kernels of one form differ become arguments of `body`, that of the first, after those that it has.
/// The values that each kernel gives for them, kernel by kernel.
llvm::SmallVector<llvm::SmallVector<int64_t>> shareBody(mlir::func::FuncOp body,
                                                        llvm::ArrayRef<const KernelForm *> forms);

} // namespace lowtide::codegen
