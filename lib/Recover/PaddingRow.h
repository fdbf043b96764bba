//===- PaddingRow.h - rows of tables that are not trained ------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_PADDINGROW_H
#define LOWTIDE_LIB_RECOVER_PADDINGROW_H

#include "lowtide/Recover/Initializers.h"
#include "lowtide/Recover/ModelView.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace lowtide {

/// The row of `table` that `node` looks up without training it: as the exporter noted it; in files without notes, the
/// only one that is all zeros, as `Embedding` makes it, unless a module around the table's reads it by index.
std::optional<int64_t> findPaddingRow(const ModelView &file, const ::onnx::NodeProto &node,
                                      const InitializerInfo &table);

/// Warns of tables without notes that have such a row and are read outside of their modules.
void reportOutsideLookups(ModelView &file, llvm::ArrayRef<InitializerInfo> infos);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_PADDINGROW_H
