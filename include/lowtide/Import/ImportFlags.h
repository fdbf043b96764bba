//===- ImportFlags.h - texts of import flags
//----------------------------------------===//
//
// Parses the values of `--dim`, `--shape`, `--rename` and `--set` into options.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_IMPORT_IMPORTFLAGS_H
#define LOWTIDE_IMPORT_IMPORTFLAGS_H

#include "lowtide/Import/Import.h"

namespace lowtide {

/// `batch=8`. Each returns an empty string, or what is wrong with `text`.
std::string parseDimFlag(llvm::StringRef text, ImportOptions &options);
/// `tokens=8x64`; `tokens=scalar` for rank 0.
std::string parseShapeFlag(llvm::StringRef text, ImportOptions &options);
/// `val_9=h.0.qkv.weight`.
std::string parseRenameFlag(llvm::StringRef text, ImportOptions &options);
/// `use_cache_branch=false`.
std::string parseSetFlag(llvm::StringRef text, ImportOptions &options);

} // namespace lowtide

#endif // LOWTIDE_IMPORT_IMPORTFLAGS_H
