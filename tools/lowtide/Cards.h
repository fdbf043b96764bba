//===- Cards.h - what GPUs have for a step ----------------------*- C++ -*-===//
//
// Bytes of a card, and what a process pays before its first tensor.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace lowtide::driver {

/// A row of the table of cards.
struct Card {
  llvm::StringRef name;  ///< as --card takes it: "rtx4090"
  llvm::StringRef title; ///< "GeForce RTX 4090, 24 GB"
  /// Memory that a process sees as a whole, in MiB.
  uint64_t totalMiB;
  /// What the driver's context and the kernels of cuBLAS and cuDNN take of it, in MiB: an estimate.
  uint64_t takenMiB;

  uint64_t getBytes() const { return (totalMiB - takenMiB) << 20; }
};

llvm::ArrayRef<Card> listCards();
/// By name, whatever its capitals, blanks and dashes; null: none.
const Card *findCard(llvm::StringRef name);

} // namespace lowtide::driver
