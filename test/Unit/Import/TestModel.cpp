//===- TestModel.cpp - models for tests of the importer ---------------------------===//

#include "TestModel.h"

#include "gtest/gtest.h"

#include "onnx/defs/parser.h"

#include <algorithm>
#include <cstring>

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
  FailureKind failure = FailureKind::None;
  {
    OnnxFile file(recording.context, "model.onnx", limits);
    if (mlir::succeeded(file.loadBytes(llvm::ArrayRef<char>(bytes.data(), bytes.size()))))
      (void)importOnnx(file, options);
    failure = file.getFailure();
  }
  return {failure, recording.messages, recording.numErrors};
}

Outcome lowtide::test::importModel(const ::onnx::ModelProto &model, ImportOptions options, ImportLimits limits) {
  return importBytes(model.SerializeAsString(), std::move(options), limits);
}

const InitializerInfo *Classified::find(const std::string &name) const {
  for (const InitializerInfo &info : infos)
    if (info.name == name)
      return &info;
  return nullptr;
}

std::vector<std::string> Classified::names(InitializerRole role) const {
  std::vector<std::string> result;
  for (const InitializerInfo &info : infos)
    if (info.role == role)
      result.push_back(info.name);
  return result;
}

::onnx::GraphProto lowtide::test::importGraph(const ::onnx::ModelProto &model) {
  RecordingContext recording;
  OnnxFile file(recording.context, "model.onnx");
  const std::string bytes = model.SerializeAsString();
  EXPECT_TRUE(mlir::succeeded(file.loadBytes({bytes.data(), bytes.size()}))) << recording.messages;
  EXPECT_TRUE(mlir::succeeded(importOnnx(file, ImportOptions()))) << recording.messages;
  return file.getModel().graph();
}

Classified lowtide::test::classify(OnnxFile &file, RecordingContext &recording, const ImportOptions &options) {
  Classified result;
  auto infos = classifyInitializers(file, options);
  if (mlir::succeeded(infos))
    result.infos = std::move(*infos);
  result.messages = recording.messages;
  result.failure = file.getFailure();
  for (const ReplacedTensor &replaced : file.getUnfolded().replaced)
    result.replaced[replaced.tensor] = replaced.values;
  // What points into the file goes away with it.
  for (InitializerInfo &info : result.infos) {
    info.uses.clear();
    if (!info.unfolded)
      continue;
    result.unfolded[info.name] = *info.unfolded;
    info.unfolded = nullptr;
    std::string bytes = file.tryReadInitializer(info.tensor).value_or("");
    std::vector<float> &values = result.values[info.name];
    values.resize(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  }
  return result;
}

Classified lowtide::test::classify(const ::onnx::ModelProto &model, const ImportOptions &options) {
  RecordingContext recording;
  OnnxFile file(recording.context, "model.onnx");
  std::string bytes = model.SerializeAsString();
  EXPECT_TRUE(mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size())))) << recording.messages;
  return classify(file, recording, options);
}

void lowtide::test::renameValue(::onnx::ModelProto &model, const std::string &from, const std::string &to) {
  for (auto &tensor : *model.mutable_graph()->mutable_initializer())
    if (tensor.name() == from)
      tensor.set_name(to);
  for (auto &node : *model.mutable_graph()->mutable_node())
    for (auto *names : {node.mutable_input(), node.mutable_output()})
      std::replace(names->begin(), names->end(), from, to);
}

template <typename Message> static void setProp(Message *message, const std::string &key, const std::string &value) {
  auto *prop = message->add_metadata_props();
  prop->set_key(key);
  prop->set_value(value);
}

void lowtide::test::setNote(::onnx::ModelProto &model, int index, const std::string &key, const std::string &value) {
  setProp(model.mutable_graph()->mutable_node(index), key, value);
}

void lowtide::test::setOrigin(::onnx::ModelProto &model, int index, const std::string &module,
                              const std::string &operation) {
  setNote(model, index, "pkg.torch.onnx.name_scopes", "['', '" + module + "', 'op']");
  if (!operation.empty())
    setNote(model, index, "pkg.torch.onnx.fx_node",
            "%op : [num_users=1] = call_function[target=op](args = (" + operation + "), kwargs = {})");
}

void lowtide::test::setOperation(::onnx::ModelProto &model, int index, const std::string &result, int users,
                                 const std::string &operation, const std::string &operands) {
  setNote(model, index, "pkg.torch.onnx.name_scopes", "['', 'op']");
  setNote(model, index, "pkg.torch.onnx.class_hierarchy", "['M', 'aten." + operation + "']");
  setNote(model, index, "pkg.torch.onnx.fx_node",
          "%" + result + " : [num_users=" + std::to_string(users) + "] = call_function[target=torch.ops.aten." +
              operation + "](args = (" + operands + "), kwargs = {})");
}

void lowtide::test::setSignature(::onnx::ModelProto &model, std::vector<std::string> parameters,
                                 const std::string &more) {
  std::string text = "\n# inputs\n";
  for (const std::string &name : parameters) {
    std::string placeholder = "p_" + name;
    std::replace(placeholder.begin(), placeholder.end(), '.', '_');
    text += placeholder + ": PARAMETER target='" + name + "'\n";
  }
  setProp(model.mutable_graph(), "pkg.torch.export.ExportedProgram.graph_signature", text + more);
}

void lowtide::test::setFoldedFrom(::onnx::ModelProto &model, const std::string &tensor, const std::string &list) {
  auto *value = model.mutable_graph()->add_value_info();
  value->set_name(tensor);
  setProp(value, "pkg.onnxscript.optimizer.folded_from", list);
}

::onnx::ModelProto test::makeEvaluated(const std::string &name, const std::string &dims,
                                       const std::vector<float> &values, const std::string &parameter,
                                       const std::string &sources) {
  std::string list;
  for (float value : values)
    list += (list.empty() ? "" : ", ") + std::to_string(value);
  ::onnx::ModelProto model =
      parseModel("<ir_version: 10, opset_import: [\"\" : 20]> g (float[" + dims + "] x) => (float[" + dims +
                 "] y) <float[" + dims + "] " + name + " = {" + list + "}> { y = Add(x, " + name + ") }");
  setSignature(model, {parameter});
  setFoldedFrom(model, name, sources);
  setOrigin(model, 0, "");
  return model;
}
