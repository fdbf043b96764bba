//===- OnnxFile.h - a model file, checked
//------------------------------------------===//
//
// Reads a model, refuses what is malformed or too large, inlines its functions
// and upgrades old operator sets, so that what follows can rely on a plain,
// well-formed graph.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_IMPORT_ONNXFILE_H
#define LOWTIDE_IMPORT_ONNXFILE_H

#include "lowtide/Import/Limits.h"
#include "lowtide/Recover/ModelView.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/LogicalResult.h"

#include <map>
#include <memory>

namespace onnx {
class ModelProto;
class TensorProto;
} // namespace onnx

namespace lowtide {

/// A model file. Errors go to the context's diagnostics; `getFailure` then says
/// of which kind they were.
class OnnxFile final : public ModelView {
public:
  /// `path` is where the model lies; external data are looked for beside it.
  OnnxFile(mlir::MLIRContext &context, llvm::StringRef path, ImportLimits limits = {});
  ~OnnxFile() override;
  OnnxFile(const OnnxFile &) = delete;

  /// Texts by inputs that are fixed (ImportOptions::fixed): branches that they choose are taken when the file is read.
  void fixInputs(std::map<std::string, std::string> values) { fixed = std::move(values); }

  /// Reads and checks the file. Fails on I/O errors, malformed files and
  /// unsupported versions.
  llvm::LogicalResult load();
  /// The same for a model in memory; external data are looked for beside
  /// `path`.
  llvm::LogicalResult loadBytes(llvm::ArrayRef<char> bytes);
  /// The same for ONNX's own text format.
  llvm::LogicalResult loadText(llvm::StringRef text);

  mlir::MLIRContext &getContext() const { return context; }
  const ImportLimits &getLimits() const { return limits; }
  const ::onnx::ModelProto &getModel() const override { return *model; }
  /// Version of the standard operator set that the model is in now, after any
  /// upgrade.
  int64_t getOpset() const;
  /// `opset 20, IR 10, producer pytorch 2.15.0`: what the file says about
  /// itself.
  const std::string &getHeadline() const { return headline; }

  const ::onnx::TensorProto *findInitializer(llvm::StringRef name) const override;

  /// What the file calls value `name`, from which a prefix may have been taken.
  std::string nameInFile(llvm::StringRef name) const;

  const UnfoldedTensors &getUnfolded() const override { return unfolded; }

  /// Streams the data of initializer `name` in pieces: little-endian, dense,
  /// row-major, `bool` one byte per element. Fails (and says why) when external
  /// data are missing or do not fit.
  llvm::LogicalResult readInitializer(llvm::StringRef name, llvm::function_ref<void(llvm::ArrayRef<char>)> sink);
  /// Fails as `readInitializer` does, and reads nothing: whether external data are there.
  llvm::LogicalResult checkInitializer(llvm::StringRef name);
  std::optional<std::string> tryReadInitializer(llvm::StringRef name) const override;
  bool isEmbedded(llvm::StringRef name) const override;

  /// Of the first error.
  FailureKind getFailure() const;
  Report &getReport() override { return *report; }

private:
  llvm::LogicalResult prepare();
  llvm::LogicalResult inlineFunctions();
  llvm::LogicalResult upgrade();
  void liftConstants();
  void lowerInputs();
  void indexInitializers();
  void unfold();
  /// `sink` null: external data are looked for, and not read.
  llvm::LogicalResult streamTensor(const ::onnx::TensorProto &tensor, Report &report,
                                   llvm::function_ref<void(llvm::ArrayRef<char>)> sink) const;

  mlir::MLIRContext &context;
  std::string path;
  ImportLimits limits;
  std::unique_ptr<Report> report;
  std::unique_ptr<::onnx::ModelProto> model;
  llvm::StringMap<const ::onnx::TensorProto *> initializers;
  UnfoldedTensors unfolded;
  std::map<std::string, std::string> fixed;
  llvm::StringMap<std::string> originals; ///< names in the file, by those without a prefix
  std::string headline;
};

} // namespace lowtide

#endif // LOWTIDE_IMPORT_ONNXFILE_H
