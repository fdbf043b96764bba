//===- ValueEquivalence.h - two steps compute the same values ---*- C++ -*-===//
//
// The proof that exact passes rest on: they re-order, re-execute, group or move existing computations, so the value
// graph of every result is the same graph before and after. Linear time; no arithmetic is interpreted.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

namespace lowtide {

/// 128-bit number of a value graph: op name, attributes, result type, operand numbers, result index, all the way down
/// to bound arguments.
struct ValueNumber {
  uint64_t low = 0, high = 0;
  bool operator==(const ValueNumber &other) const { return low == other.low && high == other.high; }
};

/// An operation of a value graph, for messages: it may be gone when it is spoken of.
struct ValueNode {
  mlir::OperationName name;
  mlir::DictionaryAttr attributes;
  mlir::Location loc;
  llvm::SmallVector<ValueNumber, 2> operands, results;
  llvm::SmallVector<mlir::Type, 1> types;
};

/// Value graphs of a step's results, by what they are bound to.
struct StepFingerprint {
  struct Result {
    /// Binding attribute of the result; its position where it has none.
    mlir::Attribute binding;
    ValueNumber number;
    mlir::Location loc;
  };
  std::vector<Result> results;
  /// In the order of execution. A loop is there twice: as it starts, with the numbers of what its rounds see, and as it
  /// ends.
  std::vector<ValueNode> nodes;
  /// What numbers of arguments stand for.
  std::vector<std::pair<ValueNumber, mlir::Attribute>> arguments;
};

/// Which loops are numbered round by round, in time that grows with the rounds, so that other loops which lay down the
/// same rows have the same numbers.
enum class UnrolledLoops : uint8_t {
  None,
  Steps, ///< those over the steps of a sequence: they name all that they read
  Parts, ///< those over the parts of a batch
};

/// Numbers the results of `step`. Kernels are transparent: what counts is what they compute. Arguments are symbols:
/// their binding, or their position where they have none.
StepFingerprint fingerprintStep(mlir::func::FuncOp step, UnrolledLoops unrolled = UnrolledLoops::None);

/// Succeeds if both have results of the same bindings with the same numbers; otherwise emits an error at each result
/// that differs, naming `what` as the culprit, and notes at the first operation on either side whose value the other
/// side does not compute, and in what the two differ.
llvm::LogicalResult compareFingerprints(const StepFingerprint &before, const StepFingerprint &after,
                                        mlir::func::FuncOp step, llvm::StringRef what);

/// Checks every function before and after each pass of the manager whose summary says that it is exact (passes must be
/// registered). A pass that is not emits errors and sets `violated`, which must outlive the manager's runs.
void addEquivalenceChecks(mlir::PassManager &passes, bool &violated);

} // namespace lowtide
