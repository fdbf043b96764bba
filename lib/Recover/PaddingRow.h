//===- PaddingRow.h - rows of tables that are not trained ------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_PADDINGROW_H
#define LOWTIDE_LIB_RECOVER_PADDINGROW_H

#include "lowtide/Recover/Initializers.h"
#include "lowtide/Recover/ModelView.h"

#include <optional>

namespace lowtide {

/// The row of `table` that `node` looks up without training it: as the exporter noted it; in files without notes, the
/// only one that is all zeros, as `Embedding` makes it.
std::optional<int64_t> findPaddingRow(const ModelView &file, const ::onnx::NodeProto &node,
                                      const InitializerInfo &table);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_PADDINGROW_H
