//===- Toolkit.h - where the CUDA toolkit lies ------------------*- C++ -*-===//
//
// ptxas and libdevice come from there. No GPU is needed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace lowtide::codegen {

/// A file of the CUDA toolkit ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc"): under $CUDA_HOME, $CUDA_PATH, what
/// `tools/dev setup` installed, /usr/local/cuda, or, for programs, on the path.
std::optional<std::string> findInToolkit(llvm::StringRef file);

} // namespace lowtide::codegen
