//===- KernelTrials.h - what is known of kernels already --------*- C++ -*-===//
//
// A step that is planned under many budgets asks for the same kernels again and again. What writing their functions
// has shown is kept for as long as its owner wants it: a context, or a compiler that has many of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <memory>

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace lowtide::codegen {

/// Kernels of the CPU by their text. Several threads may use one at a time.
class KernelTrials {
public:
  KernelTrials();
  ~KernelTrials();
  KernelTrials(const KernelTrials &) = delete;
  KernelTrials &operator=(const KernelTrials &) = delete;

private:
  friend class KernelModule;
  struct Table;
  std::unique_ptr<Table> table;
};

/// Kernels of `context` are looked up in `trials` from here on. Without it a context has its own.
void shareKernelTrials(mlir::MLIRContext &context, std::shared_ptr<KernelTrials> trials);
/// Those of a context; of one whose dialects `registerKernelTrials` has not seen, new ones at each call.
std::shared_ptr<KernelTrials> getKernelTrials(mlir::MLIRContext &context);
/// Gives contexts of the registry a place for them.
void registerKernelTrials(mlir::DialectRegistry &registry);

} // namespace lowtide::codegen
