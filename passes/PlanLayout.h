//===- PlanLayout.h - where bound tensors lie -------------------*- C++ -*-===//
//
// Addresses of everything that outlives an instruction stream: parameters and
// constants, optimizer state, batch arrays, scalars, metrics.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Dialect/Plan/Plan.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Interfaces/SpaceInterface.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace lowtide {

/// On the first of the two launches that one kernel op became: nothing comes between them.
inline constexpr llvm::StringLiteral continuedAttrName = "plan.continued";

/// Alignment of every buffer, in bytes: a cache line, and the widest vector.
inline constexpr uint64_t planAlignment = 64;

/// What an arena in the space is aligned to, in bytes: a page of a file, so that copies may go past the page cache.
inline uint64_t getAlignment(Space space) { return space == Space::File ? 4096 : planAlignment; }

/// How addresses are looked for, before the plan and in it.
inline solve::PackingOptions getPlanPacking() {
  solve::PackingOptions options;
  options.alignment = planAlignment;
  return options;
}

/// What a binding attribute says, for all kinds alike.
struct BindingFacts {
  plan::BindingKind kind;
  mlir::StringAttr name;
  double initial = 0;
  bool fromFile = false;
  int64_t batchDim = -1;
  bool pending = false;

  /// Nothing if `binding` is no binding.
  static std::optional<BindingFacts> get(mlir::Attribute binding);
  /// Kept between steps.
  bool isPersistent() const {
    return kind == plan::BindingKind::Param || kind == plan::BindingKind::State || kind == plan::BindingKind::Constant;
  }
  /// Made by the step: no argument's.
  bool isResult() const {
    return kind == plan::BindingKind::Metric || kind == plan::BindingKind::Output ||
           kind == plan::BindingKind::Gradient;
  }
  /// Of the bytes of an argument or a metric.
  MemoryComponent getComponent() const {
    return kind == plan::BindingKind::Param || fromFile ? MemoryComponent::Parameter
           : isPersistent()                             ? MemoryComponent::State
                                                        : MemoryComponent::Batch;
  }
};

/// The arenas that all entries share. Parameters lie group after group, in the
/// order of the first entry's arguments, then what is frozen but in the file;
/// optimizer state lies in the same order.
class PlanLayout {
public:
  struct Arena {
    plan::ArenaRole role;
    std::string name;
    uint64_t bytes = 0;
    uint64_t imageBytes = 0;
    plan::ArenaSpace space = plan::ArenaSpace::Device;
    uint64_t alignment = planAlignment;
  };

  /// Lays out the arguments and metrics of all entries. Fails, with a
  /// diagnostic, if one name has two types.
  static mlir::FailureOr<PlanLayout> compute(llvm::ArrayRef<mlir::func::FuncOp> entries, const TargetInfo &target);

  llvm::ArrayRef<Arena> getArenas() const { return arenas; }
  /// Those that bindings lie in come first; of the rest no slice knows.
  llvm::ArrayRef<Arena> getBoundArenas() const { return getArenas().take_front(numBound); }
  llvm::ArrayRef<Arena> getRuntimeArenas() const { return getArenas().drop_front(numBound); }
  StaticBytes getStaticBytes() const;
  /// Bytes of bound tensors that lie in a memory.
  uint64_t getBoundBytes(Space space) const;
  /// The slice of a laid-out tensor, with value number `value`.
  plan::SliceAttr getSlice(const BindingFacts &facts, mlir::Type type, uint64_t value) const;

private:
  /// The arena of parameters or optimizer state that lie in another memory, added when it is asked for first.
  unsigned getOther(plan::ArenaRole role, Space space);

  size_t numBound = 0;
  struct Place {
    mlir::Type type;
    unsigned arena;
    uint64_t offset;
  };
  /// Persistent tensors share a place by name, the others by kind, name and type.
  static mlir::Attribute getKey(const BindingFacts &facts, mlir::Type type);
  /// The arenas through which a GPU gets batches and hands metrics back.
  mlir::LogicalResult addExchange(llvm::ArrayRef<mlir::func::FuncOp> entries);
  mlir::LogicalResult place(const BindingFacts &facts, mlir::Type type, unsigned arena, mlir::func::FuncOp entry);

  llvm::SmallVector<Arena> arenas;
  llvm::DenseMap<mlir::Attribute, Place> places;
};

} // namespace lowtide
