//===- FunctionBodies.h - operators that ONNX defines by others -*- C++ -*-===//
//
// Expansion of an operator through the function body in its ONNX schema.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Legalize/NodeView.h"

namespace lowtide {

/// Legalizes a node through its schema's function body (a context-dependent one too) and sets its results. Fails when
/// the schema has none, or when a node inside is refused: then that is collected under the outer node.
mlir::LogicalResult expandFunctionBody(NodeView &node);

} // namespace lowtide
