//===- LostOperations.cpp - operations that did nothing to first values ----------===//
//
// While a parameter s is zero, `exp(-s) · loss + s` is the loss: the exporter evaluates what depends on s alone, drops
// what adds zero or multiplies by one, and the file trains something else. The notes of the reader, or the program's
// signature where a result is meant, name the value that is gone. What it was computed of, nothing tells.
//
//===----------------------------------------------------------------------===//

#include "ProgramNames.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

static bool isArithmetic(StringRef name) {
  return is_contained({"add", "sub", "rsub", "mul", "div"}, operationName(name));
}

/// Whether all elements are zero, or all are one.
static bool isNeutral(const UnfoldingGraph &graph, const TensorProto &tensor) {
  constexpr size_t largest = size_t(1) << 18;
  std::string bytes = tensor.data_type() == TensorProto::FLOAT ? graph.read(tensor).value_or("") : "";
  if (bytes.size() < sizeof(float) || bytes.size() > largest)
    return false;
  float first;
  std::memcpy(&first, bytes.data(), sizeof(first));
  return (first == 0 || first == 1) &&
         StringRef(bytes).drop_front(sizeof(float)) == StringRef(bytes).drop_back(sizeof(float));
}

std::vector<std::string> lowtide::findLostOperations(const GraphProto &proto, const Signature &signature) {
  ProgramNames names(proto, signature);
  StringMap<const NodeProto *> producers;
  for (const NodeProto &node : proto.node())
    for (const std::string &output : node.output())
      producers[output] = &node;
  StringSet<> readByName;
  for (const NodeProto &node : proto.node())
    for (auto [operand, input] : enumerate(node.input()))
      if (!input.empty() && names.find(node, int(operand)) == input)
        readByName.insert(input);
  // Whole numbers are made of no parameter.
  StringSet<> whole;
  for (const auto &value : proto.value_info())
    if (const auto &type = value.type().tensor_type(); value.type().has_tensor_type() && !isFloatType(type.elem_type()))
      whole.insert(value.name());
  std::vector<std::string> lost;
  auto insert = [&](StringRef name) {
    if (!is_contained(lost, name))
      lost.push_back(name.str());
  };
  auto note = [&](StringRef name, StringRef value) {
    // What is called alike was computed twice, and merged; parts of an operation have no names of their own.
    if (isArithmetic(name) && names.isLost(name) &&
        (operationName(name) != operationName(value) || !readByName.contains(value)) && operationName(value) != "val" &&
        producers.contains(value) && !whole.contains(value))
      insert(name);
  };
  for (const NodeProto &node : proto.node())
    for (auto [operand, input] : enumerate(node.input()))
      if (!input.empty())
        note(names.find(node, int(operand)), input);
  for (auto [output, name] : zip(proto.output(), signature.getOutputs()))
    if (const NodeProto *node = producers.lookup(output.name()))
      if (StringRef own = findProgramResult(*node); !own.empty() && own != name && isArithmetic(name) &&
                                                    names.isLost(name) && operationName(own) != operationName(name))
        insert(name);
  return lost;
}

void lowtide::doubtLostOperations(UnfoldingGraph &graph, const GraphProto &proto, const Signature &signature) {
  // A layer's own parameters do not leave their operator.
  SmallVector<std::string> neutral;
  for (const SignatureEntry &entry : signature.getEntries())
    if (const TensorProto *tensor = entry.kind == SignatureEntry::Parameter ? graph.find(entry.target) : nullptr;
        tensor && leafOf(entry.target) != "weight" && leafOf(entry.target) != "bias" && isNeutral(graph, *tensor))
      neutral.push_back(entry.target);
  // A part of a parameter: the rest of it may have gone with the operations that read it.
  SmallVector<std::string> parts;
  std::string part;
  for (const auto &value : proto.value_info()) {
    std::vector<std::string> sources = findFoldedFrom(value);
    if (!graph.find(value.name()) || (!takesPart(value.name()) && none_of(sources, takesPart)))
      continue;
    for (const std::string &name : sources)
      if (const SignatureEntry *entry = signature.findTarget(name);
          entry && entry->kind == SignatureEntry::Parameter && !graph.find(name) && !is_contained(parts, name)) {
        parts.push_back(name);
        part = part.empty() || takesPart(value.name()) ? value.name() : part;
      }
  }
  if (neutral.empty() && parts.empty())
    return;
  std::vector<std::string> lost = findLostOperations(proto, signature);
  if (lost.empty())
    return;
  if (!parts.empty())
    graph.addDoubt(
        {FindingKind::ElementsLost, part, {parts.begin(), parts.end()}, {{"operations", llvm::join(lost, ", ")}}});
  if (neutral.empty())
    return;
  graph.addDoubt({FindingKind::OperationsLost,
                  neutral.front(),
                  {neutral.begin(), neutral.end()},
                  {{"operations", llvm::join(lost, ", ")}}});
}
