//===- PlaceChoices.h - which tensors may lie in which memory ---*- C++ -*-===//
//
// The choices between which a fit decides: what outlives the steps lies on the device, or in memories that have room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "LastingTensors.h"
#include "Offload.h"

namespace lowtide {

/// Places of what outlives the steps of a module in other memories that have room.
class PlaceChoices {
public:
  PlaceChoices(mlir::ModuleOp module, llvm::ArrayRef<OffloadRoom> rooms);

  /// What is tried: nothing, optimizer state, parameters too, and those in each round of loops. Each tensor lies in the
  /// first room that has place for it.
  std::vector<TensorPlaces> list() const;
  /// Each of these with what loops add up in the room that is left; none where that has no place.
  std::vector<TensorPlaces> listWithSums() const;
  /// Of `places` so many tensors that they take at most a part of its bytes, between 0 and 1: optimizer state before
  /// parameters, which are loaded more than once, the largest of each first, and then what every round loads and
  /// stores.
  TensorPlaces limit(const TensorPlaces &places, double part) const;
  /// Seconds that a step takes at least with tensors there: each is loaded once, and the lanes of different memories
  /// work at the same time. What rounds move, one after the other, comes on top.
  double countLeastSeconds(const TensorPlaces &places) const;

private:
  TensorPlaces assign(bool withParameters) const;
  /// Puts what loops add up into the room that `places` leaves.
  void assignSums(TensorPlaces &places) const;

  /// Optimizer state, then parameters, of each the largest first.
  std::vector<LastingTensor> tensors;
  std::vector<CarriedSum> sums;
  llvm::SmallVector<OffloadRoom, 2> rooms;
  bool hasLoops;
};

} // namespace lowtide
