//===- Outline.h - long forms as local functions ----------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace lowtide {

/// Makes functions of runs of nodes; equal runs share one.
class Outliner {
public:
  /// `model`: the function that is being written; functions are placed after it.
  explicit Outliner(mlir::func::FuncOp model) : model(model) {}

  /// Turns what stands in `block` after `last` (null: from its beginning) into one node that calls a function named
  /// after `name`, if it is long and makes all of `results`, the values that are read elsewhere; they are replaced.
  void outline(mlir::Block *block, mlir::Operation *last, llvm::StringRef name,
               llvm::MutableArrayRef<mlir::Value> results);

private:
  mlir::func::FuncOp model;
  llvm::StringMap<std::string> known; ///< symbol by text
  llvm::StringMap<unsigned> numbers;
};

} // namespace lowtide
