//===- Autocast.h - which values of a function are kept in 16 bits -*- C++ -*-===//
//
// The rewriting of train-autocast, on one function.
//
//   1. Walk: asked for each operand's policy, an op gets 16-bit operands (contractions), f32 ones (everything that
//      computes otherwise), or passes on what it has (movements). A value is rounded once, right where it is made, and
//      widened where f32 is wanted.
//   2. Storage: a value that some op needs in 16 bits is kept in 16 bits only, and so is one that the backward pass
//      reads again and that is made of such values; who wants f32 widens that. One value has one set of bits wherever
//      it is read, unless an f32 value goes to a contraction and, elementwise, to a logarithm or the like.
//   3. What the backward pass reads in f32 and few elementwise ops make of 16-bit values is recomputed there
//      (AutocastSaved.cpp).
//
// docs/rationale/precision.md has the reasons.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include <functional>

namespace lowtide {

/// What the user said about the layers that a pattern names.
enum class PrecisionOverride : uint8_t { None, Wide, Narrow };

class Autocast {
public:
  /// `narrow`: bf16 or f16. `pure`: parameters are of that type too, and every value that is read more than once.
  /// `overrideOf`: what the user said about an op.
  Autocast(mlir::func::FuncOp step, mlir::FloatType narrow, bool pure,
           std::function<PrecisionOverride(mlir::Operation *)> overrideOf);

  /// Bindings of f32 constants that `run` would only ever read rounded, whatever the sizes of the step: operands of
  /// contractions, directly or through movements. Before `run`.
  llvm::SmallVector<BindingInterface> findRoundedConstants() const;

  /// `stored`: constants that are bound in 16 bits, as parameters of a pure step are. The values that the step computes
  /// with are the same: each is rounded when it is bound, not once in every step.
  void run(const llvm::DenseSet<mlir::Attribute> &stored = {});

  unsigned numNarrowed = 0, numWidened = 0;
  /// Values that the backward pass recomputes from what is kept in 16 bits.
  unsigned numRemade = 0;
  /// Bytes of values that the forward pass computes from data and the backward pass reads, before and after.
  uint64_t savedBytesBefore = 0, savedBytes = 0;

private:
  bool isForward(mlir::Operation *op) const { return forward.contains(op); }
  /// Float values that take part: f32, or already 16 bits.
  bool isWide(mlir::Value value) const;
  bool isNarrow(mlir::Value value) const;
  /// `user`: the op that reads it, when known.
  mlir::Value getNarrow(mlir::Value value, mlir::Operation *user = nullptr);
  mlir::Value findShownData(mlir::Value value) const;
  mlir::Value getNarrowView(mlir::Value value, mlir::Operation *user);
  mlir::Value getWide(mlir::Value value);
  PrecisionPolicy getOperandPolicy(mlir::OpOperand &operand) const;
  bool mayStoreNarrow(mlir::OpResult result) const;
  /// Whether an op reads its operands in whatever type they are kept: movements, windows, gathers.
  bool passesOn(mlir::Operation *op) const;

  void findForward();
  void findDemands();
  void findUnbounded();
  void findActivations();
  /// Whether all that comes of `value` is kept in f32 anyway: gradients, losses, updates.
  bool endsWide(mlir::Value value);

  bool isOnlyRounded(mlir::Value value, llvm::DenseMap<mlir::Value, bool> &known) const;
  void narrowArguments(const llvm::DenseSet<mlir::Attribute> &stored);
  void visit(mlir::Operation *op);
  void visitContraction(mlir::Operation *op);
  void visitMovement(mlir::Operation *op);
  /// Products in the rounds of an op with a body get 16-bit operands; what rounds carry on stays f32.
  void visitBody(mlir::Block &body);
  void store(mlir::OpResult value);
  bool followsNarrow(mlir::OpResult value) const;
  void replaceUses(mlir::Value value, mlir::Value narrowed);
  mlir::Value getKept(mlir::Value value) const;
  bool isActivation(mlir::Value kept) const;
  /// What the backward pass reads of the forward pass, and where; values that must be in memory.
  struct Saved {
    llvm::MapVector<mlir::Value, llvm::SmallVector<mlir::OpOperand *>> readers;
    llvm::DenseSet<mlir::Value> inMemory;
  };
  Saved findSaved() const;
  uint64_t countSavedBytes() const;
  void remakeSaved();
  /// Rows that rounds of scans hand on in 16 bits where that changes no bit, and their input products
  /// (AutocastScans.cpp).
  void narrowScans();
  static void markAgain(mlir::Operation *op);
  friend class SavedRemaker;
  friend class ScanNarrower;

  mlir::func::FuncOp step;
  mlir::Block &block;
  mlir::FloatType narrow, wide;
  bool pure;
  /// A pure step that was imported whole.
  bool holdsUpdates = false;
  std::function<PrecisionOverride(mlir::Operation *)> overrideOf;

  /// Ops that the loss and other outputs need.
  llvm::DenseSet<mlir::Operation *> forward;
  /// Parameters and constants that were f32 in the model and are bound in 16 bits.
  llvm::SmallVector<mlir::Value> narrowedArguments;
  /// Values that some op wants in 16 bits, directly or through movements.
  llvm::DenseSet<mlir::Value> demanded;
  /// Values of which elementwise ops make what a function without bounds reads.
  llvm::DenseSet<mlir::Value> unbounded;
  /// Values computed from data; values that are one number for many elements.
  llvm::DenseSet<mlir::Value> fromData, statistics;
  /// f32 results whose data are all kept in 16 bits.
  llvm::DenseSet<mlir::Value> following;
  llvm::DenseMap<mlir::Value, mlir::Value> narrowOf, narrowAgain, wideOf;
  llvm::DenseMap<mlir::Value, bool> endsWideMemo;
};

} // namespace lowtide
