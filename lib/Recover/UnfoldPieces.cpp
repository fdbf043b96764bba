//===- UnfoldPieces.cpp - parts of a parameter that the file holds as well -------===//
//
// A table of positions is read whole, and its first row once more by itself: exporters evaluate the row and keep both.
// Trained as they stand, the two would part. Which part it is, the values tell: it is along one dimension of the
// parameter, and nowhere else.
//
// Parts of a parameter that began equal (`bias[i]` of zeros, in a loop over layers) are one tensor of the file, and
// whether the program reads one part or several, it does not say. Where each is read after one part of another
// parameter of the module (`kernels[i]`), of which the file holds as many, they are as many.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"
#include "lowtide/Support/StableSort.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

bool lowtide::takesPart(StringRef name) {
  return StringSwitch<bool>(operationName(name))
      .Cases({"slice", "select", "narrow", "split", "split_with_sizes", "chunk", "getitem", "unbind"}, true)
      .Default(false);
}

namespace {
/// Indices [begin, end) of one dimension.
struct Part {
  int64_t axis, begin, end;
};
} // namespace

/// Where `part` is in `whole`, whose data are `bytes`; nullopt: nowhere, or in several places.
static std::optional<Part> findPart(const TensorProto &whole, StringRef bytes, StringRef part) {
  size_t width = findElementType(whole.data_type())->bytes;
  std::optional<Part> found;
  size_t outer = 1, inner = bytes.size();
  for (int axis = 0; axis != whole.dims_size(); ++axis) {
    size_t size = size_t(whole.dims(axis));
    inner /= size;
    size_t length = part.size() / (outer * inner);
    if (size > 1 && length && length < size && length * outer * inner == part.size() && inner >= width)
      for (size_t begin = 0; begin + length <= size; ++begin) {
        bool isThere = true;
        for (size_t o = 0; isThere && o != outer; ++o)
          isThere = bytes.substr((o * size + begin) * inner, length * inner) ==
                    part.substr(o * length * inner, length * inner);
        if (isThere && found)
          return std::nullopt;
        if (isThere)
          found = Part{axis, int64_t(begin), int64_t(begin + length)};
      }
    outer *= size;
  }
  return found;
}

bool lowtide::unfoldPiece(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  const TensorProto *whole =
      evaluated.parameters.size() == 1 ? graph.find(evaluated.parameters.front()->target) : nullptr;
  if (!whole || whole->data_type() != tensor.data_type() || graph.isRemoved(whole->name()) ||
      (!takesPart(tensor.name()) && none_of(evaluated.foldedFrom, takesPart)))
    return false;
  std::string bytes = graph.read(*whole).value_or(""), values = graph.read(tensor).value_or("");
  std::optional<Part> part = bytes.empty() || values.empty() ? std::nullopt : findPart(*whole, bytes, values);
  if (!part)
    return false;
  graph.setModule(moduleOf(whole->name()));
  std::string value =
      graph.addNode("Slice", {whole->name(), graph.addIntegers({1}, {part->begin}), graph.addIntegers({1}, {part->end}),
                              graph.addIntegers({1}, {part->axis})});
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  graph.addNode("Reshape", {value, graph.addIntegers({int64_t(dims.size())}, dims)}, tensor.name());
  graph.remove(tensor);
  return true;
}

namespace {
/// What one operation took of a parameter that is gone, perhaps moved after that.
struct TakenPart {
  const TensorProto *tensor;
  unsigned number; ///< of the operation
  bool isMoved;
};
} // namespace

static MapVector<const SignatureEntry *, SmallVector<TakenPart>> findParts(const UnfoldingGraph &graph,
                                                                           const Signature &signature) {
  MapVector<const SignatureEntry *, SmallVector<TakenPart>> parts;
  for (const auto &value : graph.getGraph().value_info()) {
    const TensorProto *tensor = graph.find(value.name());
    if (!tensor || graph.isRemoved(value.name()))
      continue;
    std::vector<std::string> names = findFoldedFrom(value);
    names.push_back(value.name());
    const SignatureEntry *whole = nullptr;
    bool isPart = true;
    SmallVector<StringRef> takes;
    for (const std::string &name : names)
      if (const SignatureEntry *entry = signature.findTarget(name)) {
        isPart &= !whole && entry->kind == SignatureEntry::Parameter && !graph.find(name);
        whole = entry;
      } else {
        isPart &= movesElements(name) && !isGather(name) && !isJoin(name);
        if (takesPart(name))
          takes.push_back(name);
      }
    if (whole && isPart && takes.size() == 1)
      parts[whole].push_back({tensor, operationNumber(takes.front()), takes.front() != value.name()});
  }
  return parts;
}

/// Whether between any two numbers of one list there is exactly one of the other.
static bool alternate(ArrayRef<unsigned> a, ArrayRef<unsigned> b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i != a.size(); ++i)
    if ((a[i] < b[i]) != (a[0] < b[0]) || (i != 0 && (a[i] <= b[i - 1] || b[i] <= a[i - 1])))
      return false;
  return true;
}

namespace {
/// Who reads a part, by what the program calls it.
struct Reads {
  std::string name;
  unsigned number;
  SmallVector<std::pair<NodeProto *, int>> by;
};
} // namespace

/// Who reads the tensor, in the program's order; empty: of some, the notes do not tell what they read.
static std::vector<Reads> findReads(::onnx::GraphProto &proto, const TensorProto &tensor, const StringSet<> &values) {
  std::vector<Reads> reads;
  for (NodeProto &node : *proto.mutable_node())
    for (int operand = 0; operand != node.input_size(); ++operand) {
      if (node.input(operand) != tensor.name())
        continue;
      SmallVector<std::string> names;
      for (const std::string &name : findProgramOperands(node))
        if (operationName(name) == operationName(tensor.name()) && (name == tensor.name() || !values.contains(name)))
          names.push_back(name);
      if (names.size() != 1)
        return {};
      auto at = find_if(reads, [&](const Reads &each) { return each.name == names.front(); });
      if (at == reads.end())
        at = reads.insert(at, {names.front(), operationNumber(names.front()), {}});
      at->by.emplace_back(&node, operand);
    }
  sortStably(reads, [](const Reads &a, const Reads &b) { return a.number < b.number; });
  return reads;
}

void lowtide::unfoldEqualParts(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature) {
  const auto parts = findParts(graph, signature);
  StringSet<> values;
  for (const NodeProto &node : proto.node())
    values.insert(node.output().begin(), node.output().end());
  for (const TensorProto &tensor : proto.initializer())
    values.insert(tensor.name());
  for (const auto &[whole, tensors] : parts) {
    if (tensors.size() != 1 || tensors.front().isMoved)
      continue;
    const TensorProto &tensor = *tensors.front().tensor;
    const std::string bytes = graph.read(tensor).value_or("");
    const size_t width = findElementType(tensor.data_type())->bytes;
    if (bytes.empty() || !hasEqualElements(bytes, width))
      continue;
    const std::vector<Reads> reads = findReads(proto, tensor, values);
    const SmallVector<unsigned> numbers = map_to_vector(reads, [](const Reads &each) { return each.number; });
    const bool isLoop = any_of(parts, [&](const auto &other) {
      SmallVector<unsigned> others = map_to_vector(other.second, [](const TakenPart &part) { return part.number; });
      llvm::sort(others);
      return other.first != whole && moduleOf(other.first->target) == moduleOf(whole->target) &&
             alternate(numbers, others);
    });
    if (reads.size() < 2 || !isLoop)
      continue;
    const SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    SmallVector<int64_t> all(dims);
    all.insert(all.begin(), int64_t(reads.size()));
    std::string data;
    for (size_t i = 0; i != reads.size(); ++i)
      data += bytes;
    graph.addInitializer(whole->target, all, tensor.data_type(), std::move(data),
                         {tensor.name(),
                          "the exporter evaluated parts of it, which began equal; they are taken to be as many as the "
                          "parts of what is read with them",
                          true});
    graph.setModule(moduleOf(whole->target));
    for (auto [i, read] : enumerate(reads)) {
      const int64_t at = int64_t(i);
      std::string value = graph.addNode("Slice", {whole->target, graph.addIntegers({1}, {at}),
                                                  graph.addIntegers({1}, {at + 1}), graph.addIntegers({1}, {0})});
      value = graph.addNode("Reshape", {value, graph.addIntegers({int64_t(dims.size())}, dims)});
      for (auto [node, operand] : read.by)
        node->set_input(operand, value);
    }
    graph.remove(tensor);
  }
}
