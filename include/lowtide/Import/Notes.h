//===- Notes.h - what exporters note about single nodes --------------------------===//

#ifndef LOWTIDE_IMPORT_NOTES_H
#define LOWTIDE_IMPORT_NOTES_H

#include "llvm/ADT/StringRef.h"

namespace lowtide {

/// Attribute that the importer gives to a `BatchNormalization`: whether the program's operation took the statistics of
/// the batch (1) or kept the running ones (0). Without it nothing is known.
inline constexpr llvm::StringLiteral trainsAttrName = "trains";

/// Attribute of a result of `@model`: the parameter or buffer (`onnx.parameter`) that the program assigns it to.
inline constexpr llvm::StringLiteral assignsAttrName = "onnx.assigns";

} // namespace lowtide

#endif // LOWTIDE_IMPORT_NOTES_H
