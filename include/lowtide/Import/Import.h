//===- Import.h - from a model file to the `onnx` dialect
//-----------------------===//
//
// The importer proper: binds symbolic dimensions, says who is a parameter,
// builds the IR.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_IMPORT_IMPORT_H
#define LOWTIDE_IMPORT_IMPORT_H

#include "lowtide/Import/OnnxFile.h"
#include "lowtide/Recover/RoleChoices.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>

namespace lowtide {

/// Sizes and inputs, and what the user says of initializers.
struct ImportOptions : RoleChoices {
  /// Symbolic dimensions by name: `--dim batch=8`.
  std::map<std::string, int64_t> dims;
  /// Whole shapes by input: `--shape x=8x64`.
  std::map<std::string, std::vector<int64_t>> shapes;
  /// Binds the one symbol that is dimension 0 of every input: `--batch=8`.
  std::optional<int64_t> batch;
  /// `dims` and `batch` of the command line say so many samples: the symbols that count them get `batch` instead.
  std::optional<int64_t> wholeBatch;

  /// Inputs that are constants, with the number that fills them: `--set use_cache_branch=false`.
  std::map<std::string, std::string> fixed;
};

/// Says for every initializer what it is. Fails when the evidence is
/// contradictory; what to type is in the message.
mlir::FailureOr<std::vector<InitializerInfo>> classifyInitializers(OnnxFile &file, const ImportOptions &options);

/// Symbols that no option binds, each with an example of what to type. Empty
/// when all shapes are static.
/// `example`: their sizes, but for those that count samples.
std::vector<std::string> findUnboundDims(OnnxFile &file, const ImportOptions &options, int64_t example = 8);

/// `options` with an example size for everything that is unbound.
ImportOptions bindExamples(OnnxFile &file, const ImportOptions &options, int64_t example = 8);

/// Builds the module: one `func.func @model`. `infos` is what
/// `classifyInitializers` returned for the same options.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(OnnxFile &file, llvm::ArrayRef<InitializerInfo> infos,
                                                              const ImportOptions &options);

/// Both in one call.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(OnnxFile &file, const ImportOptions &options);

} // namespace lowtide

#endif // LOWTIDE_IMPORT_IMPORT_H
