//===- NodeNotes.h - what the program did at a node, beyond its operator ----------===//
//
// ONNX's operators do not say what their derivatives are, or what no gradient flows through. Programs do, and exporters
// note it. The importer hands it on as attributes of nodes.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_RECOVER_NODENOTES_H
#define LOWTIDE_RECOVER_NODENOTES_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace lowtide {

/// Attribute of a `BatchNormalization`: whether the program's operation took the statistics of the batch (1) or kept
/// the running ones (0). Without it nothing is known.
inline constexpr llvm::StringLiteral trainsAttrName = "trains";

/// Attribute of a result of `@model`: the parameter or buffer (`onnx.parameter`) that the program assigns it to.
inline constexpr llvm::StringLiteral assignsAttrName = "onnx.assigns";

/// Attribute of an `Identity`: no gradient flows through it.
inline constexpr llvm::StringLiteral detachedAttrName = "detached";

/// Attribute of a `Gather`: the row of its table that is not trained by it.
inline constexpr llvm::StringLiteral paddingRowAttrName = "padding_row";

/// Attribute of `Clip`, `Max`, `Min`, `ReduceMax`, `ReduceMin`: a `Ties` as an integer.
inline constexpr llvm::StringLiteral tiesAttrName = "ties";

/// Who gets the cotangent where operands of an extremum are equal. `amax` shares among equal elements, `max` along a
/// dimension picks one, `clamp` by numbers gives nothing to an element on its limit.
enum class Ties {
  AsOperator, ///< nothing is known: as the operator's rule has it
  None,       ///< an element on its limit gets nothing
  Shared,     ///< equal operands share
  First,      ///< the first of the largest (smallest) gets all
};

/// What exporters note of the operation that a node was exported from (`findNodeNotes`).
struct NodeNotes {
  std::optional<int64_t> paddingRow;
  bool isDetached = false;
  std::optional<bool> trains;
  Ties ties = Ties::AsOperator;
};

} // namespace lowtide

#endif // LOWTIDE_RECOVER_NODENOTES_H
