//===- KernelFunction.h - the function that a kernel becomes ----*- C++ -*-===//
//
// Memory access, loops and local arrays of a kernel under construction:
// everything that emitters need to know about the target's code. Pointers are
// opaque, indices are `index`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/ScalarBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace lowtide::codegen {

/// Bytes that one element takes in memory: booleans take one.
uint64_t elementBytes(mlir::Type elementType);
/// Type that scalar code uses for an element: unsigned integers are held as
/// signless.
mlir::Type scalarType(mlir::Type elementType);

/// What is known about the iterations of a loop.
enum class LoopKind {
  Sequential,
  /// Iterations touch memory independently of one another: may be vectorized
  /// without further proof.
  Parallel,
  /// As Parallel, of exactly 16 iterations that are to become vector code as a
  /// whole.
  Lanes,
};

class KernelFunction {
public:
  /// A function `name(pointers…, begin, end)` at the end of `module`.
  /// `mayAlias[i]`: pointer i may be equal to another such pointer; the bytes
  /// of all others are reached through their own pointer only.
  KernelFunction(mlir::ModuleOp module, llvm::StringRef name, llvm::ArrayRef<bool> mayAlias, bool hasScratch);

  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::func::FuncOp function;
  mlir::Value begin, end;

  mlir::Value getPointer(unsigned i) { return function.getArgument(i); }
  mlir::Value getScratch() { return function.getArgument(function.getNumArguments() - 3); }

  /// Element `offset` (index) of an array of `elementType`, as a scalar.
  mlir::Value load(mlir::Value pointer, mlir::Type elementType, mlir::Value offset);
  void store(mlir::Value pointer, mlir::Type elementType, mlir::Value offset, mlir::Value scalar);
  /// An uninitialized array on the stack, 64-byte aligned; lives as long as the
  /// function.
  mlir::Value local(mlir::Type elementType, int64_t count);
  /// A constant array.
  mlir::Value global(mlir::DenseElementsAttr elements);

  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value min(mlir::Value x, mlir::Value y);
  /// Row-major position of `index` in `shape`.
  mlir::Value linearize(mlir::ValueRange index, llvm::ArrayRef<int64_t> shape);
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value linear, llvm::ArrayRef<int64_t> shape);

  /// for (i = lower; i < upper; i += step) accumulators = body(i,
  /// accumulators). A loop over exactly one iteration of constant bounds is
  /// written without a loop.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value lower, mlir::Value upper, int64_t step, LoopKind kind, mlir::ValueRange initial,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value i, mlir::ValueRange accumulators)> body);
  void loop(mlir::Value lower, mlir::Value upper, int64_t step, LoopKind kind,
            llvm::function_ref<void(mlir::Value i)> body);

private:
  mlir::Value address(mlir::Value pointer, mlir::Type memoryType, mlir::Value offset);
  mlir::LLVM::LoopAnnotationAttr annotation(LoopKind kind);

  /// What `delinearize` took apart; dimensions of extent 1 left out.
  struct Delinearized {
    mlir::Value linear;
    llvm::SmallVector<mlir::Value> parts;
    llvm::SmallVector<int64_t> extents;
  };

  mlir::ModuleOp module;
  llvm::SmallVector<Delinearized> delinearized;
  /// Access group of the innermost parallel loop.
  mlir::ArrayAttr accessGroup;
  unsigned numGlobals = 0;
};

/// Adds `symbol(args, begin, end)`, which reads `numPointers` pointers from
/// `args` and calls `body`.
void addEntryPoint(mlir::ModuleOp module, llvm::StringRef symbol, mlir::func::FuncOp body, unsigned numPointers);

} // namespace lowtide::codegen
