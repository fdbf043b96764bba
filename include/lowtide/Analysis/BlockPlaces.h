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
    number(op, /*isNearLow=*/true);
  }
  void moveAfter(mlir::Operation *op, mlir::Operation *place) {
    op->moveAfter(place);
    number(op, /*isNearLow=*/false);
  }

private:
  /// Between the numbers of ops that have not moved.
  static constexpr uint64_t kGap = uint64_t(1) << 32;
  /// From an op that moves to one place to the next that moves there: all ops are numbered anew after 65,536 in a row.
  static constexpr uint64_t kStep = uint64_t(1) << 16;

  void renumber() {
    uint64_t next = 0;
    for (mlir::Operation &op : block)
      places[&op] = next += kGap;
  }
  /// What moves to the same place next will stand above `op` if that is near the op below it, else below.
  void number(mlir::Operation *op, bool isNearLow) {
    const uint64_t low = op->getPrevNode() ? places.lookup(op->getPrevNode()) : 0;
    const uint64_t high = op->getNextNode() ? places.lookup(op->getNextNode()) : low + 2 * kGap;
    if (high - low < 2)
      return renumber();
    const uint64_t step = std::min(kStep, (high - low) / 2);
    places[op] = isNearLow ? low + step : high - step;
  }

  mlir::Block &block;
  llvm::DenseMap<mlir::Operation *, uint64_t> places;
};

} // namespace lowtide
