//===- ScatterChains.h - sums of scatters, one after the other --*- C++ -*-===//
//
// A sum of scatters is made in one buffer: each adds to what the one before it left.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace lowtide {

/// Lets each scatter below `root` that is a term of a sum add to the term before it. The first starts from zeros or,
/// where the sum has one more term that is in memory anyhow, from that.
void chainScatters(mlir::Operation *root, llvm::function_ref<bool(mlir::Operation *)> isLibraryCall);

} // namespace lowtide
