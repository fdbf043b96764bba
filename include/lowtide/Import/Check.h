//===- Check.h - what a model file holds, in words ------------------------------===//
//
// The report of `lowtide check`: versions, inputs, who is a parameter and why,
// what must be bound, and every operator that cannot be compiled.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_IMPORT_CHECK_H
#define LOWTIDE_IMPORT_CHECK_H

#include "lowtide/Import/Import.h"

#include "llvm/Support/raw_ostream.h"

namespace lowtide {

/// Whether operator `op` of `domain` in version `version` of its operator set
/// is supported; `why` may be set to a half sentence or to the nearest
/// alternative.
using SupportsOperator =
    llvm::function_ref<bool(llvm::StringRef domain, llvm::StringRef op, int64_t version, std::string &why)>;

/// Prints the report about loaded `file` to `os`. Returns the exit code: 0, 2
/// when the evidence about parameters is contradictory, 3 when some operator is
/// not supported.
int reportModel(OnnxFile &file, const ImportOptions &options, SupportsOperator supports, llvm::raw_ostream &os);

/// The same facts as one JSON object.
int reportModelAsJson(OnnxFile &file, const ImportOptions &options, SupportsOperator supports, llvm::raw_ostream &os);

} // namespace lowtide

#endif // LOWTIDE_IMPORT_CHECK_H
