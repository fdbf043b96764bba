//===- UnfoldStates.cpp - learned first states of recurrent layers -----------------===//
//
// A program keeps the first states of all layers in one parameter, [layers, 1, hidden], repeated for each sample. The
// operators of ONNX are of one layer each: the exporter evaluates what each reads, and the parameter is gone. Together,
// the parts are the parameter. States that began equal, at zero for instance, are one tensor of the file: the operand
// tells which state each layer reads, and the program's operation names both.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"

#include "Classifier.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"
#include "lowtide/Support/StableSort.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

static constexpr int firstState = 5, lastState = 6; // initial_h, initial_c

static bool isRecurrent(const NodeProto &node) { return is_contained({"LSTM", "GRU", "RNN"}, node.op_type()); }

/// The values that recurrent layers begin with.
static StringSet<> findStates(const ::onnx::GraphProto &graph) {
  StringSet<> states;
  for (const auto &node : graph.node())
    for (int operand = firstState; isRecurrent(node) && operand <= lastState && operand < node.input_size(); ++operand)
      states.insert(node.input(operand));
  return states;
}

static bool repeats(StringRef name) { return is_contained({"expand", "repeat"}, operationName(name)); }

/// Whether the tensor is a part of its parameter, perhaps repeated.
static bool isPart(const Evaluated &evaluated) {
  return operationName(evaluated.tensor->name()) == "val" && evaluated.parameters.size() == 1 &&
         all_of(evaluated.foldedFrom, [&](StringRef name) {
           return name == evaluated.parameters.front()->target ||
                  is_contained({"val", "expand", "repeat", "unsqueeze", "contiguous", "clone", "alias"},
                               operationName(name));
         });
}

/// The rows of `bytes`, [directions, samples, hidden], without those of further samples; nullopt: they differ.
static std::optional<std::string> takeFirstSample(StringRef bytes, ArrayRef<int64_t> dims) {
  const size_t directions = size_t(dims[0]), samples = size_t(dims[1]), row = bytes.size() / (directions * samples);
  std::string first;
  for (size_t direction = 0; direction != directions; ++direction) {
    const StringRef rows = bytes.substr(direction * samples * row, samples * row);
    if (rows.drop_front(row) != rows.drop_back(row))
      return std::nullopt;
    first += rows.take_front(row);
  }
  return first;
}

/// Adds parameter `name`, whose parts, each of `dims`, make up `bytes`, and nodes that give each part as one of
/// `outputs`. `notes`: what made the parts.
static void addStates(UnfoldingGraph &graph, const std::string &name, const TensorProto &image, std::string bytes,
                      ArrayRef<std::string> notes, ArrayRef<std::string> outputs, bool isAssumed) {
  const SmallVector<int64_t> dims(image.dims().begin(), image.dims().end());
  SmallVector<int64_t> whole(dims);
  whole[0] *= int64_t(outputs.size());
  const bool isRepeated = any_of(notes, repeats);
  if (isRepeated)
    whole[1] = 1;
  // What the program put a dimension into has none there.
  const bool isFlat = isRepeated && any_of(notes, [](StringRef from) { return operationName(from) == "unsqueeze"; });
  SmallVector<int64_t> shape(whole);
  if (isFlat)
    shape.erase(shape.begin() + 1);
  graph.addInitializer(
      name, shape, image.data_type(), std::move(bytes),
      {image.name(), "the exporter evaluated what each layer reads of it, " + image.name() + " among it", isAssumed});
  graph.setModule(moduleOf(name));
  const std::string states = isFlat ? graph.addNode("Reshape", {name, graph.addIntegers({3}, whole)}) : name;
  for (auto [i, output] : enumerate(outputs)) {
    const int64_t begin = int64_t(i) * dims[0];
    const std::string value =
        graph.addNode("Slice", {states, graph.addIntegers({1}, {begin}), graph.addIntegers({1}, {begin + dims[0]}),
                                graph.addIntegers({1}, {0})});
    graph.addNode("Expand", {value, graph.addIntegers({3}, dims)}, output);
  }
}

/// Makes all parts of the parameter, which is gone, of it.
static void stack(UnfoldingGraph &graph, const std::string &name, SmallVector<const Evaluated *> parts) {
  // The layers of one operation follow each other.
  sortStably(parts, [](const Evaluated *a, const Evaluated *b) {
    return operationNumber(a->tensor->name()) < operationNumber(b->tensor->name());
  });
  const TensorProto &first = *parts.front()->tensor;
  const SmallVector<int64_t> dims(first.dims().begin(), first.dims().end());
  const bool isRepeated = any_of(parts.front()->foldedFrom, repeats);
  std::string bytes;
  SmallVector<std::string> outputs;
  for (const Evaluated *part : parts) {
    const TensorProto &tensor = *part->tensor;
    std::optional<std::string> read = graph.read(tensor);
    if (!read || read->empty() || tensor.data_type() != first.data_type() || dims.size() != 3 ||
        ArrayRef(dims) != ArrayRef(tensor.dims().data(), size_t(tensor.dims_size())) ||
        any_of(part->foldedFrom, repeats) != isRepeated || (isRepeated && !(read = takeFirstSample(*read, dims))))
      return;
    bytes += *read;
    outputs.push_back(tensor.name());
  }
  for (const Evaluated *part : parts)
    graph.remove(*part->tensor);
  addStates(graph, name, first, std::move(bytes), parts.front()->foldedFrom, outputs, false);
}

void lowtide::unfoldStates(UnfoldingGraph &graph, ArrayRef<Evaluated> images) {
  const StringSet<> states = findStates(graph.getGraph());
  MapVector<const SignatureEntry *, SmallVector<const Evaluated *>> byParameter;
  for (const Evaluated &each : images)
    if (!graph.isRemoved(each.tensor->name()))
      for (const SignatureEntry *entry : each.parameters)
        if (!graph.find(entry->target))
          byParameter[entry].push_back(&each);
  for (const auto &[entry, parts] : byParameter) {
    if (all_of(parts, [&](const Evaluated *each) { return isPart(*each) && states.contains(each->tensor->name()); }))
      stack(graph, entry->target, parts);
    else if (none_of(parts, [](const Evaluated *each) { return each->parameters.size() == 1; }))
      unfoldLayerOperands(graph, parts);
  }
}

namespace {
/// Operands of recurrent layers that are one tensor of the file.
struct Merged {
  const TensorProto *tensor;
  std::vector<std::string> notes;
  const SignatureEntry *parameter;
  /// Per kind of state (`initial_h`, `initial_c`), the nodes of the layers, in their order.
  SmallVector<NodeProto *> layers[2];
};
} // namespace

/// What the program's operation begins with: one value, or two (`lstm(x, [h, c], …)`); empty: the notes do not tell.
static SmallVector<std::string> findProgramStates(const NodeProto &node) {
  const std::vector<std::string> operands = findProgramOperands(node);
  const std::string name = findProgramOperator(node);
  const size_t count = StringRef(name).starts_with("aten.lstm.input")  ? 2
                       : StringRef(name).starts_with("aten.gru.input") ? 1
                                                                       : 0;
  if (count == 0 || operands.size() <= count)
    return {};
  return SmallVector<std::string>(operands.begin() + 1, operands.begin() + 1 + ptrdiff_t(count));
}

static bool makesZeros(StringRef name) {
  return is_contained({"zeros", "new_zeros", "zeros_like", "full", "new_full", "full_like"}, operationName(name));
}

/// The only parameter that no tensor of the file was made of; null: there are several, or none.
static const SignatureEntry *findOnlyGone(const UnfoldingGraph &graph, const Signature &signature) {
  StringSet<> mentioned;
  for (const auto &value : graph.getGraph().value_info())
    for (const std::string &name : findFoldedFrom(value))
      mentioned.insert(name);
  const SignatureEntry *found = nullptr;
  for (const SignatureEntry &entry : signature.getEntries())
    if (entry.kind == SignatureEntry::Parameter && !graph.find(entry.target) && !mentioned.contains(entry.target)) {
      if (found)
        return nullptr;
      found = &entry;
    }
  return found;
}

/// Gives each layer its own part of the parameters that its states are.
static void unfoldEqual(UnfoldingGraph &graph, const Signature &signature, const Merged &merged) {
  const TensorProto &tensor = *merged.tensor;
  const std::string bytes = graph.read(tensor).value_or("");
  const size_t width = findElementType(tensor.data_type())->bytes;
  if (bytes.empty() || tensor.dims_size() != 3 || none_of(merged.notes, repeats) || !hasEqualElements(bytes, width))
    return;
  NodeProto *any = merged.layers[merged.layers[0].empty()].front();
  const SmallVector<std::string> states = findProgramStates(*any);
  for (ArrayRef<NodeProto *> layers : merged.layers)
    for (const NodeProto *layer : layers)
      if (states.empty() || findProgramOperands(*layer) != findProgramOperands(*any))
        return;
  // Which of the two the notes are of.
  const SignatureEntry *parameters[2] = {};
  for (auto [i, state] : enumerate(states))
    if (is_contained(merged.notes, state))
      parameters[i] = merged.parameter;
  for (size_t i = 0; i != states.size(); ++i)
    if (!merged.layers[i].empty() && !parameters[i]) {
      const bool isConstant = makesZeros(states[i]) && bytes.find_first_not_of('\0') == std::string::npos;
      if (!isConstant && (!repeats(states[i]) || !(parameters[i] = findOnlyGone(graph, signature))))
        return;
    } else if (merged.layers[i].empty() != !parameters[i]) {
      return;
    }
  const SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  // Both states may be one parameter, of which each layer reads its part twice.
  const bool isShared = states.size() == 2 && parameters[0] == parameters[1];
  if (isShared && merged.layers[0].size() != merged.layers[1].size())
    return;
  for (size_t i = 0; i != states.size(); ++i) {
    SmallVector<std::string> outputs;
    if (!parameters[i] && !merged.layers[i].empty()) {
      const std::string zeros = graph.addNode("Expand", {graph.addNumber(0), graph.addIntegers({3}, dims)});
      for (NodeProto *layer : merged.layers[i])
        layer->set_input(firstState + int(i), zeros);
      continue;
    }
    for (auto [number, layer] : enumerate(merged.layers[i])) {
      outputs.push_back(isShared && i == 1
                            ? layer->input(firstState)
                            : tensor.name() + "@" + parameters[i]->target + "@" + std::to_string(number));
      layer->set_input(firstState + int(i), outputs.back());
    }
    if (outputs.empty() || (isShared && i == 1))
      continue;
    std::string whole;
    for (size_t at = 0, e = outputs.size() * bytes.size() / size_t(tensor.dims(1)); at != e; at += width)
      whole.append(bytes, 0, width);
    addStates(graph, parameters[i]->target, tensor, std::move(whole), merged.notes, outputs,
              parameters[i] != merged.parameter);
  }
  graph.remove(tensor);
}

void lowtide::unfoldEqualStates(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature) {
  MapVector<const TensorProto *, Merged> found;
  StringSet<> others;
  for (NodeProto &node : *proto.mutable_node())
    for (int operand = 0; operand != node.input_size(); ++operand) {
      const TensorProto *tensor = graph.find(node.input(operand));
      const bool isState = isRecurrent(node) && operand >= firstState && operand <= lastState;
      if (tensor && isState)
        found[tensor].layers[operand - firstState].push_back(&node);
      else if (tensor)
        others.insert(tensor->name());
    }
  for (const auto &output : proto.output())
    others.insert(output.name());
  for (const auto &value : proto.value_info()) {
    auto at = found.find(graph.find(value.name()));
    if (at == found.end() || others.contains(value.name()))
      continue;
    Merged &merged = at->second;
    const std::vector<std::string> notes = findFoldedFrom(value);
    const SignatureEntry *parameter = nullptr;
    bool isOnly = true;
    for (const std::string &name : notes)
      if (const SignatureEntry *entry = signature.findTarget(name)) {
        isOnly &= !parameter && entry->kind == SignatureEntry::Parameter && !graph.find(name);
        parameter = entry;
      }
    if (!parameter || !isOnly || !isPart({at->first, notes, {parameter}}))
      continue;
    merged.tensor = at->first;
    merged.notes = notes;
    merged.parameter = parameter;
    unfoldEqual(graph, signature, merged);
  }
}

void lowtide::unfoldNamelessStates(UnfoldingGraph &graph, ::onnx::GraphProto &proto) {
  StringMap<unsigned> numReaders;
  for (const NodeProto &node : proto.node())
    for (const std::string &input : node.input())
      ++numReaders[input];
  StringMap<unsigned> numNamed;
  const int numNodes = proto.node_size();
  for (int i = 0; i != numNodes; ++i)
    for (int operand = firstState; operand <= lastState && operand < proto.node(i).input_size(); ++operand) {
      const NodeProto &node = proto.node(i);
      const TensorProto *tensor = isRecurrent(node) ? graph.find(node.input(operand)) : nullptr;
      if (!tensor || !isFloatType(tensor->data_type()) || tensor->dims_size() != 3 || tensor->dims(1) < 2 ||
          numReaders[tensor->name()] != 1 ||
          !(isInventedName(tensor->name()) || isEvaluatedName(tensor->name()) ||
            operationName(tensor->name()) == "val"))
        continue;
      const SmallVector<int64_t> dims(tensor->dims().begin(), tensor->dims().end());
      const std::string bytes = graph.read(*tensor).value_or("");
      const size_t width = findElementType(tensor->data_type())->bytes;
      // What is one number everywhere is the state that layers begin with by default, or may be.
      std::optional<std::string> state = hasEqualElements(bytes, width) ? std::nullopt : takeFirstSample(bytes, dims);
      if (!state)
        continue;
      const std::string module = findModulePath(node).value_or("");
      std::string name = (module.empty() ? "" : module + ".") + (operand == firstState ? "initial_h" : "initial_c");
      if (const unsigned number = numNamed[name]++; number || graph.find(name))
        name += "_" + std::to_string(number);
      const std::string notes[] = {"expand"};
      addStates(graph, name, *tensor, std::move(*state), notes, {tensor->name()}, true);
      graph.remove(*tensor);
    }
}
