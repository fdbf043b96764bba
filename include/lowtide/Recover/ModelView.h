//===- ModelView.h - what recovery sees of a model file ---------------------------===//
//
// Rules ask for the model, the numbers of its tensors and a place for what they have to say; how a file is read they
// do not know.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_RECOVER_MODELVIEW_H
#define LOWTIDE_RECOVER_MODELVIEW_H

#include "lowtide/Recover/Initializers.h"
#include "lowtide/Recover/Report.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace onnx {
class ModelProto;
class TensorProto;
} // namespace onnx

namespace lowtide {

class ModelView {
public:
  virtual ~ModelView();

  virtual const ::onnx::ModelProto &getModel() const = 0;
  /// The initializer `name`, or null. Names are those of `getModel`, or of the file.
  virtual const ::onnx::TensorProto *findInitializer(llvm::StringRef name) const = 0;
  /// All data of initializer `name`, little-endian, dense, row-major; nullopt, without a word, when they cannot be
  /// read.
  virtual std::optional<std::string> tryReadInitializer(llvm::StringRef name) const = 0;
  /// Whether the data of `name` can be read without touching another file.
  virtual bool isEmbedded(llvm::StringRef name) const = 0;
  /// Where errors and warnings about the file are collected.
  virtual Report &getReport() = 0;
  /// What was taken apart when the model was loaded (`recoverProgram`).
  virtual const UnfoldedTensors &getUnfolded() const = 0;

  /// Where initializer `name` came from if the file does not hold it; null: it does.
  const UnfoldedSource *findUnfolded(llvm::StringRef name) const;
};

} // namespace lowtide

#endif // LOWTIDE_RECOVER_MODELVIEW_H
