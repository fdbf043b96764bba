//===- BlockPlaces.h - the order of ops while some move ----------*- C++ -*-===//
//
// A block of MLIR numbers all of its ops anew at the first question after each move: moves that alternate with
// questions take quadratic time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace lowtide {

/// Answers what stands before what in a block whose ops move, but neither come nor go.
class BlockPlaces {
public:
  explicit BlockPlaces(mlir::Block &block) : block(block) { renumber(); }

  bool isBefore(mlir::Operation *left, mlir::Operation *right) const {
    return places.lookup(left) < places.lookup(right);
  }
  void moveBefore(mlir::Operation *op, mlir::Operation *place) {
    op->moveBefore(place);
    number(op);
  }
  void moveAfter(mlir::Operation *op, mlir::Operation *place) {
    op->moveAfter(place);
    number(op);
  }

private:
  /// Each move to one place halves what is left there: after 32 in a row all ops are numbered anew.
  static constexpr uint64_t kGap = uint64_t(1) << 32;

  void renumber() {
    uint64_t next = 0;
    for (mlir::Operation &op : block)
      places[&op] = next += kGap;
  }
  void number(mlir::Operation *op) {
    const uint64_t low = op->getPrevNode() ? places.lookup(op->getPrevNode()) : 0;
    const uint64_t high = op->getNextNode() ? places.lookup(op->getNextNode()) : low + 2 * kGap;
    if (high - low < 2)
      return renumber();
    places[op] = low + (high - low) / 2;
  }

  mlir::Block &block;
  llvm::DenseMap<mlir::Operation *, uint64_t> places;
};

} // namespace lowtide
