//===- PrefixedShapes.h - shapes with a dimension more ----------*- C++ -*-===//
//
// Where steps or rounds stand in front of what each of them has.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace lowtide::nn {

/// `first`, and the elements of `rest`, each with `added`.
inline llvm::SmallVector<int64_t> prefixed(int64_t first, llvm::ArrayRef<int64_t> rest, int64_t added = 0) {
  llvm::SmallVector<int64_t> all{first};
  for (int64_t number : rest)
    all.push_back(number + added);
  return all;
}

} // namespace lowtide::nn
