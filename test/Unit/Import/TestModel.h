//===- TestModel.h - models for tests of the importer -----------------------------===//

#ifndef LOWTIDE_TEST_UNIT_IMPORT_TESTMODEL_H
#define LOWTIDE_TEST_UNIT_IMPORT_TESTMODEL_H

#include "lowtide/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include "onnx/onnx_pb.h"

#include <map>
#include <string>
#include <vector>

namespace lowtide::test {

/// A context whose diagnostics are kept as text.
class RecordingContext {
public:
  RecordingContext();
  mlir::MLIRContext context;
  /// All messages and notes, one per line.
  std::string messages;
  /// Number of errors.
  unsigned numErrors = 0;
};

/// The model that `text` (ONNX's text format) describes; fails the test if it
/// does not parse.
::onnx::ModelProto parseModel(const std::string &text);

/// `x[2,3] · w[3,4] + b[4] → y`, in opset 20.
::onnx::ModelProto makeLinear();

/// What loading (and importing, if that succeeds) a model comes to.
struct Outcome {
  FailureKind failure;
  std::string messages;
  unsigned numErrors;
};
Outcome importModel(const ::onnx::ModelProto &model, ImportOptions options = {}, ImportLimits limits = {});
Outcome importBytes(const std::string &bytes, ImportOptions options = {}, ImportLimits limits = {});

/// The graph that a model is imported as, after recovery; expects that it is.
::onnx::GraphProto importGraph(const ::onnx::ModelProto &model);

/// What became of a model's initializers; infos are empty when that failed.
struct Classified {
  std::vector<InitializerInfo> infos;
  /// Of initializers that the importer made, by name.
  std::map<std::string, UnfoldedSource> unfolded;
  /// Data of those.
  std::map<std::string, std::vector<float>> values;
  /// What reads the file's tensors that nodes compute now, by their names.
  std::map<std::string, std::vector<std::string>> replaced;
  std::string messages;
  FailureKind failure;

  const InitializerInfo *find(const std::string &name) const;
  std::vector<std::string> names(InitializerRole role) const;
};
Classified classify(OnnxFile &file, RecordingContext &recording, const ImportOptions &options = {});
Classified classify(const ::onnx::ModelProto &model, const ImportOptions &options = {});

/// Gives value `from` the name `to`, which the text format cannot write.
void renameValue(::onnx::ModelProto &model, const std::string &from, const std::string &to);

// The notes of PyTorch's current exporter.

/// Gives node `index` the module path `module` and, if not empty, its original operation.
void setOrigin(::onnx::ModelProto &model, int index, const std::string &module, const std::string &operation = "");
/// Sets the node's note `key`.
void setNote(::onnx::ModelProto &model, int index, const std::string &key, const std::string &value);
/// Sets the exporter's notes on the node's operation: what it gives, how many read that, and what it reads.
void setOperation(::onnx::ModelProto &model, int index, const std::string &result, int users,
                  const std::string &operation, const std::string &operands);
/// The program's parameters, and `more` lines of its signature.
void setSignature(::onnx::ModelProto &model, std::vector<std::string> parameters, const std::string &more = "");
/// What `tensor` was evaluated from, as a Python list.
void setFoldedFrom(::onnx::ModelProto &model, const std::string &tensor, const std::string &list);

/// `add(x, tensor)` where tensor `name` has these dimensions and values and was evaluated from `sources`.
::onnx::ModelProto makeEvaluated(const std::string &name, const std::string &dims, const std::vector<float> &values,
                                 const std::string &parameter, const std::string &sources);

} // namespace lowtide::test

#endif // LOWTIDE_TEST_UNIT_IMPORT_TESTMODEL_H
