//===- UnfoldMergedImages.cpp - functions that began equal -----------------------===//
//
// `sigmoid(g)` and `1 - sigmoid(g)` are both one half while g is zero, `exp(s)` is what a scale of ones is: exporters
// evaluate them, find them equal, and keep one tensor. The notes of the readers name the values of the program that
// are gone. Where they and the parameters that are gone leave no choice, each gets its own again; otherwise the file is
// refused, or doubted where the exporter may have dropped an operation that does nothing.
// Without notes, a copy with an invented name of a vector is all that is left of such a function.
//
//===----------------------------------------------------------------------===//

#include "Classifier.h"
#include "ElementFunctions.h"
#include "ProgramNames.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <cstring>
#include <map>
#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Nodes that compute `name` as 1 - `image`.
static std::pair<NodeProto, NodeProto> makeRest(const std::string &image, const std::string &name) {
  NodeProto one, rest;
  one.set_op_type("Constant");
  one.add_output(name + "@one");
  auto &attribute = *one.add_attribute();
  attribute.set_name("value");
  attribute.set_type(::onnx::AttributeProto::TENSOR);
  attribute.mutable_t()->set_data_type(TensorProto::FLOAT);
  float number = 1;
  attribute.mutable_t()->set_raw_data(&number, sizeof(number));
  rest.set_op_type("Sub");
  rest.add_input(one.output(0));
  rest.add_input(image);
  rest.add_output(name);
  return {one, rest};
}

/// Whether all f32 values are `number`.
static bool isFilled(StringRef bytes, float number) {
  for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    if (value != number)
      return false;
  }
  return !bytes.empty();
}

namespace {
using Entry = const SignatureEntry *;
struct Read {
  int node, operand;
};

class MergedImages {
public:
  MergedImages(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature)
      : graph(graph), proto(proto), signature(signature), names(proto, signature) {
    for (const auto &value : proto.value_info())
      for (const std::string &name : findFoldedFrom(value)) {
        evaluated[value.name()].push_back(name);
        present.insert(name);
      }
    for (auto [i, node] : enumerate(proto.node()))
      for (auto [operand, input] : enumerate(node.input()))
        reads[input].push_back({int(i), int(operand)});
  }

  void separate(const TensorProto &tensor);

private:
  Entry findParameter(const TensorProto &tensor) const;
  std::vector<Entry> findGone(Entry like) const;
  void giveParameter(const TensorProto &tensor, Entry entry, ArrayRef<Read> of);
  bool giveRest(const TensorProto &tensor, const std::string &image, const std::string &name, ArrayRef<Read> of);
  bool giveImage(const TensorProto &tensor, const std::string &name, ArrayRef<Read> of);
  void redirect(ArrayRef<Read> of, const std::string &name) {
    for (Read read : of)
      proto.mutable_node(read.node)->set_input(read.operand, name);
  }

  UnfoldingGraph &graph;
  GraphProto &proto;
  const Signature &signature;
  ProgramNames names;
  StringMap<std::vector<std::string>> evaluated;
  StringMap<SmallVector<Read>> reads;
  StringSet<> present;
  /// New nodes, and the reads in front of which they are needed.
  std::multimap<int, NodeProto, std::greater<>> added;

public:
  void finish() {
    for (auto &[position, node] : added)
      graph.insertNode(position, std::move(node));
  }
};
} // namespace

Entry MergedImages::findParameter(const TensorProto &tensor) const {
  if (Entry entry = signature.findTarget(tensor.name()))
    return entry->kind == SignatureEntry::Parameter ? entry : nullptr;
  Entry found = nullptr;
  for (const std::string &name : evaluated.lookup(tensor.name()))
    if (Entry entry = signature.findTarget(name); entry && entry->kind == SignatureEntry::Parameter) {
      if (found)
        return nullptr;
      found = entry;
    }
  return found;
}

/// Parameters that are in the file in no form and that no operation reads itself: those that are called like `like` but
/// for numbers, or else those of its module; of any module where it is null.
std::vector<Entry> MergedImages::findGone(Entry like) const {
  std::vector<Entry> all, alike, near;
  for (const SignatureEntry &entry : signature.getEntries()) {
    if (entry.kind != SignatureEntry::Parameter || graph.find(entry.target) || present.contains(entry.target) ||
        names.isMentioned(entry))
      continue;
    all.push_back(&entry);
    if (like && withoutNumbers(entry.target) == withoutNumbers(like->target))
      alike.push_back(&entry);
    if (like && moduleOf(entry.target) == moduleOf(like->target))
      near.push_back(&entry);
  }
  return !like ? all : !alike.empty() ? alike : near;
}

/// The reads are of parameter `entry`, which began as `tensor`.
void MergedImages::giveParameter(const TensorProto &tensor, Entry entry, ArrayRef<Read> of) {
  std::optional<std::string> bytes = graph.read(tensor);
  if (!bytes)
    return;
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  if (!graph.find(entry->target))
    graph.addInitializer(entry->target, dims, tensor.data_type(), std::move(*bytes),
                         {"", "it began equal to " + tensor.name() + ", and the exporter merged the two", false});
  redirect(of, entry->target);
}

/// The reads are of one minus `image`, which is the tensor or a copy of it: one half.
bool MergedImages::giveRest(const TensorProto &tensor, const std::string &image, const std::string &name,
                            ArrayRef<Read> of) {
  StringRef operation = operationName(name);
  if ((operation != "sub" && operation != "rsub") || !isFilled(graph.read(tensor).value_or(""), 0.5f))
    return false;
  int first = of.front().node;
  for (Read read : of)
    first = std::min(first, read.node);
  auto [one, rest] = makeRest(image, name);
  redirect(of, name);
  added.emplace(first, std::move(rest));
  added.emplace(first, std::move(one));
  graph.addDoubt({FindingKind::RestAssumed,
                  tensor.name(),
                  {},
                  {{"initializer", quoteName(tensor.name())}, {"value", name}, {"image", image}}});
  return true;
}

/// The reads are of a function of the only parameter that is gone.
bool MergedImages::giveImage(const TensorProto &tensor, const std::string &name, ArrayRef<Read> of) {
  const ElementFunction *function = findElementFunction(operationName(name));
  std::vector<Entry> gone = findGone(nullptr);
  std::string bytes = graph.read(tensor).value_or("");
  if (!function || !function->inverse || gone.size() != 1 || bytes.empty())
    return false;
  for (size_t at = 0; at != bytes.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, &bytes[at], sizeof(value));
    value = float(function->inverse(value));
    if (!std::isfinite(value))
      return false;
    std::memcpy(&bytes[at], &value, sizeof(value));
  }
  const std::string &parameter = gone.front()->target;
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  graph.addInitializer(
      parameter, dims, tensor.data_type(), std::move(bytes),
      {"",
       "the exporter evaluated " + std::string(function->operation) + " of it and merged that with " + tensor.name(),
       true});
  graph.setModule(moduleOf(parameter));
  std::string value = parameter;
  for (StringRef op : function->operators())
    value = graph.addNode(op, {value}, op == function->operators().back() ? StringRef(name) : "");
  redirect(of, name);
  return true;
}

void MergedImages::separate(const TensorProto &tensor) {
  Entry own = findParameter(tensor);
  if (!own || tensor.data_type() != TensorProto::FLOAT)
    return;
  const std::vector<std::string> &sources = evaluated[tensor.name()];
  bool isImage = tensor.name() != own->target && !movesElements(tensor.name());
  StringRef operation = operationName(tensor.name());
  // Two tokens that began equal, each repeated for every sample.
  bool isRepeated = tensor.name() != own->target && isGather(operation);
  MapVector<StringRef, SmallVector<Read>> lost, parameters;
  std::vector<std::string> kept; // names live here
  kept.reserve(reads[tensor.name()].size());
  for (Read read : reads[tensor.name()]) {
    std::string name = names.find(proto.node(read.node), read.operand);
    if (name.empty() || name == tensor.name() || name == own->placeholder || is_contained(sources, name))
      continue;
    kept.push_back(name);
    if (Entry entry = signature.findPlaceholder(name)) {
      if (isImage && !graph.find(entry->target) && !present.contains(entry->target))
        parameters[kept.back()].push_back(read);
    } else if (names.isLost(name) && (isRepeated ? operationName(name) == operation : !movesElements(name))) {
      lost[kept.back()].push_back(read);
    }
  }
  for (auto &[name, of] : parameters)
    giveParameter(tensor, signature.findPlaceholder(name), of);
  // The same function, of other parameters.
  std::map<StringRef, std::vector<StringRef>> byOperation;
  for (auto &[name, of] : lost)
    byOperation[operationName(name)].push_back(name);
  for (auto &[stem, all] : byOperation)
    llvm::sort(all, [](StringRef a, StringRef b) { return std::pair(a.size(), a) < std::pair(b.size(), b); });
  std::vector<Entry> gone = isImage || isRepeated ? findGone(own) : std::vector<Entry>();
  std::vector<std::string> instances{tensor.name()};
  if (auto alike = byOperation.find(operation); (isImage || isRepeated) && alike != byOperation.end()) {
    // None is gone: the program computes it more than once.
    if (gone.size() == alike->second.size())
      for (auto [name, entry] : zip(alike->second, gone)) {
        std::optional<std::string> bytes = graph.read(tensor);
        instances.push_back(tensor.name() + "@" + entry->target);
        graph.addCopy(tensor, instances.back(), std::move(*bytes), own->target, entry->target);
        redirect(lost[name], instances.back());
      }
    byOperation.erase(alike);
  }
  for (auto &[stem, all] : byOperation) {
    // One for each parameter, or all for the only one.
    bool isOneEach = all.size() == instances.size();
    for (auto [i, name] : enumerate(all)) {
      const std::string &of = instances[isOneEach ? i : 0];
      if (((isOneEach || instances.size() == 1) && giveRest(tensor, of, name.str(), lost[name])) ||
          giveImage(tensor, name.str(), lost[name]))
        continue;
      // `x * 1` and `x + 0` are dropped by the exporter, and whoever read them reads x.
      bool mayBeNothing = StringSwitch<bool>(stem)
                              .Cases({"mul", "add", "sub", "div", "pow", "clamp", "relu", "abs", "val"}, true)
                              .Default(!isElementOperation(stem));
      graph.addDoubt({mayBeNothing ? FindingKind::FunctionPerhapsMerged : FindingKind::FunctionMerged,
                      tensor.name(),
                      {},
                      {{"initializer", quoteName(tensor.name())}, {"value", name.str()}}},
                     /*isFatal=*/!mayBeNothing);
    }
  }
}

void lowtide::unfoldMergedImages(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  MergedImages images(graph, proto, signature);
  for (const TensorProto *tensor : map_to_vector(proto.initializer(), [](const TensorProto &t) { return &t; }))
    images.separate(*tensor);
  images.finish();
}

/// Whether the transpose may be the same tensor.
static bool mayBeTransposed(const TensorProto &tensor) {
  std::set<int64_t> sizes;
  int num = 0;
  for (int64_t dim : tensor.dims())
    if (dim != 1 || tensor.dims_size() == 2) {
      sizes.insert(dim);
      ++num;
    }
  return num > 1 && int(sizes.size()) != num;
}

void lowtide::unfoldMergedCopies(UnfoldingGraph &graph, GraphProto &proto) {
  StringSet<> products;
  for (const NodeProto &node : proto.node())
    if (node.op_type() == "MatMul")
      products.insert(node.output(0));
  // Where parameters live: theirs are the copies that they keep their names by.
  for (int i = 0; i < proto.node_size(); ++i) {
    const NodeProto &node = proto.node(i);
    const TensorProto *tensor =
        node.op_type() == "Identity" && node.input_size() == 1 ? graph.find(node.input(0)) : nullptr;
    if (!tensor || tensor->data_type() != TensorProto::FLOAT || mayBeTransposed(*tensor) ||
        isInventedName(tensor->name()) || !StringRef(node.output(0)).starts_with("onnx::"))
      continue;
    // What only moved its elements is another tensor or another shape: this one was computed.
    std::string name = node.output(0), bytes = graph.read(*tensor).value_or("");
    bool isRest = isFilled(bytes, 0.5f);
    // An uncertainty that weighs a loss: exp(-s), with s = 0. exp(s) would read s itself.
    bool isNegative = isFilled(bytes, 0) && all_of(proto.node(), [&](const NodeProto &reader) {
                        return !is_contained(reader.input(), name) || reader.op_type() == "Exp";
                      });
    // Parts of a joint bias have parameters of their own (MergedTensors.cpp).
    if (tensor->dims_size() == 1 && all_of(proto.node(), [&](const NodeProto &reader) {
          return !is_contained(reader.input(), name) ||
                 (reader.op_type() == "Add" &&
                  any_of(reader.input(), [&](StringRef input) { return products.contains(input); }));
        }))
      continue;
    if (isRest) {
      auto [one, rest] = makeRest(tensor->name(), name);
      proto.mutable_node(i)->Swap(&one);
      graph.insertNode(i + 1, std::move(rest));
    } else if (isNegative) {
      proto.mutable_node(i)->set_op_type("Neg");
    }
    const std::string expression = isRest       ? "1 - " + tensor->name()
                                   : isNegative ? "-" + tensor->name()
                                                : "the same parameter";
    graph.addDoubt(
        {FindingKind::CopyAssumed,
         tensor->name(),
         {},
         {{"value", quoteName(name)}, {"initializer", quoteName(tensor->name())}, {"expression", expression}}});
  }
}
