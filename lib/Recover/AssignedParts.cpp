//===- AssignedParts.cpp - what a program writes into parts of its buffers --------===//

#include "AssignedParts.h"

#include "Detached.h"
#include "ProgramNames.h"
#include "Unfold.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

std::vector<std::string> lowtide::detachAssignedParts(GraphProto &graph) {
  std::vector<std::string> found;
  const Signature signature(graph);
  StringSet<> assigned;
  for (const SignatureEntry &entry : signature.getEntries())
    if (entry.kind == SignatureEntry::Buffer && !entry.assigned.empty())
      assigned.insert(entry.assigned);
  if (assigned.empty())
    return found;
  const ProgramNames names(graph, signature);
  ::google::protobuf::RepeatedPtrField<NodeProto> nodes;
  for (NodeProto &node : *graph.mutable_node()) {
    // Of `slice_scatter` and `select_scatter`: the whole, and what is written into it.
    const std::vector<std::string> operands = findProgramOperands(node);
    if (StringRef(node.op_type()).starts_with("Scatter") && node.input_size() == 3 && operands.size() > 1 &&
        assigned.contains(findProgramResult(node)) && operationName(operands[1]) == "copy" &&
        names.isLost(operands[1])) {
      const std::string written = node.input(2), detached = written + "@written";
      *nodes.Add() = makeDetach(detached, written, detached, node);
      node.set_input(2, detached);
      found.push_back(node.output(0));
    }
    nodes.Add()->Swap(&node);
  }
  graph.mutable_node()->Swap(&nodes);
  return found;
}
