//===- TestModel.h - models for tests of the importer -----------------------------===//

#ifndef LOWTIDE_TEST_UNIT_IMPORT_TESTMODEL_H
#define LOWTIDE_TEST_UNIT_IMPORT_TESTMODEL_H

#include "lowtide/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include "onnx/onnx_pb.h"

#include <string>

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
  int exitCode;
  std::string messages;
  unsigned numErrors;
};
Outcome importModel(const ::onnx::ModelProto &model, ImportOptions options = {}, ImportLimits limits = {});
Outcome importBytes(const std::string &bytes, ImportOptions options = {}, ImportLimits limits = {});

} // namespace lowtide::test

#endif // LOWTIDE_TEST_UNIT_IMPORT_TESTMODEL_H
