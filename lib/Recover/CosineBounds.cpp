//===- CosineBounds.cpp - cosines of vectors that are nearly zero -----------------===//
//
// PyTorch's `cosine_similarity` divides each vector by max(|x|, eps), and lets gradients flow through |x| even where
// eps is larger. PyTorch's old exporter writes x·y / max(√(x·x · y·y), eps): the bound of the product, which is met by
// other vectors, and below which no gradient flows. The current exporter bounds each length, and there no gradient
// flows either: PyTorch bounds a copy of the length in place, in a block without gradients, and of that the notes keep
// the copy's name.
//
//===----------------------------------------------------------------------===//

#include "CosineBounds.h"

#include "Detached.h"
#include "Unfold.h"
#include "ValueIndex.h"

#include "lowtide/Recover/Evidence.h"
#include "lowtide/Recover/NodeNotes.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

namespace {
/// Products, sums of products, and what else cosines are made of.
class Cosines {
public:
  explicit Cosines(const GraphProto &graph) : values(graph) {}

  struct Parts {
    std::string bound;      ///< the least length, a constant
    std::string squares[2]; ///< sums of squares, one for each vector
  };
  std::optional<Parts> match(const NodeProto &quotient) const;

private:
  /// The two factors whose products `value` sums up; null: it is no such sum.
  const NodeProto *findProduct(StringRef value) const {
    const NodeProto *sum = values.find(value, "ReduceSum", 1);
    return sum ? values.find(sum->input(0), "Mul", 2) : nullptr;
  }

  const ValueIndex values;
};
} // namespace

std::optional<Cosines::Parts> Cosines::match(const NodeProto &quotient) const {
  if (quotient.op_type() != "Div" || quotient.input_size() != 2 || !findProgramNote(quotient).empty())
    return std::nullopt;
  const NodeProto *most = values.find(quotient.input(1), "Max", 2), *cross = findProduct(quotient.input(0));
  const NodeProto *root = most && most->input_size() == 2 ? values.find(most->input(0), "Sqrt", 1) : nullptr;
  const NodeProto *lengths = root ? values.find(root->input(0), "Mul", 2) : nullptr;
  if (!lengths || !cross || !values.isConstant(most->input(1)))
    return std::nullopt;
  Parts parts{most->input(1), {lengths->input(0), lengths->input(1)}};
  std::string vectors[2];
  for (auto [vector, squares] : zip(vectors, parts.squares)) {
    const NodeProto *square = findProduct(squares);
    if (!square || square->input(0) != square->input(1))
      return std::nullopt;
    vector = square->input(0);
  }
  const bool isSame = cross->input(0) == vectors[0] && cross->input(1) == vectors[1];
  const bool isTurned = cross->input(0) == vectors[1] && cross->input(1) == vectors[0];
  return isSame || isTurned ? std::optional(parts) : std::nullopt;
}

/// Whether the node bounds a copy of a length, `clamp_min(%clone, %scalar_tensor)`; programs bound by a number.
static bool boundsCopy(const NodeProto &node) {
  if ((node.op_type() != "Clip" && node.op_type() != "Max") || node.input_size() != 2 ||
      findProgramOperator(node) != "aten.clamp_min.Tensor")
    return false;
  const std::vector<std::string> operands = findProgramOperands(node);
  return operands.size() == 2 && operationName(operands[0]) == "clone" && operationName(operands[1]) == "scalar_tensor";
}

/// `value` where it is at least `least`, and `least` with the gradient of `value` elsewhere.
static std::string boundValue(UnfoldingGraph &graph, const std::string &value, const std::string &least,
                              StringRef output = "") {
  const std::string missing = graph.addNode("Identity", {graph.addNode("Sub", {least, value})});
  graph.setAttribute(detachedAttrName, 1);
  return graph.addNode("Add", {value, missing}, output);
}

void lowtide::restoreCosineBounds(GraphProto &proto) {
  SmallVector<std::pair<int, Cosines::Parts>> found;
  const Cosines cosines(proto);
  for (auto [i, node] : enumerate(proto.node()))
    if (std::optional<Cosines::Parts> parts = cosines.match(node))
      found.emplace_back(int(i), *parts);
  SmallVector<int> copies;
  for (auto [i, node] : enumerate(proto.node()))
    if (boundsCopy(node))
      copies.push_back(int(i));
  if (found.empty() && copies.empty())
    return;
  UnfoldingGraph graph(proto);
  for (const auto &[index, parts] : found) {
    graph.setModule(findModulePath(proto.node(index)).value_or(""));
    std::string lengths[2];
    for (auto [length, squares] : zip(lengths, parts.squares)) {
      const std::string root = graph.addNode("Sqrt", {squares});
      length = boundValue(graph, root, graph.addNode("Max", {root, parts.bound}));
    }
    const std::string product = graph.addNode("Mul", {lengths[0], lengths[1]});
    proto.mutable_node(index)->set_input(1, product);
  }
  for (int index : copies) {
    NodeProto &bound = *proto.mutable_node(index);
    graph.setModule(findModulePath(bound).value_or(""));
    const std::string length = bound.input(0), name = bound.output(0);
    bound.set_output(0, name + "@bounded");
    boundValue(graph, length, bound.output(0), name);
  }
}
