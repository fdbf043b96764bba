//===- RecomputedSteps.h - what segments of steps recompute -----*- C++ -*-===//
//
// A loop over segments of steps may keep what the backward pass reads, or compute it again there. Each form has fewer
// bytes than the one before it, and takes more time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace lowtide {

enum class RecomputedSteps {
  None,     ///< all is kept
  Products, ///< what is made of a segment's input alone runs again, such as its products with the weights
  All,      ///< the segment's steps run again, from the state that they started with
};

/// In the order of the enumeration.
inline constexpr llvm::StringLiteral recomputedStepsNames[] = {"none", "products", "all"};

inline llvm::StringRef getName(RecomputedSteps steps) { return recomputedStepsNames[size_t(steps)]; }
inline std::optional<RecomputedSteps> parseRecomputedSteps(llvm::StringRef name) {
  const auto *found = llvm::find(recomputedStepsNames, name);
  if (found == std::end(recomputedStepsNames))
    return std::nullopt;
  return RecomputedSteps(found - std::begin(recomputedStepsNames));
}

} // namespace lowtide
