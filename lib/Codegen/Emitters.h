//===- Emitters.h - loop nests for kernels ----------------------*- C++ -*-===//
//
// One function per emitter. Each reads the kernel's body only through the
// evaluator; docs/rationale/kernels.md says what each does on a CPU and on a
// GPU.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RegionEvaluator.h"
#include "lowtide/Dialect/NN/NN.h"

namespace lowtide::codegen {

/// What an emitter decides before it writes code.
struct LaunchShape {
  int64_t extent = 1, grain = 1;
  uint64_t scratchBytes = 0;
};

/// A kernel under construction. Operands are bound to their arrays.
struct KernelContext {
  nn::KernelOp kernel;
  KernelFunction &function;
  RegionEvaluator &evaluator;

  mlir::ValueRange getYielded() { return kernel.getYield().getOperands(); }
  mlir::Value getResultPointer(unsigned i) {
    return function.getPointer(kernel.getNumOperands() + i);
  }
};

/// Whether all values have one number of elements (or a single one) and
/// position i depends on position i only: then the kernel is one loop over
/// positions, whatever the shape.
bool isFlat(nn::KernelOp kernel);

/// Any body: a loop nest over the elements of each result. Iteration space:
/// rows (positions, when flat).
LaunchShape getLoopShape(nn::KernelOp kernel);
void emitLoop(KernelContext &context);

/// Per result, the operand that it may overwrite element by element, or -1.
llvm::SmallVector<int> findInPlace(nn::KernelOp kernel);

} // namespace lowtide::codegen
