//===- PaddingRow.h - rows of tables that are not trained ------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_PADDINGROW_H
#define LOWTIDE_LIB_IMPORT_PADDINGROW_H

#include "lowtide/Import/Initializers.h"
#include "lowtide/Import/OnnxFile.h"

#include <optional>

namespace lowtide {

/// Attribute that the importer gives to a `Gather`: the row that it reads as zeros and does not train.
inline constexpr llvm::StringLiteral paddingRowAttrName = "padding_row";

struct PaddingRow {
  /// The row of `Embedding(padding_idx=)`: as the exporter noted it; without notes, the only one that is all zeros.
  std::optional<int64_t> row;
  /// It is zeros, and remains so because nothing but look-ups reads the table.
  bool staysZero = false;
};

/// The row of `table` that `node` reads without training it.
PaddingRow findPaddingRow(const OnnxFile &file, const ::onnx::NodeProto &node, const InitializerInfo &table);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_PADDINGROW_H
