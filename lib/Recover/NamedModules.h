//===- NamedModules.h - modules that programs do not train, by what they hold -----===//

#ifndef LOWTIDE_LIB_RECOVER_NAMEDMODULES_H
#define LOWTIDE_LIB_RECOVER_NAMEDMODULES_H

#include "Classifier.h"

namespace lowtide {

/// Norms that operators other than a norm's own make of running statistics, as detectors freeze theirs: scale and shift
/// are buffers of such a module. Makes them constants, and warns.
void keepFrozenNorms(ModelView &file, std::vector<InitializerInfo> &infos);

/// Warns about parameters in modules that are called as copies and averages of others are (`teacher`, `model_ema`).
void reportCopiedModules(ModelView &file, llvm::ArrayRef<InitializerInfo> infos);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_NAMEDMODULES_H
