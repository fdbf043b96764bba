//===- KeptDimensions.cpp - dimensions that a program's squeeze leaves ------------===//
//
// PyTorch's current exporter writes `Squeeze` for `squeeze(dim)` and `squeeze(dims)`, whatever the size of the
// dimension. It states the types of values: a size that is a symbol is not one either, for the program was traced with
// another.
//
//===----------------------------------------------------------------------===//

#include "KeptDimensions.h"

#include "Makers.h"
#include "Unfold.h"

#include "lowtide/Recover/Evidence.h"
#include "lowtide/Recover/NodeNotes.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <optional>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::TensorShapeProto;

/// The whole numbers of a constant, which the exporter keeps as an initializer or a node.
static std::optional<std::vector<int64_t>> readIntegers(const GraphProto &graph, const Makers &makers, StringRef name) {
  const TensorProto *tensor = nullptr;
  if (const NodeProto *constant = makers.find(name, "Constant", 0)) {
    for (const auto &attribute : constant->attribute()) {
      if (attribute.name() == "value_ints")
        return std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
      if (attribute.name() == "value")
        tensor = &attribute.t();
    }
  } else {
    auto at = find_if(graph.initializer(), [&](const TensorProto &init) { return init.name() == name; });
    tensor = at == graph.initializer().end() ? nullptr : &*at;
  }
  if (!tensor || tensor->data_type() != TensorProto::INT64 || tensor->dims_size() > 1 ||
      tensor->data_location() == TensorProto::EXTERNAL)
    return std::nullopt;
  if (tensor->int64_data_size())
    return std::vector<int64_t>(tensor->int64_data().begin(), tensor->int64_data().end());
  std::vector<int64_t> values(tensor->raw_data().size() / sizeof(int64_t));
  std::memcpy(values.data(), tensor->raw_data().data(), values.size() * sizeof(int64_t));
  return values;
}

static const TensorShapeProto *findStatedShape(const GraphProto &graph, StringRef name) {
  for (const auto *values : {&graph.value_info(), &graph.input()})
    for (const auto &value : *values)
      if (value.name() == name && value.type().tensor_type().has_shape())
        return &value.type().tensor_type().shape();
  return nullptr;
}

/// Whether the dimension is stated to be of another size than one.
static bool isKept(const TensorShapeProto &shape, int64_t axis) {
  axis += axis < 0 ? shape.dim_size() : 0;
  if (axis < 0 || axis >= shape.dim_size())
    return false;
  const auto &dim = shape.dim(int(axis));
  return dim.has_dim_param() || (dim.has_dim_value() && dim.dim_value() != 1);
}

void lowtide::restoreKeptDimensions(GraphProto &proto) {
  SmallVector<NodeProto *> squeezes;
  for (NodeProto &node : *proto.mutable_node())
    if (node.op_type() == "Squeeze" && node.domain().empty() && node.input_size() == 2 &&
        is_contained({"aten.squeeze.dim", "aten.squeeze.dims"}, findProgramOperator(node)))
      squeezes.push_back(&node);
  if (squeezes.empty())
    return;
  const Makers makers(proto);
  SmallVector<std::pair<NodeProto *, std::vector<int64_t>>> changed;
  for (NodeProto *node : squeezes) {
    const TensorShapeProto *shape = findStatedShape(proto, node->input(0));
    std::optional<std::vector<int64_t>> axes = readIntegers(proto, makers, node->input(1));
    if (!shape || !axes)
      continue;
    const size_t before = axes->size();
    erase_if(*axes, [&](int64_t axis) { return isKept(*shape, axis); });
    if (axes->size() != before)
      changed.emplace_back(node, std::move(*axes));
  }
  if (changed.empty())
    return;
  UnfoldingGraph graph(proto);
  for (auto &[node, axes] : changed) {
    if (!axes.empty()) {
      node->set_input(1, graph.addIntegers({int64_t(axes.size())}, axes));
      continue;
    }
    node->set_op_type("Identity");
    node->mutable_input()->RemoveLast();
  }
}
