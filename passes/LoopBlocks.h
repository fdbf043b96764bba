//===- LoopBlocks.h - the blocks of a loop over parts -----------*- C++ -*-===//
//
// A loop over the parts of a batch takes each part through the whole model. This says where the model falls into
// blocks, so that all parts can pass one before the first enters the next.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/ForwardPart.h"
#include "lowtide/Interfaces/OpInterfaces.h"

namespace lowtide {

/// Which block of the model each op of a loop's body belongs to.
///
/// The forward part, in its order, is cut where the fewest bytes cross, such that no block reads more than a share of
/// the large tensors around the loop: parameters, that is. Any other op belongs to the last block that has what it
/// reads, parameters included: a gradient, to the block whose gradient it is.
class LoopBlocks {
public:
  /// `most`: so many shares; at least as much as one op reads is in each.
  LoopBlocks(RepeatInterface loop, const ForwardPart &forward, unsigned most);

  /// Less than two: there is nothing to cut.
  unsigned getNumBlocks() const { return numBlocks; }
  /// What a loop computes wherever it needs it: views, and what costs little and is made of slices, counters, and what
  /// is no larger than itself. It belongs to no block.
  bool isFree(mlir::Operation *op) const { return freeOps.contains(op); }
  bool isForward(mlir::Operation *op) const { return forwardOps.contains(op); }
  /// Of an op of the body that is not free; the first is 0.
  unsigned getBlock(mlir::Operation *op) const { return blockOf.lookup(op); }
  /// Whether the forward part of a later block reads a result of an op.
  bool isCrossing(mlir::Value value) const;

  /// Which carried values are counters: each round's follows from the one before and nothing else.
  bool isCounter(unsigned carried) const { return counters.contains(carried); }

  /// What an op reads, in regions of its own too.
  static llvm::SmallVector<mlir::Value> listReads(mlir::Operation *op);

private:
  bool isInside(mlir::Value value) const;
  /// The op of the body that makes what `value` is a view of; null where that comes from elsewhere, or is free.
  mlir::Operation *findMaker(mlir::Value value) const;
  void findCounters();
  bool costsLittle(mlir::Operation *op) const;
  void cutForward(unsigned most);
  void placeOthers();

  RepeatInterface loop;
  mlir::Block &body;
  const unsigned numSliced;
  unsigned numBlocks = 0;
  llvm::DenseSet<unsigned> counters;
  llvm::DenseSet<mlir::Operation *> freeOps, forwardOps;
  llvm::DenseMap<mlir::Operation *, unsigned> blockOf;
  /// The last block whose forward part reads a value.
  llvm::DenseMap<mlir::Value, unsigned> lastReader;
};

} // namespace lowtide
