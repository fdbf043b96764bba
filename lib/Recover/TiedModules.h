//===- TiedModules.h - tensors that several modules call their weight ------------===//

#ifndef LOWTIDE_LIB_RECOVER_TIEDMODULES_H
#define LOWTIDE_LIB_RECOVER_TIEDMODULES_H

#include "lowtide/Recover/Initializers.h"
#include "lowtide/Recover/ModelView.h"

#include <vector>

namespace lowtide {

/// Of files without notes, whose exporter kept a tied tensor once, under the name that comes first: a layer that has no
/// weight of its own and computes with another module's has it under a name of its own as well (`head.weight`), by
/// which its state dictionary is saved and loaded.
void nameTiedModules(const ModelView &file, std::vector<InitializerInfo> &infos);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_TIEDMODULES_H
