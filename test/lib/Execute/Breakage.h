//===- Breakage.h - mistakes put into kernels of a GPU ----------*- C++ -*-===//
//
// Seeded bugs, of the kinds that people make in GPU code: the emulated run must notice each of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace lowtide::test {

/// What the diagnostic says where there is no such op.
inline constexpr llvm::StringLiteral kNothingToBreak = "nothing to break";

/// Breaks one op of the kernels in `module`, named as KIND:NUMBER (in textual order, from 0). Kinds:
///   barrier   is left out                          shuffle   reaches another lane
///   guard     always holds                         bound     of a loop is one further
///   step      of a loop is twice as long           store     is left out
///   order     of a sum's operands: the second operand is added twice
///   lane      of a shuffle, or of what counts lanes and rows: one off
///   address   is one further                       early     the barrier comes before the write in front of it
///   shared    memory: an array starts where the one before it does
/// Fails where there is no such op.
llvm::LogicalResult breakKernels(mlir::ModuleOp module, llvm::StringRef what);

} // namespace lowtide::test
