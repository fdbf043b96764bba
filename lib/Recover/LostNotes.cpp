//===- LostNotes.cpp - files of PyTorch's current exporter without its notes ------===//
//
// Cleaners (onnxslim, onnx-simplifier, onnxruntime, ONNX's version converter) drop the metadata of nodes and graphs,
// and with them the list of the program's parameters and buffers, its modules, and all that is detached or assigned.
// Initializers that kept their names tell a part of it. The rest cannot be told, and is said.
//
//===----------------------------------------------------------------------===//

#include "LostNotes.h"

#include "lowtide/OnnxModel/TensorData.h"

#include "ElementFunctions.h"
#include "Makers.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

/// Whether the node gives a value that was one of several results of an operation (`getitem_4`), and is no part of such
/// an operation (`node_native_dropout__1`): a cleaner took the operation away and left its result's name.
static bool tookResultName(const NodeProto &node) {
  if (node.output_size() != 1 || operationName(node.output(0)) != "getitem" || StringRef(node.name()).contains("__"))
    return false;
  StringRef name = node.name();
  return !name.consume_front("node_") || (!name.empty() && !isUpper(name[0]));
}

static StringRef describeCleaner(Cleaner cleaner) {
  switch (cleaner) {
  case Cleaner::None:
    return "";
  case Cleaner::Simplifier:
    return "onnx-simplifier";
  case Cleaner::Extractor:
    return "onnx.utils.extract_model";
  case Cleaner::Merger:
    return "onnx.compose.merge_models";
  case Cleaner::OnnxRuntime:
    return "onnxruntime";
  case Cleaner::OnnxSlim:
    return "onnxslim";
  case Cleaner::Untraced:
    return "a cleaner (onnxslim, ONNX's version converter …)";
  }
  return "";
}

Cleaner lowtide::findCleaner(const ModelProto &model) {
  const GraphProto &graph = model.graph();
  const bool isCurrent =
      any_of(graph.node(),
             [](const NodeProto &node) { return namesItsValue(node) || !findProgramNote(node).empty(); }) ||
      (model.producer_name() == "pytorch" && isOfCurrentExporter(graph));
  if (Signature(graph).isPresent() || !isCurrent)
    return Cleaner::None;
  if (any_of(model.metadata_props(), [](const auto &prop) { return StringRef(prop.key()).starts_with("onnxsim."); }))
    return Cleaner::Simplifier;
  // These two sign what they write.
  for (Cleaner signer : {Cleaner::Extractor, Cleaner::Merger})
    if (StringRef(model.producer_version()).contains(describeCleaner(signer)))
      return signer;
  if (any_of(model.opset_import(), [](const auto &set) { return set.domain() == "com.microsoft.nchwc"; }))
    return Cleaner::OnnxRuntime;
  if (any_of(graph.node(), [](const NodeProto &node) {
        return tookResultName(node) || (node.output_size() && StringRef(node.output(0)).ends_with("_gemm_out"));
      }))
    return Cleaner::OnnxSlim;
  return Cleaner::Untraced;
}

bool lowtide::isNameOfValue(StringRef name) {
  if (name.contains('.'))
    return false;
  // A program may call a tensor of its own `linear_weight`.
  if (StringRef stem = name; stem.consume_back("_weight") || stem.consume_back("_bias"))
    return StringSwitch<bool>(operationName(stem))
        .Cases({"val", "matmul", "getitem"}, true)
        .Cases({"linear", "addmm", "mm", "add", "mul", "sub", "div"}, operationNumber(stem) != 0)
        .Default(false);
  StringRef operation = operationName(name);
  if (movesElements(name) || isElementOperation(operation))
    return true;
  return StringSwitch<bool>(operation)
      .Cases({"linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "outer", "where", "masked_fill",
              "linalg_vector_norm", "norm", "_weight_norm", "_weight_norm_interface"},
             true)
      .Cases({"select_scatter", "slice_scatter", "index_put", "scatter", "scatter_add", "index_add", "tril", "triu",
              "diagonal", "cat", "stack"},
             true)
      .Cases({"sum", "mean", "amax", "softmax", "_softmax", "flip", "roll", "cumsum", "pad", "constant_pad_nd",
              "repeat_interleave", "layer_norm", "mul", "add"},
             true)
      .Case("tmp", // steps of an operation, as c · w of `addcmul(x, w, y, value=c)`
            true)
      .Default(operation.starts_with("upsample_") || operation.starts_with("_upsample_"));
}

namespace {
/// Values, and what is said of each: `getitem_4 (node_linear_1)`.
class NamedValues {
public:
  /// `nodes`: who gives it, or who reads it.
  void add(StringRef value, StringRef nodes = "") {
    std::string text = nodes.empty() ? value.str() : (value + " (" + nodes + ")").str();
    if (is_contained(texts, text))
      return;
    names.push_back(value.str());
    texts.push_back(std::move(text));
  }
  void warn(Report &report, FindingKind kind) const {
    if (!names.empty())
      report.add({kind, names.front(), names, {{"names", join(texts, ", ")}}});
  }

private:
  std::vector<std::string> names, texts;
};
} // namespace

static NamedValues findRemovedDropout(const ModelProto &model) {
  const GraphProto &graph = model.graph();
  NamedValues found;
  StringSet<> known;
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      known.insert(output);
  for (const auto &tensor : graph.initializer())
    known.insert(tensor.name());
  auto isDropout = [](StringRef value) { return findEvaluatedOperator(value) == "Dropout"; };
  auto moduleOfValue = [](StringRef value) {
    std::string module = findScope(value).value_or("");
    return module.empty() ? value.str() : module;
  };
  const Cleaner cleaner = findCleaner(model);
  for (const NodeProto &node : graph.node()) {
    if (node.op_type() == "Dropout" || node.output_size() != 1)
      continue;
    if (isDropout(node.output(0)))
      found.add(moduleOfValue(node.output(0)));
    // A convolution that gives such a value has a batch norm in it, and so has what onnxruntime fused.
    else if (cleaner != Cleaner::None && cleaner != Cleaner::OnnxRuntime && tookResultName(node) &&
             !StringRef(node.op_type()).starts_with("Conv"))
      found.add(node.output(0), node.name());
  }
  // onnxruntime lets those that read it read what was dropped, and leaves the value's type in its list.
  for (const auto &value : graph.value_info())
    if (!known.contains(value.name()) &&
        (isDropout(value.name()) || (cleaner != Cleaner::None && operationName(value.name()) == "getitem")))
      found.add(moduleOfValue(value.name()));
  return found;
}

void lowtide::reportRemovedDropout(ModelView &file) {
  findRemovedDropout(file.getModel()).warn(file.getReport(), FindingKind::DropoutRemoved);
}

/// Whether a cleaner fuses no operation by element into one of this kind, and none of these into its result.
static bool keepsItsResult(StringRef op) {
  return is_contained({"SoftmaxCrossEntropyLoss",
                       "NegativeLogLikelihoodLoss",
                       "ReduceMean",
                       "ReduceSum",
                       "ReduceMax",
                       "Relu",
                       "LeakyRelu",
                       "Elu",
                       "Sigmoid",
                       "HardSigmoid",
                       "Tanh",
                       "Softplus",
                       "Softmax",
                       "LogSoftmax",
                       "Exp",
                       "Log",
                       "Abs",
                       "Sin",
                       "Cos",
                       "MaxPool",
                       "AveragePool",
                       "GlobalAveragePool"},
                      op);
}

/// What programs compute of a learned number: of constants, a cleaner evaluates other operations (a root of a size).
static bool isOfLearnedNumber(StringRef op) {
  return is_contained({"Abs", "Add", "Clip", "Max", "Min", "Mul", "Neg", "Relu", "Sub"}, op);
}

/// Results of sums and products that a cleaner removed, for they did nothing to the values of the file, and numbers
/// that it computed by them. PyTorch's old exporter calls results after their operators.
static std::vector<std::string> findRemovedArithmetic(const ::onnx::GraphProto &graph) {
  std::vector<std::string> removed;
  for (const NodeProto &node : graph.node()) {
    if (node.output_size() != 1 || !node.domain().empty())
      continue;
    StringRef op = findEvaluatedOperator(node.output(0));
    const bool isResult = keepsItsResult(node.op_type()) && is_contained({"Add", "Sub", "Mul", "Div", "Pow"}, op);
    const bool isNumber = node.op_type() == "Constant" && isOfLearnedNumber(op) && node.attribute_size() == 1 &&
                          node.attribute(0).has_t() && isFloatType(node.attribute(0).t().data_type()) &&
                          all_of(node.attribute(0).t().dims(), [](int64_t dim) { return dim == 1; });
    if (isResult || isNumber)
      removed.push_back(node.output(0));
  }
  for (const ::onnx::TensorProto &tensor : graph.initializer())
    if (isFloatType(tensor.data_type()) && all_of(tensor.dims(), [](int64_t dim) { return dim == 1; }) &&
        isOfLearnedNumber(findEvaluatedOperator(tensor.name())))
      removed.push_back(tensor.name());
  return removed;
}

/// Modules of group norms that have no scale, or no shift. PyTorch's old exporter writes both, for a norm without
/// parameters, too, after the instance norm of the groups.
static std::vector<std::string> findBareGroupNorms(const ::onnx::GraphProto &graph) {
  const Makers makers(graph);
  StringSet<> scaled, shifted; // modules with such a node
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output()) {
      std::optional<std::string> module = findScope(output);
      StringRef op = findEvaluatedOperator(output);
      if (module && (op == "Mul" || op == "Add"))
        (op == "Mul" ? scaled : shifted).insert(*module);
    }
  std::vector<std::string> bare;
  for (const NodeProto &node : graph.node()) {
    if (node.op_type() != "InstanceNormalization" || node.input_size() != 3 || node.output_size() != 1)
      continue;
    std::optional<std::string> module = findScope(node.output(0));
    const NodeProto *groups = makers.find(node.input(0));
    const bool hasGroups = groups && groups->op_type() == "Reshape" && findScope(groups->output(0)) == module;
    if (hasGroups && module && !module->empty() && (!scaled.contains(*module) || !shifted.contains(*module)))
      bare.push_back(*module);
  }
  return bare;
}

/// Weights and biases of layers by which onnxslim did what the program does to a layer's result. It calls them after
/// that: `add_weight_fused`.
static std::vector<std::string> findScaledLayers(const ::onnx::GraphProto &graph) {
  std::vector<std::string> scaled;
  for (const NodeProto &node : graph.node())
    for (StringRef input : node.input())
      if (node.op_type() == "Gemm" && (input.ends_with("_weight_fused") || input.ends_with("_bias_fused")) &&
          (input.starts_with("/") || !input.contains('.')))
        scaled.push_back(input.str());
  return scaled;
}

void lowtide::reportRemovedArithmetic(ModelView &file) {
  if (std::vector<std::string> scaled = findScaledLayers(file.getModel().graph()); !scaled.empty())
    file.getReport().add({FindingKind::LayersScaled, scaled.front(), scaled});
  if (std::vector<std::string> bare = findBareGroupNorms(file.getModel().graph()); !bare.empty())
    file.getReport().add({FindingKind::NormScalesRemoved, bare.front(), bare});
  if (std::vector<std::string> removed = findRemovedArithmetic(file.getModel().graph()); !removed.empty())
    file.getReport().add({FindingKind::ArithmeticRemoved, removed.front(), removed});
}

/// Whether a cleaner wrote a file of PyTorch's old exporter again: that states no types of inner values.
static bool isOldAndCleaned(const ModelProto &model) {
  return model.producer_name() == "pytorch" && model.graph().value_info_size() != 0 &&
         any_of(model.graph().node(), [](const NodeProto &node) { return StringRef(node.name()).starts_with("/"); });
}

void lowtide::reportLostNotes(ModelView &file, ArrayRef<InitializerInfo> infos) {
  const Cleaner cleaner = findCleaner(file.getModel());
  if (cleaner == Cleaner::None && !isOldAndCleaned(file.getModel()))
    return;
  const bool areNodesNoted =
      any_of(file.getModel().graph().node(), [](const NodeProto &node) { return !findProgramNote(node).empty(); });
  if (cleaner != Cleaner::None)
    file.getReport().add({areNodesNoted ? FindingKind::SignatureRemoved : FindingKind::NotesRemoved,
                          "",
                          {},
                          {{"a cleaner", describeCleaner(cleaner).str()}}});
  // In files of the old exporter modules tell whose a layer's weight is.
  auto mayBeMerged = [&](const InitializerUse &use) {
    return cleaner != Cleaner::None || operandLeaf(*use.node, use.operand).empty();
  };
  NamedValues unnamed, shared;
  for (const InitializerInfo &info : infos) {
    if (info.role != InitializerRole::Parameter || info.viewOf || info.reason.is(RoleReason::UserSaid))
      continue;
    SmallVector<StringRef> readers;
    for (const InitializerUse &use : info.uses)
      readers.push_back(use.node->name().empty() && use.node->output_size() ? StringRef(use.node->output(0))
                                                                            : StringRef(use.node->name()));
    if (cleaner != Cleaner::None && info.name == info.tensor && isNameOfValue(info.name))
      unnamed.add(info.name, join(readers, ", "));
    else if (readers.size() > 1 && all_of(info.uses, mayBeMerged) && !file.findUnfolded(info.tensor) &&
             info.getNumElements() > 0 && isConstantValued(file, *file.findInitializer(info.tensor)).value_or(false))
      shared.add(info.name, join(readers, ", "));
  }
  unnamed.warn(file.getReport(), FindingKind::NamesOfValues);
  shared.warn(file.getReport(), FindingKind::PerhapsMerged);
}
