//===- Ties.h - who gets the cotangent where operands are equal ------------------===//
//
// ONNX says what extrema are, not what their derivatives are. Programs differ: `amax` shares among equal elements,
// `max` along a dimension picks one, `clamp` by numbers gives nothing to an element on its limit. The importer notes
// what the program called.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_IMPORT_TIES_H
#define LOWTIDE_IMPORT_TIES_H

#include "llvm/ADT/StringRef.h"

namespace onnx {
class NodeProto;
} // namespace onnx

namespace lowtide {

enum class Ties {
  AsOperator, ///< nothing is known: as the operator's rule has it
  None,       ///< an element on its limit gets nothing
  Shared,     ///< equal operands share
  First,      ///< the first of the largest (smallest) gets all
};

/// Attribute of `Clip`, `Max`, `Min`, `ReduceMax`, `ReduceMin`: a `Ties` as an integer.
inline constexpr llvm::StringLiteral tiesAttrName = "ties";

/// What the exporter notes of the operation that `node` was exported from.
Ties findTies(const ::onnx::NodeProto &node);

} // namespace lowtide

#endif // LOWTIDE_IMPORT_TIES_H
