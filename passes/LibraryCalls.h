//===- LibraryCalls.h - which ops are left to a library ---------*- C++ -*-===//
//
// One answer for all passes of the fitted stage.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/OpInterfaces.h"

namespace lowtide {

/// Attribute of an op that its target's library declines (`nn-library-forms`): a generated kernel computes it.
inline constexpr llvm::StringLiteral generatedAttrName = "nn.generated";

/// Whether a library computes `op` as it stands.
inline bool isLibraryCall(mlir::Operation *op) {
  auto call = llvm::dyn_cast<LibraryCallInterface>(op);
  return call && !call.getCallee().empty() && !op->hasAttr(generatedAttrName);
}

} // namespace lowtide
