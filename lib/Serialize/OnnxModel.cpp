//===- OnnxModel.cpp - writes a graph as an .onnx file --------------------===//
//
// Inputs, outputs and weights by the bindings of the step; metadata from which the bindings are recovered.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Serialize/OnnxModel.h"
#include "OnnxGraph.h"
#include "TrainingInfo.h"
#include "WeightConversion.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Export/Export.h"
#include "lowtide/Export/FormBuilder.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace lowtide;

/// How metadata call a binding.
static StringRef stringify(BindingKind kind) {
  static constexpr const char *names[] = {"param",  "state",  "constant", "batch",
                                          "scalar", "metric", "output",   "gradient"};
  return names[static_cast<unsigned>(kind) - 1];
}

/// A number that is read back as it is.
static std::string printNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
  return text;
}

/// A number or a word of an attribute as text.
static std::string textOf(Attribute value) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (auto string = dyn_cast<StringAttr>(value))
    out << string.getValue();
  else if (auto real = dyn_cast<FloatAttr>(value))
    out << printNumber(real.getValueAsDouble());
  else if (auto integer = dyn_cast<IntegerAttr>(value))
    out << integer.getInt();
  return text;
}

namespace {
/// Writes one model.
class ModelWriter {
public:
  ModelWriter(func::FuncOp model, InitializerReader reader, const OnnxModelOptions &options, StringRef path)
      : model(model), reader(reader), options(options), path(path), graph(*proto.mutable_graph()), nodes(graph) {}

  LogicalResult write(OnnxModelSummary *summary);

private:
  void writeHeader();
  LogicalResult writeInputs();
  LogicalResult writeOutputs();
  LogicalResult writeWeight(unsigned argument, StringRef name);
  void writeDefault(BindingInterface binding, RankedTensorType type, StringRef name);
  LogicalResult writeFile();
  void describe(BindingInterface binding, ::onnx::ValueInfoProto &info);
  /// Where weights beside the model go; opened on first use.
  llvm::ToolOutputFile *openData();
  bool fileHolds(unsigned argument) {
    auto binding = model.getArgAttrOfType<BindingInterface>(argument, bindingAttrName);
    return binding.isFromFile() && model.getArgAttr(argument, "onnx.initializer");
  }

  func::FuncOp model;
  InitializerReader reader;
  const OnnxModelOptions &options;
  StringRef path;
  ::onnx::ModelProto proto;
  ::onnx::GraphProto &graph;
  OnnxGraphWriter nodes;
  std::unique_ptr<llvm::ToolOutputFile> data;
  uint64_t weightBytes = 0;
  bool external = false;
};
} // namespace

static uint64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

void ModelWriter::writeHeader() {
  proto.set_ir_version(10);
  proto.set_producer_name("lowtide");
  ::onnx::OperatorSetIdProto *opset = proto.add_opset_import();
  opset->set_domain("");
  auto version = model->getAttrOfType<IntegerAttr>("onnx.opset");
  opset->set_version(version ? version.getInt() : exportOpset);
  llvm::StringSet<> domains;
  model.walk([&](lowtide::onnx::NodeOp op) {
    if (op.getDomain().empty() || !domains.insert(op.getDomain()).second)
      return;
    ::onnx::OperatorSetIdProto *other = proto.add_opset_import();
    other->set_domain(op.getDomain().str());
    other->set_version(op.getVersion());
  });
  auto entry = model->getAttrOfType<StringAttr>("lowtide.entry");
  graph.set_name(entry ? entry.str() : model.getSymName().str());
  addMetadata(proto, "lowtide.entry", graph.name());
  // train.optimizer, train.schedule: one entry for each of their settings.
  for (NamedAttribute attribute : model->getParentOfType<ModuleOp>()->getDiscardableAttrs())
    if (auto settings = dyn_cast<DictionaryAttr>(attribute.getValue());
        settings && attribute.getName().getValue().starts_with("train."))
      for (NamedAttribute setting : settings)
        addMetadata(
            proto,
            ("lowtide." + attribute.getName().getValue().drop_front(6) + "." + setting.getName().getValue()).str(),
            textOf(setting.getValue()));
}

void ModelWriter::describe(BindingInterface binding, ::onnx::ValueInfoProto &info) {
  addMetadata(info, "lowtide.binding", stringify(binding.getBindingKind()));
  addMetadata(info, "lowtide.name", binding.getName().getValue());
}

llvm::ToolOutputFile *ModelWriter::openData() {
  if (data)
    return data.get();
  std::error_code error;
  data = std::make_unique<llvm::ToolOutputFile>((path + ".data").str(), error, llvm::sys::fs::OF_None);
  if (!error)
    return data.get();
  model.emitError("cannot write '") << path << ".data': " << error.message();
  return nullptr;
}

LogicalResult ModelWriter::writeWeight(unsigned argument, StringRef name) {
  auto type = cast<RankedTensorType>(model.getArgument(argument).getType());
  auto initializer = model.getArgAttrOfType<StringAttr>(argument, "onnx.initializer");
  ::onnx::TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(name.str());
  tensor.set_data_type(static_cast<int32_t>(getOnnxDataType(type.getElementType())));
  for (int64_t extent : type.getShape())
    tensor.add_dims(extent);
  uint64_t expected = bytesOf(type), found = 0;
  // A tensor that may be f32 in the file alone is collected, all others pass through.
  const WeightConversion conversion(type.getElementType(),
                                    model.getArgAttrOfType<DictionaryAttr>(argument, train::codedAttrName));
  llvm::ToolOutputFile *out = external ? openData() : nullptr;
  if (external && !out)
    return failure();
  uint64_t offset = out ? out->os().tell() : 0;
  std::string bytes;
  if (failed(reader(initializer.getValue(), [&](ArrayRef<char> piece) {
        found += piece.size();
        if (out && !conversion)
          out->os().write(piece.data(), piece.size());
        else
          bytes.append(piece.begin(), piece.end());
      })))
    return failure();
  if (conversion) {
    if (std::string fault = conversion.apply(bytes, expected); !fault.empty())
      return model.emitError("initializer '") << initializer.getValue() << "' " << fault;
    found = bytes.size();
    if (out)
      out->os() << bytes;
  }
  if (found != expected)
    return model.emitError("initializer '")
           << initializer.getValue() << "' has " << found << " bytes; '" << name << "' needs " << expected;
  if (!out) {
    tensor.set_raw_data(std::move(bytes));
    return success();
  }
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  auto entry = [&](StringRef key, const std::string &value) {
    ::onnx::StringStringEntryProto *added = tensor.add_external_data();
    added->set_key(key.str());
    added->set_value(value);
  };
  entry("location", (llvm::sys::path::filename(path) + ".data").str());
  entry("offset", std::to_string(offset));
  entry("length", std::to_string(found));
  return success();
}

/// Scalars that have a value for want of a better one: the schedule's first rate, seed and row 0.
void ModelWriter::writeDefault(BindingInterface binding, RankedTensorType type, StringRef name) {
  std::string_view scalar = binding.getName().getValue();
  double value = 0.0;
  if (scalar == rateScalar) {
    auto schedule = model->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>("train.schedule");
    auto rate = schedule ? schedule.getAs<FloatAttr>("lr") : FloatAttr();
    if (!rate)
      return;
    value = rate.getValueAsDouble();
  } else if (scalar != seedScalar && scalar != rowScalar) {
    return;
  }
  ::onnx::TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(name.str());
  tensor.set_data_type(static_cast<int32_t>(getOnnxDataType(type.getElementType())));
  if (type.getElementType().isF32())
    tensor.add_float_data(static_cast<float>(value));
  else if (type.getElementType().isF64())
    tensor.add_double_data(value);
  else
    tensor.add_int64_data(0);
}

LogicalResult ModelWriter::writeInputs() {
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    auto binding = model.getArgAttrOfType<BindingInterface>(i, bindingAttrName);
    if (!binding)
      return model.emitError("argument ") << i << " has no binding: its name and kind are unknown";
    if (fileHolds(i))
      weightBytes += bytesOf(cast<RankedTensorType>(model.getArgument(i).getType()));
  }
  external = options.weights && weightBytes > options.embedLimit;
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    auto binding = model.getArgAttrOfType<BindingInterface>(i, bindingAttrName);
    auto type = cast<RankedTensorType>(model.getArgument(i).getType());
    std::string name = nodes.uniqueName(binding.getName().getValue());
    nodes.name(model.getArgument(i), name);
    ::onnx::ValueInfoProto &info = *graph.add_input();
    describeValue(name, type, info);
    describe(binding, info);
    BindingKind kind = binding.getBindingKind();
    if (kind == BindingKind::Batch)
      addMetadata(info, "lowtide.batch_dim", std::to_string(binding.getBatchDim()));
    if (kind == BindingKind::State && !binding.isFromFile())
      addMetadata(info, "lowtide.initial", printNumber(binding.getInitialValue()));
    if (kind == BindingKind::Scalar)
      writeDefault(binding, type, name);
    if (options.weights && fileHolds(i) && failed(writeWeight(i, name)))
      return failure();
  }
  return success();
}

LogicalResult ModelWriter::writeOutputs() {
  Operation *terminator = model.getBody().front().getTerminator();
  for (unsigned i = 0; i < model.getNumResults(); ++i) {
    auto binding = model.getResultAttrOfType<BindingInterface>(i, bindingAttrName);
    if (!binding)
      return model.emitError("result ") << i << " has no binding: its name and kind are unknown";
    StringRef suffix = isUpdated(binding.getBindingKind()) ? ".new" : "";
    std::string name = nodes.uniqueName(binding.getName().getValue() + suffix);
    nodes.name(terminator->getOperand(i), name);
    ::onnx::ValueInfoProto &info = *graph.add_output();
    describeValue(name, cast<RankedTensorType>(terminator->getOperand(i).getType()), info);
    describe(binding, info);
  }
  return success();
}

LogicalResult ModelWriter::writeFile() {
  std::error_code error;
  llvm::ToolOutputFile out(path, error, llvm::sys::fs::OF_None);
  if (error)
    return model.emitError("cannot write '") << path << "': " << error.message();
  if (proto.ByteSizeLong() > uint64_t(INT32_MAX))
    return model.emitError("the model takes ") << proto.ByteSizeLong() << " bytes; a file holds at most 2 GiB";
  std::string bytes;
  if (!proto.SerializeToString(&bytes))
    return model.emitError("the model cannot be serialized");
  out.os() << bytes;
  out.keep();
  if (data)
    data->keep();
  return success();
}

LogicalResult ModelWriter::write(OnnxModelSummary *summary) {
  writeHeader();
  if (failed(writeInputs()) || failed(writeOutputs()))
    return failure();
  nodes.writeNodes(model.getBody().front(), graph);
  for (auto function : model->getParentOfType<ModuleOp>().getOps<func::FuncOp>())
    if (function->hasAttr(onnxFunctionAttrName))
      OnnxGraphWriter::writeFunction(function, proto.opset_import(0).version(), *proto.add_functions());
  if (options.trainingInfo)
    if (std::string reason = partTrainingInfo(proto); !reason.empty())
      return model.emitError("unsupported: the step cannot be written as TrainingInfoProto: ") << reason;
  if (summary)
    *summary = {nodes.getNumNodes(), options.weights ? weightBytes : 0, external};
  return writeFile();
}

LogicalResult lowtide::writeOnnxModel(func::FuncOp model, InitializerReader reader, const OnnxModelOptions &options,
                                      StringRef path, OnnxModelSummary *summary) {
  return ModelWriter(model, reader, options, path).write(summary);
}
