//===- Windows.cpp - windows that an exporter puts in another order ---------------===//
//
// `x.unfold(dim, size, step)` puts the number of the window in place of dimension `dim` and its elements last.
// PyTorch's old exporter writes
//
//   Concat<axis = dim>(Unsqueeze(Transpose(Slice(x, s, s + size, dim)), dim) for s = 0, step, 2 · step …)
//
// where the transposition moves `dim` to the end, and is left out where it is there. With the rank of the result, which
// is one more, a `dim` that counts from the end (`unfold(-1, …)`) is another one: windows land after what follows them.
// A slice of the program has steps as well, and `narrow` computes its operands, until they are folded; that, stacked
// along the dimension, looks the same.
//
//===----------------------------------------------------------------------===//

#include "Windows.h"

#include "Unfold.h"
#include "ValueIndex.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// The integer that the constant `value` holds and nothing else; nullopt: it is none.
static std::optional<int64_t> findOne(const ValueIndex &values, StringRef value) {
  std::optional<SmallVector<int64_t>> held = values.findIntegers(value);
  return held && held->size() == 1 ? std::optional<int64_t>(held->front()) : std::nullopt;
}

/// Whether the permutation moves the dimension `axis`, counted from the end, there, and leaves the order of the others.
static bool movesToEnd(const NodeProto &node, int64_t axis) {
  for (const AttributeProto &attribute : node.attribute()) {
    if (attribute.name() != "perm")
      continue;
    const int64_t rank = attribute.ints_size(), moved = rank + axis;
    if (moved < 0)
      return false;
    for (int64_t at = 0; at != rank; ++at)
      if (attribute.ints(int(at)) != (at == rank - 1 ? moved : at + (at >= moved)))
        return false;
    return true;
  }
  return false;
}

/// The dimension along which the joined values are windows of one value; nullopt: they are not, or it counts from the
/// front.
static std::optional<int64_t> findWindows(const ValueIndex &values, const NodeProto &concat) {
  if (concat.op_type() != "Concat" || !concat.domain().empty() || concat.attribute_size() != 1 ||
      concat.input_size() < 2 || !findProgramNote(concat).empty())
    return std::nullopt;
  const int64_t axis = concat.attribute(0).i();
  if (axis >= 0)
    return std::nullopt;
  std::string whole;
  int64_t size = 0, step = 0;
  for (auto [i, input] : enumerate(concat.input())) {
    const NodeProto *unsqueeze = values.find(input, "Unsqueeze", 2);
    if (!unsqueeze || values.findReaders(input).size() != 1 || findOne(values, unsqueeze->input(1)) != axis)
      return std::nullopt;
    const NodeProto *slice = values.find(unsqueeze->input(0));
    if (slice && axis != -1)
      slice = slice->op_type() == "Transpose" && movesToEnd(*slice, axis) ? values.find(slice->input(0)) : nullptr;
    if (!slice || slice->op_type() != "Slice" || slice->input_size() != 4 || findOne(values, slice->input(3)) != axis)
      return std::nullopt;
    const std::optional<int64_t> start = findOne(values, slice->input(1)), end = findOne(values, slice->input(2));
    if (!start || !end)
      return std::nullopt;
    if (i == 0) {
      whole = slice->input(0);
      size = *end;
    } else if (i == 1) {
      step = *start;
    }
    if (slice->input(0) != whole || *start != int64_t(i) * step || *end != *start + size)
      return std::nullopt;
  }
  return step > 0 && size > 0 ? std::optional<int64_t>(axis) : std::nullopt;
}

std::vector<std::string> lowtide::restoreWindows(GraphProto &proto) {
  std::vector<std::string> restored;
  StringMap<int64_t> axes; // of results of Unsqueeze
  {
    const ValueIndex values(proto);
    for (NodeProto &concat : *proto.mutable_node())
      if (std::optional<int64_t> axis = findWindows(values, concat)) {
        concat.mutable_attribute(0)->set_i(*axis - 1);
        for (const std::string &input : concat.input())
          axes[input] = *axis - 1;
        restored.push_back(concat.output(0));
      }
  }
  if (restored.empty())
    return restored;
  SmallVector<NodeProto *> moved;
  for (NodeProto &node : *proto.mutable_node())
    if (node.output_size() && axes.contains(node.output(0)))
      moved.push_back(&node);
  UnfoldingGraph graph(proto);
  for (NodeProto *node : moved)
    node->set_input(1, graph.addIntegers({1}, {axes[node->output(0)]}));
  return restored;
}
