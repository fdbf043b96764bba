//===- EntryLowering.h - a step on tensors becomes a program ----*- C++ -*-===//
//
// Writes one entry of a plan: bindings, buffers, launches, calls, copies and loops.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "KernelDeclarations.h"
#include "PlanLayout.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/Plan/Plan.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Target.h"
#include "llvm/ADT/DenseSet.h"

namespace lowtide {

/// Writes one entry into a plan.
class EntryLowering {
public:
  EntryLowering(mlir::func::FuncOp entry, const PlanLayout &layout, plan::ModuleOp module, codegen::KernelModule &code,
                const llvm::DenseMap<mlir::Operation *, codegen::KernelInfo> &kernels, KernelDeclarations &declared,
                StepStorage storage, bool weights)
      : entry(entry), layout(layout), module(module), code(code), kernels(kernels), declared(declared),
        storage(std::move(storage)), roles(entry, this->storage), weights(weights), target(train::getTarget(entry)),
        builder(entry.getContext()) {}
  mlir::LogicalResult run();

private:
  void writeBindings();
  void writeBuffers();
  mlir::LogicalResult writeInstruction(mlir::Operation *op);
  mlir::LogicalResult writeCall(mlir::Operation *op, LibraryCallInterface call);
  /// Whether the second launch of `op` may come later.
  bool mayWait(mlir::Operation *op);
  /// Writes the launches that wait and that `op` needs the results of or writes over what they read, with all of their
  /// codes.
  void writeAwaited(mlir::Operation *op);
  /// Writes the launches that wait, those of one code as one.
  void writeWaiting(llvm::function_ref<bool(llvm::StringRef symbol)> isDue);
  void writeCopies(unsigned before);
  void enterLoop(const StorageLoop &loop);
  void leaveLoop(const StorageLoop &loop);
  bool mayTakeMore();
  /// Whether `loop` is written round by round.
  bool isUnrolled(const StorageLoop &loop);
  bool isLocal(const Storage &place, const StorageLoop &loop);
  mlir::LogicalResult unroll(const StorageLoop &loop);
  bool canShowPart(const StorageCopy &copy, const StorageLoop &loop);
  bool canShowRow(const StorageCopy &copy, const StorageLoop &loop);

  BindingFacts getArgFacts(unsigned i) { return *BindingFacts::get(entry.getArgAttr(i, train::bindingAttrName)); }
  BindingFacts getResultFacts(unsigned i) { return *BindingFacts::get(entry.getResultAttr(i, train::bindingAttrName)); }
  /// A new value number for such bytes.
  uint64_t createValue(MemoryComponent component) {
    components.push_back(int8_t(component));
    return components.size() - 1;
  }
  /// What the bytes of a storage are while `tensor` is there; null: its first value.
  MemoryComponent getComponent(unsigned index, mlir::Value tensor);
  /// The bytes of a storage, holding value `value`.
  plan::SliceAttr getSlice(unsigned index, uint64_t value);
  /// What `tensor` holds now.
  plan::SliceAttr read(mlir::Value tensor) {
    unsigned index = storage.getStorage(tensor);
    return getSlice(index, current[index]);
  }
  /// A new value for a storage; one that has its number already keeps it.
  plan::SliceAttr write(unsigned index, mlir::Value tensor = {}) {
    auto known = numberOf.find(tensor);
    current[index] = known == numberOf.end() ? createValue(getComponent(index, tensor)) : known->second;
    return getSlice(index, current[index]);
  }
  mlir::ArrayAttr readAll(mlir::ValueRange tensors) {
    return builder.getArrayAttr(
        llvm::map_to_vector(tensors, [&](mlir::Value v) -> mlir::Attribute { return read(v); }));
  }
  mlir::ArrayAttr writeAll(mlir::ValueRange tensors) {
    return builder.getArrayAttr(llvm::map_to_vector(
        tensors, [&](mlir::Value v) -> mlir::Attribute { return write(storage.getStorage(v), v); }));
  }
  /// A buffer that one instruction may use as it likes; null for no bytes.
  plan::SliceAttr createWorkspace(uint64_t bytes, mlir::Location loc);

  mlir::func::FuncOp entry;
  const PlanLayout &layout;
  plan::ModuleOp module;
  codegen::KernelModule &code;
  const llvm::DenseMap<mlir::Operation *, codegen::KernelInfo> &kernels;
  KernelDeclarations &declared;
  StepStorage storage;
  MemoryRoles roles;
  bool weights;
  const TargetInfo target;
  mlir::OpBuilder builder;
  plan::ProgramOp program;
  /// mlir::Value number that each storage holds now.
  llvm::SmallVector<uint64_t> current;
  /// MemoryComponents by value number; there is no value 0.
  llvm::SmallVector<int8_t> components;
  unsigned workspaces = 0;
  /// Of each loop around the instruction: its carried storages' values when a round starts.
  llvm::SmallVector<llvm::SmallVector<uint64_t>> handed;
  /// Of an unrolled loop: its round; storages whose bytes are a part of another's, from an offset on; buffers of the
  /// others; what number rows have as parts of the whole, and the wholes.
  std::optional<int64_t> round;
  llvm::DenseMap<unsigned, std::pair<unsigned, uint64_t>> shown;
  llvm::DenseMap<unsigned, std::string> bufferOf;
  llvm::DenseMap<mlir::Value, uint64_t> numberOf;
  llvm::DenseMap<unsigned, uint64_t> wholes;
  /// Second launches that wait, and what they read.
  struct Waiting {
    mlir::Operation *op;
    const codegen::KernelInfo *info;
    llvm::SmallVector<mlir::Attribute> reads;
  };
  llvm::SmallVector<Waiting> waiting;
};

} // namespace lowtide
