//===- UnfoldJoined.cpp - parameters that an evaluated tensor holds as blocks ----===//
//
// A head whose weight is an embedding's table beside columns of its own (MobileBERT), or a bias that is one for several
// layers: exporters evaluate the joining, and where something else reads one of the parts, the file holds that as well.
// Trained as they stand, the two would part. Which blocks they are, the values tell, bit by bit: a parameter or its
// transpose, at either end of what other blocks leave of one dimension.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Bytes of the smallest block that chance does not repeat.
static constexpr size_t fewest = 8 * sizeof(float);

namespace {
/// Indices of the joined dimension, and the parameter that they are.
struct Block {
  int64_t begin, end;
  const TensorProto *parameter;
  bool isTransposed;
};

/// A tensor and the dimension along which it is divided.
struct Joined {
  Joined(const TensorProto &tensor, StringRef bytes, int axis) : tensor(tensor), bytes(bytes), axis(axis) {
    for (int i = 0; i != tensor.dims_size(); ++i)
      (i < axis ? outer : inner) *= i == axis ? 1 : size_t(tensor.dims(i));
  }

  const TensorProto &tensor;
  StringRef bytes;
  int axis;
  /// Indices before the dimension, and bytes of one of its own.
  size_t outer = 1, inner = sizeof(float);

  int64_t size() const { return tensor.dims(axis); }
  /// Whether its indices from `begin` on are the tensor whose data are `part`.
  bool holds(int64_t begin, StringRef part) const {
    size_t length = part.size() / outer;
    for (size_t o = 0; o != outer; ++o)
      if (bytes.substr((o * size_t(size()) + size_t(begin)) * inner, length) != part.substr(o * length, length))
        return false;
    return true;
  }
};

/// The parameters of a file that blocks may be.
class Blocks {
public:
  Blocks(UnfoldingGraph &graph, ArrayRef<const TensorProto *> parameters) : graph(graph), parameters(parameters) {}

  /// Whether a parameter has the dimensions of a part of `tensor`.
  bool mayDivide(const TensorProto &tensor, int axis) const;
  /// Divides a tensor; empty: it holds no parameter as a part.
  SmallVector<Block> divide(const Joined &joined);

private:
  /// Calls `visit` with each parameter of the dimensions of a part, its length, and whether it is to be transposed.
  void findCandidates(const TensorProto &tensor, int axis,
                      function_ref<void(const TensorProto &, int64_t, bool)> visit) const;
  /// The parameter at one end of the indices [begin, end).
  std::optional<Block> findBlock(const Joined &joined, int64_t begin, int64_t end);
  /// Data of `tensor`, or of its transpose; empty: equal numbers, which may be so by chance, or none that can be read.
  StringRef dataOf(const TensorProto &tensor, bool isTransposed);

  UnfoldingGraph &graph;
  ArrayRef<const TensorProto *> parameters;
  std::map<std::pair<const TensorProto *, bool>, std::string> data;
};
} // namespace

static SmallVector<int64_t> dimsOf(const TensorProto &tensor) { return {tensor.dims().begin(), tensor.dims().end()}; }

static std::string transpose(StringRef bytes, int64_t rows, int64_t columns) {
  std::string result(bytes.size(), '\0');
  for (int64_t row = 0; row != rows; ++row)
    for (int64_t column = 0; column != columns; ++column)
      std::copy_n(bytes.data() + size_t(row * columns + column) * sizeof(float), sizeof(float),
                  &result[size_t(column * rows + row) * sizeof(float)]);
  return result;
}

StringRef Blocks::dataOf(const TensorProto &tensor, bool isTransposed) {
  auto [at, isNew] = data.try_emplace({&tensor, isTransposed});
  if (!isNew)
    return at->second;
  std::string bytes = graph.read(tensor).value_or("");
  if (bytes.size() >= fewest && StringRef(bytes).drop_front(sizeof(float)) != StringRef(bytes).drop_back(sizeof(float)))
    at->second = isTransposed ? transpose(bytes, tensor.dims(0), tensor.dims(1)) : std::move(bytes);
  return at->second;
}

void Blocks::findCandidates(const TensorProto &tensor, int axis,
                            function_ref<void(const TensorProto &, int64_t, bool)> visit) const {
  for (const TensorProto *parameter : parameters)
    for (bool isTransposed : {false, true}) {
      SmallVector<int64_t> dims = dimsOf(tensor), part = dimsOf(*parameter);
      if (part.size() != dims.size() || (isTransposed && part.size() != 2))
        continue;
      if (isTransposed)
        std::swap(part[0], part[1]);
      int64_t length = std::exchange(part[size_t(axis)], dims[size_t(axis)]);
      if (part == dims && length < dims[size_t(axis)])
        visit(*parameter, length, isTransposed);
    }
}

bool Blocks::mayDivide(const TensorProto &tensor, int axis) const {
  bool found = false;
  findCandidates(tensor, axis, [&](const TensorProto &, int64_t, bool) { found = true; });
  return found;
}

std::optional<Block> Blocks::findBlock(const Joined &joined, int64_t begin, int64_t end) {
  std::optional<Block> found;
  findCandidates(joined.tensor, joined.axis, [&](const TensorProto &parameter, int64_t length, bool isTransposed) {
    StringRef bytes = found || length > end - begin ? StringRef() : dataOf(parameter, isTransposed);
    for (int64_t at : {begin, end - length})
      if (!found && !bytes.empty() && joined.holds(at, bytes))
        found = Block{at, at + length, &parameter, isTransposed};
  });
  return found;
}

SmallVector<Block> Blocks::divide(const Joined &joined) {
  SmallVector<Block> blocks;
  int64_t begin = 0, end = joined.size();
  while (std::optional<Block> block = begin == end ? std::nullopt : findBlock(joined, begin, end)) {
    (block->begin == begin ? begin : end) = block->begin == begin ? block->end : block->begin;
    blocks.push_back(*block);
  }
  if (!blocks.empty() && begin != end)
    blocks.push_back({begin, end, nullptr, false});
  llvm::sort(blocks, [](const Block &a, const Block &b) { return a.begin < b.begin; });
  return blocks;
}

/// What the part of `tensor` is called that no parameter of the file is; `gone`: names of those that the file does not
/// hold, where the notes tell.
static std::string nameRest(UnfoldingGraph &graph, const TensorProto &tensor,
                            const std::optional<std::vector<std::string>> &gone) {
  if (gone && !gone->empty()) {
    if (gone->size() > 1)
      graph.addDoubt({FindingKind::JoinedPartAssumed, gone->front(), *gone, {{"initializer", tensor.name()}}});
    return gone->front();
  }
  for (const NodeProto &node : graph.getGraph().node())
    if (std::optional<std::string> module = findModulePath(node);
        !gone && module && is_contained(node.input(), tensor.name()))
      if (std::string own = *module + (module->empty() ? "" : ".") + "weight"; !graph.find(own))
        return own;
  return tensor.name() + "@rest";
}

/// Lets nodes compute the tensor from its blocks.
static void join(UnfoldingGraph &graph, const Joined &joined, ArrayRef<Block> blocks,
                 const std::optional<std::vector<std::string>> &gone) {
  const TensorProto &tensor = joined.tensor;
  SmallVector<std::string> parts;
  for (const Block &block : blocks) {
    if (!block.parameter) {
      UnfoldedPart rest{nameRest(graph, tensor, gone), dimsOf(tensor), {}};
      rest.dims[size_t(joined.axis)] = block.end - block.begin;
      const int64_t inner = int64_t(joined.inner / sizeof(float)), width = (block.end - block.begin) * inner;
      for (int64_t o = 0; o != int64_t(joined.outer); ++o)
        for (int64_t i = 0; i != joined.size() * inner; ++i) {
          int64_t at = i - block.begin * inner;
          rest.map.push_back(at >= 0 && at < width ? o * width + at : -1);
        }
      graph.addParts(tensor, joined.bytes, rest, "it was joined with another parameter in", !gone);
      parts.push_back(rest.name);
      continue;
    }
    graph.setModule(moduleOf(block.parameter->name()));
    parts.push_back(block.isTransposed ? graph.addNode("Transpose", {block.parameter->name()})
                                       : block.parameter->name());
    if (block.isTransposed)
      graph.setAttribute("perm", {1, 0});
  }
  graph.addNode("Concat", parts, tensor.name());
  graph.setAttribute("axis", int64_t(joined.axis));
  graph.remove(tensor);
}

void lowtide::unfoldJoined(UnfoldingGraph &graph, GraphProto &proto,
                           function_ref<bool(const TensorProto &)> isEvaluated,
                           function_ref<std::optional<std::vector<std::string>>(const TensorProto &)> findGone) {
  SmallVector<const TensorProto *> evaluated, parameters;
  for (const TensorProto &tensor : proto.initializer())
    if (tensor.data_type() == TensorProto::FLOAT && tensor.dims_size() && !graph.isRemoved(tensor.name()))
      (isEvaluated(tensor) ? evaluated : parameters).push_back(&tensor);
  Blocks known(graph, parameters);
  for (const TensorProto *tensor : evaluated) {
    std::optional<std::string> bytes; // read where dimensions agree
    for (int axis = 0; axis != tensor->dims_size(); ++axis) {
      if (!known.mayDivide(*tensor, axis))
        continue;
      if (!bytes)
        bytes = graph.read(*tensor).value_or("");
      SmallVector<Block> blocks = bytes->empty() ? SmallVector<Block>() : known.divide(Joined(*tensor, *bytes, axis));
      if (blocks.empty())
        continue;
      join(graph, Joined(*tensor, *bytes, axis), blocks, findGone(*tensor));
      break;
    }
  }
}
