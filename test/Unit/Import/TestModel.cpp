//===- TestModel.cpp - models for tests of the importer ---------------------------===//

#include "TestModel.h"

#include "gtest/gtest.h"

#include "onnx/defs/parser.h"

using namespace lowtide;
using namespace lowtide::test;

RecordingContext::RecordingContext() {
  context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      messages += "note: " + note.str() + "\n";
    numErrors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::success();
  });
}

::onnx::ModelProto lowtide::test::parseModel(const std::string &text) {
  ::onnx::ModelProto model;
  ::onnx::OnnxParser parser(text.c_str());
  auto status = parser.Parse(model);
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

::onnx::ModelProto lowtide::test::makeLinear() {
  return parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    linear (float[2,3] x) => (float[2,4] y)
    <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] b = {1,2,3,4}> {
      h = MatMul(x, w)
      y = Add(h, b)
    })");
}

Outcome lowtide::test::importBytes(const std::string &bytes, ImportOptions options, ImportLimits limits) {
  RecordingContext recording;
  int exitCode = 0;
  {
    OnnxFile file(recording.context, "model.onnx", limits);
    if (mlir::succeeded(file.loadBytes(llvm::ArrayRef<char>(bytes.data(), bytes.size()))))
      (void)importOnnx(file, options);
    exitCode = file.getExitCode();
  }
  return {exitCode, recording.messages, recording.numErrors};
}

Outcome lowtide::test::importModel(const ::onnx::ModelProto &model, ImportOptions options, ImportLimits limits) {
  return importBytes(model.SerializeAsString(), std::move(options), limits);
}
