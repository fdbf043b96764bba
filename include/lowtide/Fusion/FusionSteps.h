//===- FusionSteps.h - the steps by which ops become kernels ----*- C++ -*-===//
//
// Each decides for itself, and can be left out by name: to see what it does, and what a step of training costs without.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace lowtide {

enum class FusionStep {
  PrepareSums,           ///< reductions to one number, and long sums over columns, take in what few cheap ops make; GPU
  CloneCheapProducers,   ///< each reader repeats, widens and makes of constants for itself, and picks of what is made
  RecomputeAfterLoss,    ///< the backward pass recomputes what is cheaply made of the batch
  JoinScatters,          ///< a scatter's kernel holds what it can compute where it adds
  JoinSoleReaders,       ///< a group whose results one other group reads joins it
  JoinEarliestReaders,   ///< a group joins the earliest group that reads it
  JoinSiblingReductions, ///< reductions of the same values over the same dimensions join
};

/// Which steps are taken: all, but for those that are left out.
class FusionSteps {
public:
  /// Leaves out the steps that `names` lists, with commas. Returns the first name that no step has.
  std::optional<llvm::StringRef> leaveOut(llvm::StringRef names);
  bool has(FusionStep step) const { return !(leftOut >> unsigned(step) & 1); }
  /// In the order in which they are taken.
  static llvm::SmallVector<llvm::StringRef> listNames();

private:
  unsigned leftOut = 0;
};

} // namespace lowtide
