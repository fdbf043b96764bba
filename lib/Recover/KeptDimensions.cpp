//===- KeptDimensions.cpp - dimensions that a program's squeeze leaves ------------===//
//
// PyTorch's current exporter writes `Squeeze` for `squeeze(dim)` and `squeeze(dims)`, whatever the size of the
// dimension. It states the types of values: a size that is a symbol is not one either, for the program was traced with
// another.
//
//===----------------------------------------------------------------------===//

#include "KeptDimensions.h"

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
using ::onnx::TensorShapeProto;

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
  const ValueIndex values(proto);
  SmallVector<std::pair<NodeProto *, SmallVector<int64_t>>> changed;
  for (NodeProto *node : squeezes) {
    const TensorShapeProto *shape = findStatedShape(proto, node->input(0));
    std::optional<SmallVector<int64_t>> axes = values.findIntegers(node->input(1));
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
