//===- CarriedSums.h - what loops add up in another memory ------*- C++ -*-===//
//
// A loop over parts of a batch adds up gradients from round to round. Each is read once in a round: it need not be on
// the device while the round computes anything else.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Interfaces/SpaceInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace lowtide {

/// A value that a loop of a step carries, one instruction of its body reads, and another value of the body replaces.
struct CarriedSum {
  /// A RepeatInterface, and how often its body runs.
  mlir::Operation *loop;
  uint64_t rounds;
  /// Which of the carried values.
  unsigned number;
  /// Without what aligns it.
  uint64_t bytes;

  /// How often a step loads it: once in each round, and once after them. It is stored as often.
  uint64_t getLoads() const { return rounds + 1; }
  /// Lets it lie in another memory: what it starts from is stored there, every round loads it before its reader and
  /// stores what replaces it, and readers after the loop load it. Where the step returns it as a state that lies
  /// there, the rounds add it up in the state's place.
  void moveTo(Space space) const;
};

/// Those of every entry's outermost loops, in the order of the program. A loop that carries a single one has none: its
/// rounds hold that in any case.
std::vector<CarriedSum> listCarriedSums(mlir::ModuleOp module);

/// Bytes of a memory that what is carried there takes while an entry runs: the most of any entry. What is added up in
/// the place of a state takes none.
uint64_t countCarriedBytes(mlir::ModuleOp module, Space space, uint64_t alignment);

} // namespace lowtide
