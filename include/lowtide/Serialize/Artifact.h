//===- Artifact.h - writes a `.tide` file -----------------------*- C++ -*-===//
//
// Plan, weights and machine code become the one file that the runtime executes (docs/artifact.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/Plan/Plan.h"

namespace lowtide {

/// Streams the data of an initializer in pieces: little endian, dense, row-major, as the model file has them. Fails and
/// says why.
using ParameterReader = llvm::function_ref<llvm::LogicalResult(llvm::StringRef initializer,
                                                               llvm::function_ref<void(llvm::ArrayRef<char>)>)>;

struct ArtifactOptions {
  /// JSON for reports; the runtime does not read it. Empty: no section.
  std::string meta;
};

/// What went into a file.
struct ArtifactSummary {
  uint64_t planBytes = 0, paramsBytes = 0, codeBytes = 0;
  unsigned keptKernels = 0; ///< whose code an earlier compile has kept
};

/// Writes `module` (placed by `plan-place`), the code of `kernels` and the initial bytes of every binding `from_image`,
/// which `plan.source` leads to an initializer. Weights are streamed tensor by tensor; f32 in the file becomes f64
/// where the plan wants f64. The same input gives the same bytes. Fails, with a diagnostic, when a weight is missing or
/// has another size, or when the file cannot be written; then there is no file.
llvm::LogicalResult writeArtifact(plan::ModuleOp module, codegen::KernelModule &kernels, ParameterReader reader,
                                  const ArtifactOptions &options, llvm::StringRef path,
                                  ArtifactSummary *summary = nullptr);

} // namespace lowtide
