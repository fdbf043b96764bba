//===- Recurrence.h - loops over steps that a file writes out ---*- C++ -*-===//
//
// An exporter that knows no loop writes a recurrence step after step: the same ops T times, each time on the next slice
// of a sequence and on what the step before has left. Here such steps are found again in a block.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace lowtide::nn {

/// What an op of every step reads in one operand.
struct StepOperand {
  enum class Kind : uint8_t {
    Fixed,   ///< `value`, in every step
    Listed,  ///< constants, another one in each step
    Slice,   ///< the next slice of `value` along `dim`, `stride` elements further on
    Made,    ///< a result of `column`, of the same step
    Carried, ///< a result of `column`, of the step before
  };
  Kind kind = Kind::Fixed;
  unsigned column = 0;
  unsigned result = 0;
  mlir::Value value;
  int64_t dim = 0;
  int64_t stride = 0;
};

/// One op of a step, in all steps.
struct StepColumn {
  /// Of each step from `Recurrence::first` on.
  llvm::SmallVector<mlir::Operation *, 0> ops;
  llvm::SmallVector<StepOperand> operands;
  /// Depends on no step: made of slices and fixed values alone.
  bool isAhead = false;
};

/// Steps of a recurrence: what column 3 makes in step k is `columns[3].ops[k]`. A column reads `Made` results of
/// columns that are `isAhead` or stand before it in every step.
struct Recurrence {
  /// Fewer steps stay as they are.
  static constexpr int64_t kFewestSteps = 16;

  llvm::SmallVector<StepColumn> columns;
  /// Columns in the order in which a step computes them, without those that are `isAhead`.
  llvm::SmallVector<unsigned> order;
  int64_t countSteps() const { return int64_t(columns.front().ops.size()); }
  /// Elements of what one step hands on to the next.
  int64_t countCarried() const;
};

bool isConstant(mlir::Value value);

/// The first recurrence of `block` that reads a sequence slice by slice or whose steps' results are put one after
/// another; nothing where there is none. Takes time that grows with the ops of the block.
std::optional<Recurrence> findRecurrence(mlir::Block &block);

} // namespace lowtide::nn
