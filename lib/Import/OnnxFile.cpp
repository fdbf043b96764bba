//===- OnnxFile.cpp - a model file, checked
//------------------------------------------===//

#include "lowtide/Import/OnnxFile.h"

#include "Branches.h"
#include "ExternalData.h"
#include "OnnxLibrary.h"
#include "PackedTensors.h"
#include "Spelling.h"
#include "StepSignature.h"
#include "WellFormed.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/NodeOrder.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "lowtide/Recover/Evidence.h"
#include "lowtide/Recover/Recover.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::ModelProto;
using ::onnx::TensorProto;

/// The oldest opset whose operators are read as they are; older models are
/// converted to it.
static constexpr int64_t oldestNativeOpset = 13;

OnnxFile::OnnxFile(MLIRContext &context, StringRef path, ImportLimits limits)
    : context(context), path(path.str()), limits(limits),
      report(std::make_unique<Report>(context, path, limits.errors)), model(std::make_unique<ModelProto>()) {}

OnnxFile::~OnnxFile() = default;

FailureKind OnnxFile::getFailure() const { return report->getFirst(); }

static int64_t standardOpset(const ModelProto &model) {
  for (const auto &opset : model.opset_import())
    if (opset.domain().empty() || opset.domain() == "ai.onnx")
      return opset.version();
  return 0;
}

int64_t OnnxFile::getOpset() const { return standardOpset(*model); }

LogicalResult OnnxFile::load() {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    report->error(FailureKind::Io, "cannot read the model: " + buffer.getError().message());
    return failure();
  }
  return loadBytes(ArrayRef<char>((*buffer)->getBufferStart(), (*buffer)->getBufferSize()));
}

LogicalResult OnnxFile::loadBytes(ArrayRef<char> bytes) {
  if (bytes.size() > limits.fileBytes) {
    report->error(FailureKind::BadInput,
                  "the file has " + Twine(bytes.size()) + " bytes, limit " + Twine(limits.fileBytes),
                  "store the weights as external data: onnx.save(model, path, "
                  "save_as_external_data=True)");
    return failure();
  }
  if (bytes.empty()) {
    report->error(FailureKind::BadInput, "the file is empty");
    return failure();
  }
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  // Each graph within a graph costs three messages (node, attribute, graph);
  // protobuf's limit guards the parse itself.
  coded.SetRecursionLimit(3 * limits.subgraphDepth + 10);
  if (!model->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    report->error(FailureKind::BadInput, "the file is no ONNX model: it is damaged, "
                                         "truncated, or nested deeper than " +
                                             Twine(limits.subgraphDepth) + " graphs");
    return failure();
  }
  return prepare();
}

LogicalResult OnnxFile::loadText(StringRef text) {
  if (std::string error = parseModelText(text.str(), *model); !error.empty()) {
    report->error(FailureKind::BadInput, "the text is no ONNX model: " + error);
    return failure();
  }
  return prepare();
}

LogicalResult OnnxFile::prepare() {
  normalizeSpelling(*model);
  std::string producer = model->producer_name();
  if (!model->producer_version().empty())
    producer += (producer.empty() ? "" : " ") + model->producer_version();
  // Build tags (`+cu132`) say nothing about the file.
  producer = StringRef(producer).split('+').first.take_front(80).str();
  headline = ("opset " + Twine(getOpset()) + ", IR " + Twine(model->ir_version()) +
              (producer.empty() ? std::string() : ", producer " + producer))
                 .str();

  if (model->has_graph())
    unpackInitializers(*model->mutable_graph(), getOpset());
  if (model->has_graph() && sortNodes(*model->mutable_graph(), limits.subgraphDepth))
    report->add({FindingKind::NodesReordered, model->graph().name()});
  if (failed(checkFunctions(*model, limits, *report)) || failed(checkWellFormed(*model, limits, *report)))
    return failure();
  if (failed(normalizeStep(*model, *report)) || (isStep(*model) && failed(checkWellFormed(*model, limits, *report))))
    return failure();
  if (failed(inlineFunctions()) || failed(upgrade()))
    return failure();
  if (!isStep(*model))
    originals = restoreNames(*model);
  if (std::vector<std::string> dropped = chooseBranches(*model->mutable_graph(), fixed); !dropped.empty())
    report->add({FindingKind::InputsDropped, dropped.front(), std::move(dropped)});
  liftConstants();
  if (!isStep(*model))
    lowerInputs();
  indexInitializers();
  if (!isStep(*model))
    unfold();
  return success();
}

/// Initializers that are listed as inputs as well, as files of IR 3 must: they are no inputs, and what is known of them
/// is kept where it is for others.
void OnnxFile::lowerInputs() {
  ::onnx::GraphProto &graph = *model->mutable_graph();
  llvm::StringSet<> held, described;
  for (const TensorProto &tensor : graph.initializer())
    held.insert(tensor.name());
  for (const auto &value : graph.value_info())
    described.insert(value.name());
  int kept = 0;
  for (int i = 0, e = graph.input_size(); i != e; ++i) {
    if (!held.contains(graph.input(i).name()))
      graph.mutable_input()->SwapElements(kept++, i);
    else if (described.insert(graph.input(i).name()).second)
      *graph.add_value_info() = graph.input(i);
  }
  graph.mutable_input()->DeleteSubrange(kept, graph.input_size() - kept);
}

void OnnxFile::indexInitializers() {
  initializers.clear();
  for (const TensorProto &tensor : model->graph().initializer())
    initializers[tensor.name()] = initializers[nameInFile(tensor.name())] = &tensor;
}

void OnnxFile::unfold() {
  unfolded = recoverProgram(
      *model->mutable_graph(), [&](const TensorProto &tensor) { return tryReadInitializer(tensor.name()); }, *report);
  indexInitializers();
}

LogicalResult OnnxFile::inlineFunctions() {
  if (model->functions_size() == 0)
    return success();
  if (std::string error = inlineLocalFunctions(*model); !error.empty()) {
    report->error(FailureKind::BadInput,
                  "the model's functions cannot be inlined: " + StringRef(error).take_front(500));
    return failure();
  }
  if (model->functions_size()) {
    report->errorAt(FailureKind::Unsupported, model->functions(0).name(),
                    "function " + quoteName(model->functions(0).name()) +
                        " uses operator sets that differ from the model's and "
                        "cannot be inlined");
    return failure();
  }
  return checkWellFormed(*model, limits, *report);
}

static int64_t countElements(const TensorProto &tensor) {
  return checkedElements({tensor.dims().data(), static_cast<size_t>(tensor.dims_size())}).value_or(0);
}

/// Whether the node is a constant whose value can become an initializer; one of `value_floats` then holds a tensor.
static bool isConstantTensor(const ::onnx::NodeProto &node) {
  return node.op_type() == "Constant" && node.domain().empty() && node.attribute_size() == 1 &&
         node.output_size() == 1 && !node.output(0).empty() &&
         llvm::is_contained({"value", "value_floats"}, StringRef(node.attribute(0).name()));
}

/// Takes the tensor out of a constant node.
static TensorProto takeTensor(::onnx::NodeProto &node) {
  ::onnx::AttributeProto &attribute = *node.mutable_attribute(0);
  TensorProto tensor;
  if (attribute.name() == "value") {
    tensor.Swap(attribute.mutable_t());
  } else {
    tensor.set_data_type(TensorProto::FLOAT);
    tensor.add_dims(attribute.floats_size());
    tensor.mutable_float_data()->Swap(attribute.mutable_floats());
  }
  tensor.set_name(node.output(0));
  return tensor;
}

static bool defines(const ::onnx::GraphProto &graph, StringRef name) {
  auto isCalled = [&](const auto &value) { return value.name() == name; };
  return llvm::any_of(graph.input(), isCalled) || llvm::any_of(graph.initializer(), isCalled) ||
         llvm::any_of(graph.node(), [&](const auto &node) { return llvm::is_contained(node.output(), name); });
}

/// What reads `name` in the graph, and in the graphs within it that have no value of that name, reads `other`.
static void renameReads(::onnx::GraphProto &graph, const std::string &name, const std::string &other) {
  for (auto &node : *graph.mutable_node()) {
    for (std::string &input : *node.mutable_input())
      input = input == name ? other : input;
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g() && !defines(attribute.g(), name))
        renameReads(*attribute.mutable_g(), name, other);
  }
}

/// Moves the vectors and matrices of floats that `inner`, a graph within another, and the graphs within it hold to
/// `outer`: a branch or a body reads a parameter in either place. What has a name that is elsewhere as well gets one of
/// its own. Constant nodes of up to `fewestFloats` elements stay, and what the graph hands out as it stands.
static void liftFrom(::onnx::GraphProto &inner, llvm::StringMap<unsigned> &names, ::onnx::GraphProto &outer,
                     int64_t fewestFloats) {
  std::vector<TensorProto> lifted;
  auto isParameter = [](const TensorProto &tensor, int64_t fewest) {
    return isFloatType(tensor.data_type()) && countElements(tensor) > fewest;
  };
  // A graph's result is computed in it.
  auto isResult = [&](StringRef name) {
    return llvm::any_of(inner.output(), [&](const auto &output) { return output.name() == name; });
  };
  int kept = 0;
  for (int i = 0, e = inner.initializer_size(); i != e; ++i)
    if (isParameter(inner.initializer(i), 1) && !isResult(inner.initializer(i).name()))
      lifted.emplace_back().Swap(inner.mutable_initializer(i));
    else
      inner.mutable_initializer()->SwapElements(kept++, i);
  inner.mutable_initializer()->DeleteSubrange(kept, inner.initializer_size() - kept);
  kept = 0;
  for (int i = 0, e = inner.node_size(); i != e; ++i) {
    ::onnx::NodeProto &node = *inner.mutable_node(i);
    if (isConstantTensor(node) && !isResult(node.output(0)) &&
        (node.attribute(0).name() == "value" ? isParameter(node.attribute(0).t(), fewestFloats)
                                             : node.attribute(0).floats_size() > fewestFloats)) {
      lifted.push_back(takeTensor(node));
      continue;
    }
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        liftFrom(*attribute.mutable_g(), names, outer, fewestFloats);
    inner.mutable_node()->SwapElements(kept++, i);
  }
  inner.mutable_node()->DeleteSubrange(kept, inner.node_size() - kept);
  for (TensorProto &tensor : lifted) {
    const std::string name = tensor.name();
    if (names.lookup(name) > 1) {
      std::string own = name + "@" + inner.name();
      while (!names.try_emplace(own, 1).second)
        own += "#";
      renameReads(inner, name, own);
      tensor.set_name(own);
    }
    outer.add_initializer()->Swap(&tensor);
  }
}

/// Large `Constant` nodes become initializers: data stay out of the IR, and some exporters keep weights this way, as
/// cleaners keep what they evaluated. In their files, which have no large initializers, so do small vectors: biases.
/// The same for the graphs within the graph, branches of `If` and bodies of `Loop` and `Scan`, and their initializers:
/// who is a parameter is asked of the graph's.
void OnnxFile::liftConstants() {
  ::onnx::GraphProto &graph = *model->mutable_graph();
  bool hasWeights = llvm::any_of(graph.initializer(), [&](const TensorProto &tensor) {
    return isFloatType(tensor.data_type()) && countElements(tensor) > limits.constantFloats;
  });
  const int64_t fewestFloats = hasWeights ? limits.constantFloats : 1;
  auto isLarge = [&](const ::onnx::NodeProto &node) {
    if (!isConstantTensor(node))
      return false;
    if (node.attribute(0).name() == "value_floats")
      return node.attribute(0).floats_size() > fewestFloats;
    const TensorProto &tensor = node.attribute(0).t();
    // What a cleaner evaluated goes by the result's name, and may be of a parameter, however small.
    const int64_t fewest = isEvaluatedName(node.output(0)) ? 1 : fewestFloats;
    return tensor.data_location() == TensorProto::EXTERNAL || // read where other data of that kind are
           countElements(tensor) > (isFloatType(tensor.data_type()) ? fewest : limits.constantIntegers);
  };
  int kept = 0;
  for (int i = 0, e = graph.node_size(); i != e; ++i) {
    if (isLarge(graph.node(i))) {
      *graph.add_initializer() = takeTensor(*graph.mutable_node(i));
      continue;
    }
    graph.mutable_node()->SwapElements(kept++, i);
  }
  graph.mutable_node()->DeleteSubrange(kept, graph.node_size() - kept);
  if (isStep(*model))
    return;
  llvm::StringMap<unsigned> names;
  countNames(graph, names);
  for (auto &node : *graph.mutable_node())
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        liftFrom(*attribute.mutable_g(), names, graph, fewestFloats);
}

/// Metadata of nodes and values, keyed by the values' names, which the version
/// converter keeps.
static void copyMetadata(const ModelProto &from, ModelProto &to) {
  *to.mutable_graph()->mutable_metadata_props() = from.graph().metadata_props();
  llvm::StringMap<const ::onnx::NodeProto *> producers;
  for (const auto &node : from.graph().node())
    if (node.output_size())
      producers[node.output(0)] = &node;
  for (auto &node : *to.mutable_graph()->mutable_node())
    if (const auto *original = node.output_size() ? producers.lookup(node.output(0)) : nullptr)
      *node.mutable_metadata_props() = original->metadata_props();
  llvm::StringMap<const ::onnx::ValueInfoProto *> values;
  for (const auto &value : from.graph().value_info())
    values[value.name()] = &value;
  for (auto &value : *to.mutable_graph()->mutable_value_info())
    if (const auto *original = values.lookup(value.name()))
      *value.mutable_metadata_props() = original->metadata_props();
}

/// The first input whose rank the converter changed (`Scan` of opset 8 had a batch dimension); empty if none.
static std::string findChangedInput(const ModelProto &from, const ModelProto &to) {
  auto rank = [](const ::onnx::ValueInfoProto &input) {
    return input.type().tensor_type().has_shape() ? input.type().tensor_type().shape().dim_size() : -1;
  };
  llvm::StringMap<int> ranks;
  for (const auto &input : from.graph().input())
    ranks[input.name()] = rank(input);
  for (const auto &input : to.graph().input())
    if (auto old = ranks.find(input.name()); old != ranks.end() && old->second != rank(input))
      return input.name();
  return "";
}

/// What `Upsample` and the first `Resize` compute, written down: ONNX's converter leaves attributes of later versions
/// at their defaults, which read other elements.
static void stateOldResizing(::onnx::GraphProto &graph) {
  auto state = [](::onnx::NodeProto &node, const char *name, const char *value) {
    if (llvm::any_of(node.attribute(), [&](const auto &attribute) { return attribute.name() == name; }))
      return;
    ::onnx::AttributeProto &attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(::onnx::AttributeProto::STRING);
    attribute.set_s(value);
  };
  for (auto &node : *graph.mutable_node()) {
    if (node.op_type() == "Resize" && node.domain().empty()) {
      state(node, "coordinate_transformation_mode", "asymmetric");
      state(node, "nearest_mode", "floor");
    }
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        stateOldResizing(*attribute.mutable_g());
  }
}

LogicalResult OnnxFile::upgrade() {
  constexpr int64_t firstOptionsOfResize = 11, firstLoneInitializers = 4;
  int64_t opset = getOpset();
  if (opset == 0 || opset >= oldestNativeOpset)
    return success();
  ModelProto original = *model;
  // Files of IR 3 list initializers as inputs. Those that do not are read everywhere but by the converter.
  model->set_ir_version(std::max<int64_t>(model->ir_version(), firstLoneInitializers));
  if (std::string error = convertOpset(*model, oldestNativeOpset); !error.empty()) {
    report->error(FailureKind::Unsupported,
                  "opset " + Twine(opset) + " is older than " + Twine(oldestNativeOpset) +
                      ", and ONNX's converter cannot upgrade this model: " + StringRef(error).take_front(500),
                  "export it again with opset_version=20");
    return failure();
  }
  if (std::string input = findChangedInput(original, *model); !input.empty()) {
    report->errorAt(FailureKind::Unsupported, input,
                    "opset " + Twine(opset) + " is older than " + Twine(oldestNativeOpset) +
                        ", and ONNX's converter changes the shape of input " + quoteName(input) +
                        " when it upgrades this model",
                    "export it again with opset_version=20");
    return failure();
  }
  if (opset < firstOptionsOfResize)
    stateOldResizing(*model->mutable_graph());
  copyMetadata(original, *model);
  headline += ", upgraded to opset " + std::to_string(getOpset());
  return checkWellFormed(*model, limits, *report);
}

const TensorProto *OnnxFile::findInitializer(StringRef name) const { return initializers.lookup(name); }

std::string OnnxFile::nameInFile(StringRef name) const {
  auto original = originals.find(name);
  return original == originals.end() ? name.str() : original->second;
}

bool OnnxFile::isEmbedded(StringRef name) const {
  const TensorProto *tensor = findInitializer(name);
  return tensor && tensor->data_location() != TensorProto::EXTERNAL;
}

LogicalResult OnnxFile::readInitializer(StringRef name, llvm::function_ref<void(ArrayRef<char>)> sink) {
  if (const TensorProto *tensor = findInitializer(name))
    return streamTensor(*tensor, *report, sink);
  report->errorAt(FailureKind::BadInput, name, "the model has no initializer " + quoteName(name));
  return failure();
}

LogicalResult OnnxFile::checkInitializer(StringRef name) {
  return isEmbedded(name) ? success() : readInitializer(name, /*sink=*/nullptr);
}

std::optional<std::string> OnnxFile::tryReadInitializer(StringRef name) const {
  const TensorProto *tensor = findInitializer(name);
  Report silent(context, path, limits.errors);
  silent.mute();
  std::string bytes;
  if (!tensor ||
      failed(streamTensor(*tensor, silent, [&](ArrayRef<char> piece) { bytes.append(piece.begin(), piece.end()); })))
    return std::nullopt;
  return bytes;
}

LogicalResult OnnxFile::streamTensor(const TensorProto &tensor, Report &report,
                                     llvm::function_ref<void(ArrayRef<char>)> sink) const {
  if (tensor.data_location() != TensorProto::EXTERNAL) {
    if (tensor.has_raw_data()) {
      sink(ArrayRef<char>(tensor.raw_data().data(), tensor.raw_data().size()));
    } else {
      std::string bytes = embeddedBytes(tensor);
      sink(ArrayRef<char>(bytes.data(), bytes.size()));
    }
    return success();
  }
  std::optional<ExternalRange> range = parseExternalRange(tensor, report);
  std::optional<int64_t> elements = checkedElements({tensor.dims().data(), static_cast<size_t>(tensor.dims_size())});
  if (!range || !elements)
    return failure();
  const uint64_t bytes = *checkedBytes(*elements, tensor.data_type());
  return sink ? streamExternal(path, tensor.name(), *range, bytes, report, sink)
              : checkExternal(path, tensor.name(), *range, bytes, report);
}
