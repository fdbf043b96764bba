//===- StepStorage.h - which values of a step share bytes -------*- C++ -*-===//
//
// The one definition of a step's memory: every tensor of a step function gets a
// storage; views, updates in place and results that overwrite a dying operand
// share one. The memory profile counts these storages and `plan-lower` turns
// each into a buffer.
//
// Time is a line. A loop (RepeatInterface) is an instruction, followed by those
// of its body, followed by the body's terminator. What the body reads from
// outside lives through all of it; what the body makes lives inside it; what a
// loop carries or collects lives from its head to its end at least.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Interfaces/SpaceInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace lowtide {

/// Bytes that hold one value after another.
struct Storage {
  enum class Kind : uint8_t {
    Argument,  ///< the slice of a bound argument
    Metric,    ///< read by the runtime after the step
    Transient, ///< free before its first and after its last use
  };
  Kind kind = Kind::Transient;
  uint64_t bytes = 0;
  /// The memory that holds it.
  Space space = Space::Device;
  /// Argument: its number. Metric, or kept for an output: the result's number.
  int number = -1;
  /// Transient, but holds an output: stays to the end of the step.
  bool kept = false;
  /// Transient: live during instructions begin … end - 1, copies included at
  /// the instruction that they come before.
  unsigned begin = 0, end = 0;
  /// Values in the order in which they live here; views are not listed.
  llvm::SmallVector<mlir::Value, 2> values;

  /// Takes room in the transient arena where the step computes.
  bool isDeviceTransient() const { return kind == Kind::Transient && space == Space::Device; }
};

/// A copy that the step needs because a result cannot be written in place.
struct StorageCopy {
  /// Storage of the source, and the value in it.
  unsigned source;
  mlir::Value value;
  unsigned target;
  /// Comes before this instruction; the number of instructions: at the end.
  unsigned before;
  /// The result of the step that this copy completes, or -1 (a snapshot, or a
  /// copy that belongs to a loop).
  int result;
  /// In a loop's body: bytes by which source and target move on from round to
  /// round, negative where they move back from the end. The moving range is as
  /// large as the other side.
  int64_t sourceStep = 0, targetStep = 0;
};

/// A loop of a step, by the indices of its head and its terminator.
struct StorageLoop {
  mlir::Operation *op;
  unsigned head, end;
  /// Storages that hand a value from round to round.
  llvm::SmallVector<unsigned> carried;
};

/// Storages of one step function.
class StepStorage {
public:
  /// Whether result `result` of `op` may be written over operand `operand`.
  using MayOverwrite = llvm::function_ref<bool(mlir::Operation *op, unsigned result, unsigned operand)>;

  /// Fails, with a diagnostic, if the function is not one block, a value is not
  /// a static tensor, a result updates nothing that is bound, or two results
  /// update the same argument.
  static mlir::FailureOr<StepStorage> compute(mlir::func::FuncOp step, MayOverwrite mayOverwrite);

  /// Ops that do something, in order: neither views nor the return. A loop comes
  /// before its body, whose terminator is the loop's end; both cost nothing.
  llvm::ArrayRef<mlir::Operation *> getInstructions() const { return instructions; }
  llvm::ArrayRef<Storage> getStorages() const { return storages; }
  /// In the order of execution. A copy before a loop's head comes before the
  /// loop, one before the instruction after it is the body's first.
  llvm::ArrayRef<StorageCopy> getCopies() const { return copies; }
  /// Those before one instruction.
  llvm::ArrayRef<StorageCopy> getCopies(unsigned before) const;
  /// In the order of their heads.
  llvm::ArrayRef<StorageLoop> getLoops() const { return loops; }
  /// The storage of a value or view.
  unsigned getStorage(mlir::Value value) const { return storageOf.lookup(getRoot(value)); }
  /// Whether an op's result shows the bytes of its operand; null is none.
  static bool isView(mlir::Operation *op);
  /// Whether an op's result is its operand in another memory; null is none.
  static bool isMove(mlir::Operation *op);
  /// The value that is first written where the result lies. What a loop carries begins with its first value, where
  /// nothing else reads that and it is made of nothing (a fill) or, in another memory, is stored by a move; otherwise
  /// it is the result itself.
  static mlir::OpResult getFirstValue(mlir::OpResult result);
  /// The value whose bytes a view shows; the value itself if it is no view.
  static mlir::Value getRoot(mlir::Value value);
  /// The storage in which result `result` of the step is found at its end.
  unsigned getResultStorage(unsigned result) const { return resultStorage[result]; }
  /// The most bytes of transient storages on the device that one instruction needs.
  uint64_t getPeakBytes() const;

private:
  mlir::LogicalResult placeResults(mlir::func::FuncOp step, MayOverwrite mayOverwrite);
  mlir::LogicalResult numberInstructions(mlir::Block &block);
  void findLastUses();
  mlir::LogicalResult placeRest(MayOverwrite mayOverwrite);
  mlir::LogicalResult placeLoop(unsigned number, MayOverwrite mayOverwrite);
  void findLifetimes();
  unsigned create(Storage::Kind kind, uint64_t bytes, int number, mlir::Value value);
  bool isAssigned(mlir::Value root) const { return storageOf.contains(root); }
  int getIndex(mlir::Value root) const;

  llvm::SmallVector<mlir::Operation *> instructions;
  llvm::DenseMap<mlir::Operation *, unsigned> indexOf;
  llvm::SmallVector<StorageLoop> loops;
  llvm::DenseMap<mlir::Operation *, unsigned> loopOf;
  llvm::SmallVector<Storage> storages;
  llvm::SmallVector<StorageCopy> copies;
  llvm::SmallVector<unsigned> resultStorage;
  llvm::DenseMap<mlir::Value, unsigned> storageOf;
  /// Last instruction that uses a root or a view of it; absent: none.
  llvm::DenseMap<mlir::Value, int> lastUse;
  /// Roots that must live to the end, for a result or a copy there.
  llvm::DenseSet<mlir::Value> liveOut;
  /// Unassigned roots that are outputs of the step, by result number.
  llvm::DenseMap<mlir::Value, unsigned> outputs;
};

/// Arguments of a step by what they are bound to: the kind of binding and its name. Of several, the last one.
class BoundArguments {
public:
  explicit BoundArguments(mlir::func::FuncOp step);
  /// The argument that is bound as `binding` says; null if there is none.
  mlir::Value lookup(BindingInterface binding) const;

private:
  llvm::DenseMap<std::pair<mlir::StringAttr, unsigned>, mlir::Value> arguments;
};

/// Bytes of a static tensor of numbers; booleans take one byte. Nothing if the
/// type is another or the count does not fit in 63 bits.
std::optional<uint64_t> getTensorBytes(mlir::Type type);

} // namespace lowtide
