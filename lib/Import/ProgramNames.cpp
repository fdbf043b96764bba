//===- ProgramNames.cpp - what the exported program called what a node reads -----===//

#include "ProgramNames.h"

#include "TensorData.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

ProgramNames::ProgramNames(const GraphProto &graph, const Signature &signature) : signature(signature) {
  for (const auto &input : graph.input())
    known.insert(input.name());
  for (const TensorProto &tensor : graph.initializer()) {
    known.insert(tensor.name());
    if (!isFloatType(tensor.data_type()))
      integers.insert(tensor.name());
  }
  for (const NodeProto &node : graph.node()) {
    for (const std::string &output : node.output()) {
      known.insert(output);
      if (node.op_type() == "Constant")
        integers.insert(output);
    }
    for (const std::string &operand : findProgramOperands(node))
      mentioned.insert(operand);
  }
}

std::string ProgramNames::find(const NodeProto &node, int operand) const {
  std::vector<std::string> operands = findProgramOperands(node);
  StringRef value = node.input(operand);
  if (isRewritten(node) || operands.empty())
    return "";
  if (const SignatureEntry *entry = signature.findTarget(value); entry && is_contained(operands, entry->placeholder))
    return entry->placeholder;
  // Settings (axes, shapes) are no operands of the program.
  SmallVector<int> values;
  for (auto [i, input] : enumerate(node.input()))
    if (!input.empty() && !integers.contains(input))
      values.push_back(int(i));
  if (values.size() == operands.size())
    return operands[size_t(llvm::find(values, operand) - values.begin()) % operands.size()];
  // One node of several that an operation became.
  if (is_contained(operands, value))
    return value.str();
  std::string found;
  for (const std::string &name : operands)
    if (isLost(name) && operationName(name) == operationName(value)) {
      if (!found.empty())
        return "";
      found = name;
    }
  return found;
}
