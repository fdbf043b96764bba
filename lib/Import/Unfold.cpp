//===- Unfold.cpp - parameters out of what an exporter evaluated -----------------===//
//
//  0. Conversions to another type.
//  1. Tensors of which the exporter noted what they were evaluated from, each parameter of it gone from the file and
//     evaluated into no other tensor.
//  2. Without notes: operands of recurrent layers, whose form is fixed, and tables of relative positions; of
//  TensorFlow's layers, the zeros next to their one bias.
//  3. Functions of parameters that the file holds as well, with notes or without, and readers that were merged with
//  their operands.
//  4. A bias of zeros is dropped by the exporter's optimizer; the layer's operation still names it.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"

#include "Classifier.h"
#include "ElementFunctions.h"
#include "LostBiases.h"
#include "TensorData.h"
#include "TensorFlowNames.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

StringRef lowtide::operationName(StringRef name) {
  name = name.split('@').first; // a copy that was split off
  auto [stem, number] = name.rsplit('_');
  return !number.empty() && all_of(number, isDigit) ? stem : name;
}

bool lowtide::movesElements(StringRef name) {
  return StringSwitch<bool>(operationName(name))
      .Cases({"val", "t", "transpose", "permute", "numpy_t", "view", "_unsafe_view", "reshape", "unsqueeze", "squeeze",
              "flatten"},
             true)
      .Cases({"slice", "select", "narrow", "split", "split_with_sizes", "chunk", "getitem", "unbind", "embedding",
              "gather", "index", "index_select"},
             true)
      .Cases({"expand", "clone", "contiguous", "alias", "detach", "_to_copy", "to", "lift_fresh_copy", "arange", "cat",
              "stack", "zeros", "repeat", "tile"},
             true)
      .Default(false);
}

bool lowtide::isGather(StringRef name) {
  return StringSwitch<bool>(operationName(name))
      .Cases({"embedding", "index", "gather", "index_select", "expand", "repeat", "tile", "take"}, true)
      .Default(false);
}

/// Evaluated tensors with a parameter among their sources, by name; those that cannot be taken apart are left out.
/// `images` gets those of which a parameter is in the file in another form.
static StringMap<Evaluated> findEvaluated(const UnfoldingGraph &graph, const Signature &signature,
                                          std::vector<Evaluated> &images) {
  StringMap<Evaluated> found;
  StringMap<unsigned> readers;
  StringSet<> outputs;
  for (const auto &output : graph.getGraph().output())
    outputs.insert(output.name());
  for (const auto &value : graph.getGraph().value_info()) {
    const TensorProto *tensor = graph.find(value.name());
    if (!tensor || signature.findTarget(value.name()) || outputs.contains(value.name()) ||
        !isFloatType(tensor->data_type()))
      continue;
    Evaluated evaluated{tensor, findFoldedFrom(value), {}};
    for (const std::string &name : evaluated.foldedFrom)
      if (const SignatureEntry *entry = signature.findTarget(name); entry && entry->kind == SignatureEntry::Parameter) {
        evaluated.parameters.push_back(entry);
        ++readers[entry->target];
      }
    if (!evaluated.parameters.empty())
      found[value.name()] = std::move(evaluated);
  }
  for (StringRef name : to_vector(found.keys()))
    if (any_of(found[name].parameters,
               [&](const SignatureEntry *entry) { return readers[entry->target] > 1 || graph.find(entry->target); })) {
      images.push_back(std::move(found[name]));
      found.erase(name);
    }
  return found;
}

/// The first dimension of all inputs; 0: they differ, or it is open.
static int64_t countSamples(const GraphProto &graph) {
  int64_t samples = 0;
  for (const auto &input : graph.input()) {
    const auto &shape = input.type().tensor_type().shape();
    if (shape.dim_size() == 0)
      continue;
    if (!shape.dim(0).has_dim_value() || (samples && shape.dim(0).dim_value() != samples))
      return 0;
    samples = shape.dim(0).dim_value();
  }
  return samples;
}

/// Parameters of which every tensor that was evaluated is of it alone.
static void unfoldAllOfOne(UnfoldingGraph &graph, std::vector<Evaluated> &images) {
  llvm::MapVector<const SignatureEntry *, SmallVector<const Evaluated *>> byParameter;
  for (const Evaluated &each : images)
    for (const SignatureEntry *entry : each.parameters)
      byParameter[entry].push_back(&each);
  const int64_t samples = countSamples(graph.getGraph());
  for (const auto &[entry, all] : byParameter)
    if (all_of(all, [&](const Evaluated *each) {
          return each->parameters.size() == 1 && !graph.isRemoved(each->tensor->name());
        }))
      unfoldSeveral(graph, all, samples) || unfoldMixture(graph, all);
  llvm::erase_if(images, [&](const Evaluated &each) { return graph.isRemoved(each.tensor->name()); });
}

/// Functions of parameters that the file holds as well.
static void recoverAllFunctions(UnfoldingGraph &graph, ArrayRef<Evaluated> images) {
  SmallVector<const Evaluated *> moved;
  for (const Evaluated &evaluated : images)
    if (movesElements(evaluated.tensor->name()) && all_of(evaluated.foldedFrom, [&](const std::string &name) {
          return name == evaluated.parameters.front()->target || (movesElements(name) && !isGather(name));
        }))
      moved.push_back(&evaluated);
  llvm::erase_if(moved, [&](const Evaluated *evaluated) { return unfoldPiece(graph, *evaluated); });
  // Two functions of a parameter that is gone: the first that can be inverted gives it back.
  for (const Evaluated &evaluated : images)
    if (!is_contained(moved, &evaluated) && !graph.isRemoved(evaluated.tensor->name()) &&
        none_of(evaluated.parameters, [&](const SignatureEntry *entry) { return graph.find(entry->target); }) &&
        none_of(moved, [&](const Evaluated *other) { return other->parameters == evaluated.parameters; }))
      unfoldFunction(graph, evaluated);
  for (const Evaluated &evaluated : images)
    if (!is_contained(moved, &evaluated) && !graph.isRemoved(evaluated.tensor->name()))
      recoverFunctions(graph, evaluated, moved);
}

/// Whether the tensor is constant along one of its dimensions: it began so, and has nothing random.
static bool isRegular(const TensorProto &tensor, StringRef bytes) {
  size_t inner = findElementType(tensor.data_type())->bytes;
  if (bytes.empty())
    return false;
  for (int axis = tensor.dims_size(); axis-- > 0;) {
    size_t size = size_t(tensor.dims(axis)), outer = bytes.size() / (inner * size);
    bool isConstant = size > 1;
    for (size_t o = 0; isConstant && o != outer; ++o)
      for (size_t i = 1; isConstant && i != size; ++i)
        isConstant = bytes.substr((o * size + i) * inner, inner) == bytes.substr(o * size * inner, inner);
    if (isConstant)
      return true;
    inner *= size;
  }
  return false;
}

/// Evaluated tensors of equal value are merged, too. A use in another module, which lacks a parameter of that name,
/// gets a tensor of its own, evaluated from that one.
static void splitMerged(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature,
                        StringMap<Evaluated> &evaluated) {
  StringSet<> present;
  for (const auto &value : proto.value_info())
    for (const std::string &name : findFoldedFrom(value))
      present.insert(name);
  for (StringRef name : to_vector(evaluated.keys())) {
    Evaluated whole = evaluated[name];
    const std::string &owner = whole.parameters.front()->target;
    std::optional<std::string> bytes;
    int64_t elements = checkedElements({whole.tensor->dims().data(), size_t(whole.tensor->dims_size())}).value_or(0);
    if (whole.parameters.size() != 1 || elements < 2 || elements > largestMerged ||
        !(bytes = graph.read(*whole.tensor)) || !isRegular(*whole.tensor, *bytes))
      continue;
    // Equal elements that were only moved are taken apart use by use (ParametersFromSignature.cpp).
    size_t width = findElementType(whole.tensor->data_type())->bytes;
    if (movesElements(name) && StringRef(*bytes).drop_front(width) == StringRef(*bytes).drop_back(width))
      continue;
    for (int i = 0, e = proto.node_size(); i != e; ++i) {
      NodeProto &node = *proto.mutable_node(i);
      std::optional<std::string> module = findModulePath(node);
      if (!module || *module == moduleOf(owner) || !is_contained(node.input(), name))
        continue;
      std::string other = (module->empty() ? "" : *module + ".") + leafOf(owner).str();
      const SignatureEntry *entry = signature.findTarget(other);
      if (!entry || entry->kind != SignatureEntry::Parameter || graph.find(other) || present.contains(other))
        continue;
      std::string copy = (name + "@" + other).str();
      for (std::string &input : *node.mutable_input())
        if (input == name)
          input = copy;
      if (graph.find(copy))
        continue;
      graph.addCopy(*whole.tensor, copy, *bytes, owner, other);
      Evaluated &part = evaluated[copy];
      part = {graph.find(copy), whole.foldedFrom, {entry}};
      std::replace(part.foldedFrom.begin(), part.foldedFrom.end(), owner, other);
    }
  }
}

/// A table that was read several times at the same positions, as relative positions are in each layer, is evaluated
/// once; the others, in pairs with that one's name, become copies of it.
static std::vector<std::pair<std::string, std::string>>
joinRepeated(const UnfoldingGraph &graph, std::vector<Evaluated> &images, StringMap<Evaluated> &evaluated) {
  std::vector<std::pair<std::string, std::string>> copies;
  StringMap<SmallVector<const Evaluated *>> groups;
  for (const Evaluated &each : images)
    if (each.parameters.size() == 1 && !graph.find(each.parameters.front()->target) &&
        (isGather(each.tensor->name()) || any_of(each.foldedFrom, isGather)))
      groups[each.parameters.front()->target].push_back(&each);
  StringSet<> joined;
  for (const auto &group : groups) {
    const Evaluated &first = *group.second.front();
    std::string bytes = graph.read(*first.tensor).value_or("");
    auto isSame = [&](const Evaluated *other) {
      return operationName(other->tensor->name()) == operationName(first.tensor->name()) &&
             ArrayRef(other->tensor->dims().data(), size_t(other->tensor->dims_size())) ==
                 ArrayRef(first.tensor->dims().data(), size_t(first.tensor->dims_size())) &&
             graph.read(*other->tensor) == bytes;
    };
    if (group.second.size() < 2 || bytes.empty() || !all_of(group.second, isSame))
      continue;
    for (const Evaluated *each : group.second)
      joined.insert(each->tensor->name());
    for (const Evaluated *other : ArrayRef(group.second).drop_front())
      copies.emplace_back(other->tensor->name(), first.tensor->name());
    evaluated[first.tensor->name()] = first;
  }
  llvm::erase_if(images, [&](const Evaluated &each) { return joined.contains(each.tensor->name()); });
  return copies;
}

/// `/encoder/rnn/LSTM_1` is its module's second layer; operators of one layer are not numbered.
static int64_t layerOfNode(const NodeProto &node) {
  StringRef number = StringRef(node.name()).rsplit('/').second;
  int64_t layer = 0;
  if (!number.consume_front(node.op_type()) || !number.consume_front("_") || number.getAsInteger(10, layer))
    return 0;
  return layer;
}

/// The bias that the operation of `node` reads and that neither the file nor any evaluated tensor holds.
static const SignatureEntry *findDroppedBias(const UnfoldingGraph &graph, const Signature &signature,
                                             const StringSet<> &evaluatedFrom, const NodeProto &node) {
  if (node.input_size() != 2 || isRewritten(node))
    return nullptr;
  SmallVector<const SignatureEntry *> gone;
  for (const std::string &operand : findProgramOperands(node)) {
    const SignatureEntry *entry = signature.findPlaceholder(operand);
    if (!entry || entry->kind != SignatureEntry::Parameter || evaluatedFrom.contains(entry->target))
      continue;
    if (leafOf(entry->target) == "bias")
      return entry;
    if (entry->target != node.input(1))
      gone.push_back(entry);
  }
  // Under another name, it is the only one that the rule could have dropped.
  return isWithoutBias(node) && gone.size() == 1 ? gone.front() : nullptr;
}

static void restoreBiases(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  StringSet<> evaluatedFrom;
  for (const auto &value : proto.value_info())
    for (const std::string &name : findFoldedFrom(value))
      evaluatedFrom.insert(name);
  StringSet<> restored;
  for (NodeProto &node : *proto.mutable_node()) {
    int64_t channels = outputChannels(graph, node);
    const SignatureEntry *entry = channels ? findDroppedBias(graph, signature, evaluatedFrom, node) : nullptr;
    if (!entry)
      continue;
    int32_t type = graph.find(node.input(1))->data_type();
    if (graph.find(entry->target) && !restored.contains(entry->target))
      continue;
    if (restored.insert(entry->target).second)
      graph.addInitializer(entry->target, {channels}, type, std::string(size_t(*checkedBytes(channels, type)), '\0'),
                           {"", "the exporter dropped it, for it is all zeros", {}, {}, false});
    node.add_input(entry->target);
  }
}

UnfoldedTensors lowtide::unfoldInitializers(GraphProto &proto, TensorReader read) {
  UnfoldingGraph graph(proto, read);
  Signature signature(proto);
  if (signature.isPresent()) {
    unfoldMergedReaders(graph, proto, signature);
    unfoldMergedImages(graph, proto, signature);
    unfoldAverages(graph, proto, signature);
  } else {
    restoreNamedBiases(graph, proto);
    restoreRewrittenBiases(graph, proto);
    unfoldMergedCopies(graph, proto);
    joinRepeatedRecurrent(graph, proto);
    unfoldNarrow(graph, proto);
  }
  if (isOfTensorFlow(proto))
    for (const NodeProto *node : map_to_vector(proto.node(), [](const NodeProto &n) { return &n; }))
      unfoldSingleBias(graph, *node);
  std::vector<Evaluated> images;
  StringMap<Evaluated> evaluated = findEvaluated(graph, signature, images);
  const int32_t parameterType = findParameterType(graph, signature);
  llvm::erase_if(images, [&](const Evaluated &each) { return unfoldConversion(graph, each, parameterType); });
  for (StringRef name : to_vector(evaluated.keys()))
    if (unfoldConversion(graph, evaluated[name], parameterType))
      evaluated.erase(name);
  const auto copies = joinRepeated(graph, images, evaluated);
  splitMerged(graph, proto, signature, evaluated);
  int numNodes = proto.node_size();
  for (int i = 0; i != numNodes; ++i)
    for (int operand = 0; operand != proto.node(i).input_size(); ++operand) {
      // Adding nodes moves none of those that are there.
      const NodeProto &node = proto.node(i);
      auto found = evaluated.find(node.input(operand));
      if (found != evaluated.end())
        unfoldRecurrent(graph, node, operand, &found->second, 0) || unfoldBilinear(graph, node, found->second);
      else if (!signature.isPresent() && isEvaluatedName(node.input(operand)))
        unfoldRecurrent(graph, node, operand, nullptr, layerOfNode(node)) || unfoldPositions(graph, node, operand) ||
            unfoldWeightNorm(graph, node, operand);
    }
  for (const TensorProto *tensor : map_to_vector(proto.initializer(), [](const TensorProto &t) { return &t; }))
    if (auto found = evaluated.find(tensor->name()); found != evaluated.end() && !graph.isRemoved(tensor->name()))
      unfoldFunction(graph, found->second) || unfoldShifted(graph, found->second) ||
          unfoldWeightNorm(graph, found->second) || unfoldQueryBiases(graph, proto, signature, found->second) ||
          unfoldSeveral(graph, &found->second, countSamples(proto)) || unfoldMixture(graph, &found->second) ||
          unfoldGathered(graph, found->second);
  for (const auto &[copy, original] : copies)
    if (const TensorProto *tensor = graph.find(copy); graph.isRemoved(original)) {
      graph.addNode("Identity", {original}, copy);
      graph.remove(*tensor);
    }
  // Transposed matrices are views (ParametersFromSignature.cpp, ParametersFromNames.cpp).
  StringMap<std::vector<std::string>> notes;
  for (const auto &value : proto.value_info())
    if (std::vector<std::string> names = findFoldedFrom(value); !names.empty())
      notes[value.name()] = std::move(names);
  auto isImage = [&](const TensorProto &tensor) {
    return signature.isPresent() ? notes.contains(tensor.name()) && !signature.findTarget(tensor.name())
                                 : isEvaluatedName(tensor.name());
  };
  llvm::erase_if(images, [&](const Evaluated &each) { return unfoldMoved(graph, each); });
  unfoldForms(graph, proto, isImage);
  unfoldJoined(graph, proto, isImage, [&](const TensorProto &tensor) -> std::optional<std::vector<std::string>> {
    if (!signature.isPresent())
      return std::nullopt;
    std::vector<std::string> gone = notes.lookup(tensor.name());
    llvm::erase_if(gone, [&](const std::string &name) {
      const SignatureEntry *entry = signature.findTarget(name);
      return !entry || entry->kind != SignatureEntry::Parameter || graph.find(name);
    });
    return gone;
  });
  recoverAllFunctions(graph, images);
  unfoldAllOfOne(graph, images);
  if (signature.isPresent()) {
    restoreBiases(graph, proto, signature);
    doubtLostOperations(graph, proto, signature);
  } else {
    unfoldNormScales(graph, proto);
    SmallVector<const TensorProto *> held, named;
    // Without its notes, what the current exporter evaluated goes by the operation's name.
    const bool isCurrent = isOfCurrentExporter(proto);
    for (const TensorProto &tensor : proto.initializer())
      if (!graph.isRemoved(tensor.name()) &&
          (isEvaluatedName(tensor.name()) || (isCurrent && isElementOperation(operationName(tensor.name())))))
        held.push_back(&tensor);
      else if (!graph.isRemoved(tensor.name()) && !isInventedName(tensor.name()))
        named.push_back(&tensor);
    recoverFunctions(graph, proto, held, named);
    for (const TensorProto *tensor : held)
      if (!graph.isRemoved(tensor->name()))
        unfoldFunction(graph, *tensor);
  }
  return graph.finish();
}
