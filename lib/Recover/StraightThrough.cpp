//===- StraightThrough.cpp - differences that a program detaches -------------------===//
//
// `h + (q - h).detach()` has the value of q and the gradient of h; so have `h - (h - q).detach()` and
// `q.detach() - h.detach() + h`. PyTorch's old exporter writes `h + (q - h)`, which is q, and which no program writes.
//
//===----------------------------------------------------------------------===//

#include "StraightThrough.h"

#include "Detached.h"
#include "Makers.h"

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

/// The operand of `sum` that is a difference to the other one; -1: none is.
static int findDetachedOperand(const Makers &makers, const NodeProto &sum) {
  const bool isAdd = sum.op_type() == "Add";
  if ((!isAdd && sum.op_type() != "Sub") || !sum.domain().empty() || sum.input_size() != 2 ||
      !findProgramNote(sum).empty())
    return -1;
  for (int operand : {1, 0}) {
    const NodeProto *difference = makers.find(sum.input(operand), "Sub", 2);
    const std::string &kept = sum.input(1 - operand);
    if (!difference || (!isAdd && operand == 0))
      continue;
    // h + (q - h), h - (h - q)
    const std::string &taken = difference->input(isAdd), &made = difference->input(!isAdd);
    if (taken == kept && made != kept && (isMadeOf(makers, made, kept) || isMadeOf(makers, kept, made)))
      return operand;
  }
  return -1;
}

std::vector<std::string> lowtide::restoreStraightThrough(GraphProto &graph) {
  std::vector<std::string> found;
  SmallVector<std::pair<int, int>> places;
  const Makers makers(graph);
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
