//===- FusionSteps.cpp - the steps by which ops become kernels ------------===//

#include "lowtide/Fusion/FusionSteps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;

/// By FusionStep.
static constexpr llvm::StringLiteral kNames[] = {
    "prepare-sums",      "clone-cheap-producers", "recompute-after-loss",    "join-scatters",
    "join-sole-readers", "join-earliest-readers", "join-sibling-reductions",
};
static_assert(std::size(kNames) == size_t(FusionStep::JoinSiblingReductions) + 1);

std::optional<StringRef> FusionSteps::leaveOut(StringRef names) {
  for (StringRef name : llvm::split(names, ',')) {
    if (name.empty())
      continue;
    const auto *row = llvm::find(kNames, name);
    if (row == std::end(kNames))
      return name;
    leftOut |= 1u << (row - std::begin(kNames));
  }
  return std::nullopt;
}

SmallVector<StringRef> FusionSteps::listNames() { return SmallVector<StringRef>(std::begin(kNames), std::end(kNames)); }
