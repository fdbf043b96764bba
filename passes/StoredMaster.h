//===- StoredMaster.h - parameters stored exactly, read rounded -*- C++ -*-===//
//
// An f32 parameter of which products read bf16: its master is stored by an exact codec (Layouts.td), and what a step
// reads rounded is that codec's bf16 half, without a cast of the step's own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/Train/Optimizers.h"

namespace lowtide {

/// The master of one parameter in one step.
class StoredMaster {
public:
  /// `index`: of the step as it came.
  StoredMaster(mlir::func::FuncOp step, const train::BindingIndex &index, train::SignatureGrowth &growth,
               mlir::BlockArgument parameter, const train::CodecInfo &codec);

  /// Whether the step reads `parameter` in bf16, or rounded to it.
  static bool isReadRounded(mlir::BlockArgument parameter);

  /// Stores the argument, and lets everything but its update read the stored parts.
  void storeArgument();
  /// The update that reads and writes the stored parts instead of `update`, after the last reader.
  train::OptimizerInterface storeUpdate(train::OptimizerInterface update);

private:
  mlir::RankedTensorType getPartType(const train::StoredPart &part);
  mlir::Value getNarrow();
  mlir::Value getWide();
  mlir::Value getPart(unsigned number);
  bool readRounded(mlir::OpOperand &use, mlir::Value narrow);
  bool readRows(mlir::OpOperand &use);
  mlir::Operation *findLastReader();

  mlir::func::FuncOp step;
  const train::BindingIndex &index;
  train::SignatureGrowth &growth;
  mlir::BlockArgument parameter;
  const train::CodecInfo &codec;
  mlir::StringAttr name;
  llvm::SmallVector<mlir::Value> parts; ///< null: not needed so far
  llvm::SmallVector<mlir::Attribute> bindings;
  mlir::Value narrow, wide;
};

} // namespace lowtide
