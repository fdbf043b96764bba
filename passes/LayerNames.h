//===- LayerNames.h - which layers an op belongs to -------------*- C++ -*-===//
#pragma once

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace lowtide {

/// Module path and node name of an op, with dots between the parts: `h.0.ln1`, `h.0.ln1.Add`.
llvm::SmallVector<std::string> getLayerNames(mlir::Location loc);

} // namespace lowtide
