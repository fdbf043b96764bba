//===- FunctionRunner.h - runs a function of nn ops on literals -*- C++ -*-===//
//
// Compiles a function of kernels and views in process and executes it on
// buffers: what code generation means, without planner and runtime.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Codegen/KernelModule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide::test {

/// Elements of a tensor as bytes, row-major; booleans take one byte.
using Buffer = std::vector<char>;

Buffer toBuffer(mlir::DenseElementsAttr elements);
/// Element `i` as a double.
double readElement(const Buffer &buffer, mlir::Type elementType, uint64_t i);

/// What is printed instead of executed.
enum class Listing { None, Cpu, Functions, Ptx };

struct RunOptions {
  codegen::CodegenOptions codegen;
  /// As nn-cluster's option.
  bool fuse = true;
  /// Computes every f32 in f64.
  bool widen = false;
  /// Where to report the time of each kernel; null: nowhere.
  llvm::raw_ostream *timing = nullptr;
  /// Where to leave the shared object; empty: nowhere.
  std::string savePath = {};
  Listing listing = Listing::None;
  /// A mistake to put into the kernels (Breakage.h); empty: none.
  std::string breakage = {};
};

/// Runs `function` (left unchanged) on `inputs` (of the types before widening).
/// Each kernel is executed twice, whole and split into single grains from the
/// last to the first; different bits are an error.
mlir::FailureOr<llvm::SmallVector<Buffer>>
run(mlir::func::FuncOp function, llvm::ArrayRef<mlir::DenseElementsAttr> inputs, const RunOptions &options);

/// f64 for f32, also in shaped types and constants.
mlir::Type widenType(mlir::Type type);

} // namespace lowtide::test
