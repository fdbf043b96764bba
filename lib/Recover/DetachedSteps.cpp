//===- DetachedSteps.cpp - steps that two operations share although one detaches ----===//
//
// `mse_loss(q, z.detach())` and `q - z` of a program differ by what is detached, and the exporter's difference within
// the loss is the program's: each operation gets a step of its own.
//
//===----------------------------------------------------------------------===//

#include "Detached.h"

#include "lowtide/OnnxModel/NodeOrder.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <map>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Whether input `at` of `node` is the value that the program detached, as in `add(detach(h - p), p)`: as many are
/// read, and others are in their places, or the node is the operation itself.
static bool isInPlace(const NodeProto &node, ArrayRef<std::string> operands, size_t at) {
  const StringRef operation = findProgramNote(node).split("target=torch.ops.aten.").second.split('.').first;
  bool isTold = operation.equals_insensitive(node.op_type());
  for (size_t i = 0; i != operands.size() && node.input_size() == int(operands.size()); ++i)
    if (i != at && node.input(int(i)) == operands[i])
      isTold = true;
    else if (!isDetachName(operands[i]))
      return false;
  return isTold && node.input_size() == int(operands.size());
}

void lowtide::splitSteps(GraphProto &graph) {
  StringMap<int> producers;
  for (auto [i, node] : enumerate(graph.node()))
    for (const std::string &output : node.output())
      producers[output] = int(i);
  std::map<int, std::vector<NodeProto>> added;
  StringMap<std::string> stepOf; // by operation and value
  auto isOwn = [](ArrayRef<std::string> operands, const NodeProto &step) {
    // What the two operations read is the same, except that one of them detaches: one value by each name.
    std::vector<std::string> own = findProgramOperands(step);
    StringMap<StringRef> detachedAs;
    return own.size() == operands.size() && int(own.size()) == step.input_size() &&
           all_of(zip(own, operands), [&](auto pair) {
             const auto &[a, b] = pair;
             if (a == b)
               return true;
             auto stands = [&](StringRef name, StringRef value) {
               return isDetachName(name) && detachedAs.try_emplace(name, value).first->second == value;
             };
             return stands(a, b) || stands(b, a);
           });
  };
  for (NodeProto &node : *graph.mutable_node()) {
    StringRef result = findProgramResult(node);
    std::vector<std::string> operands = findProgramOperands(node);
    if (result.empty() || none_of(operands, isDetachName))
      continue;
    for (auto [at, input] : enumerate(*node.mutable_input())) {
      auto producer = producers.find(input);
      if (producer == producers.end() || isInPlace(node, operands, at))
        continue;
      const NodeProto &step = graph.node(producer->second);
      StringRef other = findProgramResult(step);
      if (other.empty() || other == result || is_contained(operands, other) || step.output_size() != 1 ||
          !isOwn(operands, step))
        continue;
      auto [name, isNew] = stepOf.try_emplace((result + " " + input).str(), input + "@" + result.str());
      if (isNew) {
        NodeProto copy = step;
        copy.set_name(step.name() + "@" + result.str());
        copy.set_output(0, name->second);
        *copy.mutable_metadata_props() = node.metadata_props();
        added[producer->second].push_back(std::move(copy));
      }
      input = name->second;
    }
  }
  insertAfter(graph, std::move(added));
}
