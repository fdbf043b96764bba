//===- StraightThrough.cpp - differences that a program detaches -------------------===//
//
// `h + (q - h).detach()` has the value of q and the gradient of h; so have `h - (h - q).detach()`,
// `q.detach() - h.detach() + h` and `q + h - h.detach()`. PyTorch's old exporter writes `h + (q - h)` or `(q + h) - h`,
// which are q, and which no program writes.
//
//===----------------------------------------------------------------------===//

#include "StraightThrough.h"

#include "Detached.h"
#include "ValueIndex.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Whether `value` is computed of `source`; not looked for farther than a few hundred nodes.
static bool isMadeOf(const Makers &makers, StringRef value, StringRef source) {
  constexpr size_t farthest = 512;
  SmallVector<StringRef> open{value};
  SmallPtrSet<const NodeProto *, 16> seen;
  while (!open.empty() && seen.size() < farthest) {
    const StringRef next = open.pop_back_val();
    if (next == source)
      return true;
    if (const NodeProto *node = makers.find(next); node && seen.insert(node).second)
      open.append(node->input().begin(), node->input().end());
  }
  return false;
}

bool lowtide::isFlat(const ValueIndex &values, StringRef value) {
  const NodeProto *node = values.find(value);
  if (!node)
    return false;
  if (is_contained({"Ceil", "Floor", "OneHot", "Round", "Sign"}, node->op_type()))
    return true;
  if (node->op_type() == "Where" && node->input_size() == 3)
    return values.isConstant(node->input(1)) && values.isConstant(node->input(2));
  // Bounded, at a zero point and scaled, as quantization does it.
  if (node->op_type() == "Cast" || node->op_type() == "Clip")
    return isFlat(values, node->input(0));
  if (is_contained({"Add", "Div", "Mul", "Sub"}, node->op_type()) && node->input_size() == 2)
    return isFlat(values, node->input(0)) && values.isConstant(node->input(1));
  return false;
}

/// Whether two values are computed alike: the old exporter writes what a program computes twice twice.
static bool isSame(const ValueIndex &values, StringRef one, StringRef other, int steps = 4) {
  if (one == other)
    return true;
  const ::onnx::TensorProto *number = values.findTensor(one), *otherNumber = values.findTensor(other);
  if (number && otherNumber)
    return values.findNumber(one) && values.findNumber(one) == values.findNumber(other);
  const NodeProto *node = values.find(one), *twin = values.find(other);
  if (!node || !twin || !steps || node->op_type() != twin->op_type() || node->output_size() != 1 ||
      node->attribute_size() != twin->attribute_size() || node->input_size() != twin->input_size() ||
      is_contained({"Dropout", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"},
                   node->op_type()))
    return false;
  return all_of(zip(node->attribute(), twin->attribute()),
                [](const auto &pair) {
                  return std::get<0>(pair).SerializeAsString() == std::get<1>(pair).SerializeAsString();
                }) &&
         all_of(zip(node->input(), twin->input()),
                [&](const auto &pair) { return isSame(values, std::get<0>(pair), std::get<1>(pair), steps - 1); });
}

/// The operand of `sum` that is a difference to the other one, or that was added before it is taken away; -1: none is.
static int findDetachedOperand(const ValueIndex &makers, const NodeProto &sum) {
  const bool isAdd = sum.op_type() == "Add";
  if ((!isAdd && sum.op_type() != "Sub") || !sum.domain().empty() || sum.input_size() != 2 ||
      !findProgramNote(sum).empty())
    return -1;
  auto isForward = [&](StringRef made, StringRef kept) {
    return made != kept && (isFlat(makers, made) || isMadeOf(makers, made, kept) || isMadeOf(makers, kept, made));
  };
  for (int operand : {1, 0}) {
    const NodeProto *difference = makers.find(sum.input(operand), "Sub", 2);
    const std::string &kept = sum.input(1 - operand);
    if (!difference || (!isAdd && operand == 0))
      continue;
    // h + (q - h), h - (h - q)
    const std::string &taken = difference->input(isAdd), &made = difference->input(!isAdd);
    if (isForward(made, kept) && isSame(makers, taken, kept))
      return operand;
  }
  // q + h - h
  if (const NodeProto *whole = isAdd ? nullptr : makers.find(sum.input(0), "Add", 2))
    for (int operand : {1, 0})
      if (isForward(whole->input(1 - operand), whole->input(operand)) &&
          isSame(makers, sum.input(1), whole->input(operand)))
        return 1;
  return -1;
}

std::vector<std::string> lowtide::restoreStraightThrough(GraphProto &graph) {
  std::vector<std::string> found;
  SmallVector<std::pair<int, int>> places;
  const ValueIndex makers(graph);
  for (auto [i, node] : enumerate(graph.node()))
    if (int operand = findDetachedOperand(makers, node); operand >= 0)
      places.emplace_back(int(i), operand);
  for (auto [index, operand] : places) {
    NodeProto &sum = *graph.mutable_node(index);
    const std::string difference = sum.input(operand), detached = sum.output(0) + "@detach";
    found.push_back(sum.output(0));
    sum.set_input(operand, detached);
    *graph.add_node() = makeDetach(detached, difference, detached, graph.node(index));
  }
  return found;
}
