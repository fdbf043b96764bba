//===- StepSignature.cpp - models that hold a whole training step ---------===//
//
// Metadata keys are those that lib/Serialize/OnnxModel.cpp writes.
//
//===----------------------------------------------------------------------===//

#include "StepSignature.h"

#include "StepFinder.h"
#include "lowtide/OnnxModel/NodeNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::ValueInfoProto;

static constexpr llvm::StringLiteral entryKey = "lowtide.entry";

template <typename Message> static std::optional<std::string> findProp(const Message &message, StringRef key) {
  for (const auto &prop : message.metadata_props())
    if (prop.key() == key)
      return prop.value();
  return std::nullopt;
}

bool lowtide::isStep(const ModelProto &model) { return findProp(model, entryKey) == std::string("train"); }

std::optional<StepBinding> lowtide::readBinding(const ValueInfoProto &value) {
  std::optional<std::string> kind = findProp(value, "lowtide.binding");
  if (!kind)
    return std::nullopt;
  StepBinding binding;
  binding.kind = *kind;
  binding.name = findProp(value, "lowtide.name").value_or(value.name());
  if (std::optional<std::string> initial = findProp(value, "lowtide.initial"))
    (void)StringRef(*initial).getAsDouble(binding.initial);
  if (std::optional<std::string> dim = findProp(value, "lowtide.batch_dim"))
    (void)StringRef(*dim).getAsInteger(10, binding.batchDim);
  return binding;
}

std::optional<StepBinding> lowtide::findInputBinding(const ModelProto &model, StringRef name) {
  for (const ValueInfoProto &input : model.graph().input())
    if (input.name() == name)
      return readBinding(input);
  return std::nullopt;
}

static void removeInitializer(GraphProto &graph, StringRef name) {
  auto &tensors = *graph.mutable_initializer();
  for (int i = 0; i < tensors.size(); ++i)
    if (tensors[i].name() == name) {
      tensors.DeleteSubrange(i, 1);
      return;
    }
}

static LogicalResult checkInput(const ValueInfoProto &input, const StepBinding &binding, llvm::StringSet<> &names,
                                Report &report) {
  static constexpr llvm::StringLiteral kinds[] = {"param", "state", "constant", "batch", "scalar"};
  auto refuse = [&](const Twine &message) {
    report.errorAt(FailureKind::BadInput, input.name(), "input " + quoteName(input.name()) + message);
    return failure();
  };
  if (!llvm::is_contained(kinds, StringRef(binding.kind)))
    return refuse(" has the binding " + quoteName(binding.kind) + ", which no input can have");
  if (!names.insert(binding.name).second)
    return refuse(" is bound to " + quoteName(binding.name) + ", and so is another input");
  return success();
}

LogicalResult lowtide::normalizeStep(ModelProto &model, Report &report) {
  if (!isStep(model)) {
    if (model.training_info_size() == 0 && !hasUpdates(model.graph()))
      return success();
    if (failed(StepFinder(model, report).run()))
      return failure();
  } else if (failed(StepFinder(model, report).joinAlgorithm())) {
    return failure(); // our own step in two graphs
  }
  if (!isStep(model))
    return success();
  // State that starts as one number needs no tensor.
  for (const ValueInfoProto &input : model.graph().input())
    if (findProp(input, "lowtide.initial"))
      removeInitializer(*model.mutable_graph(), input.name());
  addGradientOutputs(model);
  llvm::StringSet<> names;
  for (const ValueInfoProto &input : model.graph().input())
    if (std::optional<StepBinding> binding = readBinding(input))
      if (failed(checkInput(input, *binding, names, report)))
        return failure();
  // A scalar's value is one for want of a better; the runtime has a better one.
  for (const ValueInfoProto &input : model.graph().input())
    if (std::optional<StepBinding> binding = readBinding(input); binding && binding->kind == "scalar")
      removeInitializer(*model.mutable_graph(), input.name());
  return success();
}

static DictionaryAttr toAttribute(const StepBinding &binding, Builder &builder) {
  return builder.getDictionaryAttr({builder.getNamedAttr("kind", builder.getStringAttr(binding.kind)),
                                    builder.getNamedAttr("name", builder.getStringAttr(binding.name)),
                                    builder.getNamedAttr("initial", builder.getF64FloatAttr(binding.initial)),
                                    builder.getNamedAttr("batch_dim", builder.getI64IntegerAttr(binding.batchDim))});
}

void lowtide::annotateStep(const ModelProto &model, func::FuncOp function) {
  Builder builder(function.getContext());
  llvm::StringMap<StepBinding> inputs, outputs;
  for (const ValueInfoProto &input : model.graph().input())
    if (std::optional<StepBinding> binding = readBinding(input))
      inputs[input.name()] = *binding;
  for (const ValueInfoProto &output : model.graph().output())
    if (std::optional<StepBinding> binding = readBinding(output))
      outputs[output.name()] = *binding;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, "onnx.input");
    if (!name)
      name = function.getArgAttrOfType<StringAttr>(i, "onnx.initializer");
    if (auto found = name ? inputs.find(name.getValue()) : inputs.end(); found != inputs.end())
      function.setArgAttr(i, "onnx.binding", toAttribute(found->second, builder));
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto name = function.getResultAttrOfType<StringAttr>(i, "onnx.output"))
      if (auto found = outputs.find(name.getValue()); found != outputs.end())
        function.setResultAttr(i, "onnx.binding", toAttribute(found->second, builder));
  NamedAttrList settings;
  for (const auto &prop : model.metadata_props())
    if (StringRef key = prop.key();
        key.consume_front("lowtide.") && (key.starts_with("schedule.") || key.starts_with("optimizer.")))
      settings.set(key, builder.getStringAttr(prop.value()));
  if (findProp(model, "lowtide.gradients"))
    function->setAttr("onnx.given_gradients", builder.getUnitAttr());
  function->setAttr("onnx.step", settings.getDictionary(function.getContext()));
}
