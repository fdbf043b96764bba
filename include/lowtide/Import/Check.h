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

/// Nodes of one operator that cannot be compiled for one reason.
struct RefusedNodes {
  std::string domain, name;
  int64_t version = 0;
  /// Half a sentence.
  std::string reason;
  /// For each node the module that it came from, or its own name.
  std::vector<std::string> places;
};

/// Prints the report about loaded `file` to `os`. Returns the exit code: 0, 2
/// when the evidence about parameters is contradictory, 3 when nodes are
/// refused.
int reportModel(OnnxFile &file, const ImportOptions &options, llvm::ArrayRef<RefusedNodes> refused,
                llvm::raw_ostream &os);

/// The same facts as one JSON object.
int reportModelAsJson(OnnxFile &file, const ImportOptions &options, llvm::ArrayRef<RefusedNodes> refused,
                      llvm::raw_ostream &os);

} // namespace lowtide

#endif // LOWTIDE_IMPORT_CHECK_H
