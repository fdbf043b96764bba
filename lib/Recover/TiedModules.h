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

/// Of files with notes: warns about tensors that the exporter evaluated (a weight, transposed) and several layers read.
/// It evaluates one for each layer and keeps one of equal values, so that a tie and a copy look the same.
void reportEvaluatedTies(ModelView &file, llvm::ArrayRef<InitializerInfo> infos);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_TIEDMODULES_H
