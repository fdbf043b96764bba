//===- TargetFile.h - a target of the user's own ----------------*- C++ -*-===//
//
// What --target-file reads: figures as JSON, with the names that `#train.target` has.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/TargetInfo.h"
#include "llvm/Support/Error.h"

#include <string>

namespace lowtide {

/// The target in a file. `kind` and, where the kind has several, `chip` must be there; of everything else the row of
/// that chip stands where the file says nothing. An error names the field, what was found and what is supported.
llvm::Expected<TargetInfo> readTargetFile(const std::string &path);

} // namespace lowtide
