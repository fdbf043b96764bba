//===- PaddingRow.h - rows of tables that are not trained ------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_PADDINGROW_H
#define LOWTIDE_LIB_IMPORT_PADDINGROW_H

#include "lowtide/Import/Initializers.h"
#include "lowtide/Import/OnnxFile.h"

#include <optional>

namespace lowtide {

/// Attribute that the importer gives to a `Gather`: the row of its table that is not trained by it.
inline constexpr llvm::StringLiteral paddingRowAttrName = "padding_row";

/// The row of `table` that `node` looks up without training it: as the exporter noted it; in files without notes, the
/// only one that is all zeros, as `Embedding` makes it.
std::optional<int64_t> findPaddingRow(const OnnxFile &file, const ::onnx::NodeProto &node,
                                      const InitializerInfo &table);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_PADDINGROW_H
