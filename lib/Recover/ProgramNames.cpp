//===- ProgramNames.cpp - what the exported program called what a node reads -----===//

#include "ProgramNames.h"

#include "Detached.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

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
  StringMap<std::map<unsigned, int>> byKind;
  for (auto [i, node] : llvm::enumerate(graph.node())) {
    StringRef result = findProgramResult(node);
    if (!result.empty())
      byKind[operationName(result)].try_emplace(operationNumber(result), int(i));
    resultOf.push_back(isRewritten(node) ? "" : result.str());
    for (const std::string &output : node.output()) {
      known.insert(output);
      if (node.op_type() == "Constant")
        integers.insert(output);
    }
    for (const std::string &operand : findProgramOperands(node))
      mentioned.insert(operand);
  }
  for (const auto &kind : byKind) {
    Results &found = results[kind.first()];
    for (auto [number, node] : kind.second) {
      found.isInOrder &= found.nodes.empty() || found.nodes.back() < node;
      found.numbers.push_back(number);
      found.nodes.push_back(node);
    }
  }
  countReaders(graph);
}

void ProgramNames::countReaders(const GraphProto &graph) {
  StringSet<> outputs;
  for (const std::string &name : signature.getOutputs())
    outputs.insert(name);
  for (const SignatureEntry &entry : signature.getEntries())
    if (!entry.assigned.empty())
      outputs.insert(entry.assigned);
  for (const NodeProto &node : graph.node()) {
    std::optional<int64_t> users = findProgramUsers(node);
    StringRef name = findProgramResult(node);
    // The result of the operation's last node; inner ones go by other names.
    bool isOutput = outputs.contains(name);
    if (users && node.output_size() == 1 && (node.output(0) == name || isOutput) && !isRewritten(node))
      readers[node.output(0)] = {name.str(), *users - isOutput, {}, 0};
  }
  for (const NodeProto &node : graph.node()) {
    const bool wasDetached = isDetach(node) && findProgramNote(node).empty();
    std::vector<std::string> operands = findProgramOperands(node);
    SmallVector<Readers *> unnamed;
    for (const std::string &input : node.input())
      if (auto at = readers.find(input); at == readers.end())
        continue;
      else if (wasDetached)
        ++at->second.numDetached;
      else if (is_contained(operands, at->second.name))
        at->second.inFile.insert(findProgramResult(node));
      else if (!is_contained(unnamed, &at->second))
        unnamed.push_back(&at->second);
    // What only copied the value, and was removed, read it.
    if (unnamed.size() == 1)
      for (const std::string &operand : operands)
        if (isLost(operand) && movesElements(operand) && operationName(operand) != operationName(unnamed.front()->name))
          unnamed.front()->inFile.insert(operand);
  }
}

/// How many results of the kind the file lacks of those before `reader`; nullopt: there may be any number.
std::optional<size_t> ProgramNames::countLostResults(StringRef kind, int reader) const {
  const auto at = results.find(kind);
  if (at == results.end())
    return std::nullopt;
  const auto &[numbers, nodes, isInOrder] = at->second;
  // Up to the last one before the reader, and on to the next one, which comes after it.
  auto isBefore = [&](int node) { return node < reader; };
  const size_t present = isInOrder ? size_t(llvm::partition_point(nodes, isBefore) - nodes.begin())
                                   : size_t(nodes.rend() - std::find_if(nodes.rbegin(), nodes.rend(), isBefore));
  if (present == numbers.size())
    return std::nullopt;
  return numbers[present] - present;
}

bool ProgramNames::mayRunAgain(const std::set<int> &nodes, size_t times, int reader) const {
  StringMap<StringSet<>> kinds;
  for (int index : nodes)
    if (StringRef result = resultOf[size_t(index)]; !result.empty())
      kinds[operationName(result)].insert(result);
  return all_of(kinds, [&](const auto &kind) {
    std::optional<size_t> lost = countLostResults(kind.first(), reader);
    return !lost || *lost >= times * kind.second.size();
  });
}

std::optional<int64_t> ProgramNames::countLostReaders(StringRef value) const {
  auto at = readers.find(value);
  if (at == readers.end())
    return std::nullopt;
  return at->second.inProgram - int64_t(at->second.inFile.size());
}

std::string ProgramNames::find(const NodeProto &node, int operand) const {
  std::vector<std::string> operands = findProgramOperands(node);
  StringRef value = node.input(operand);
  if (isDetach(node) && findProgramNote(node).empty())
    if (auto at = readers.find(value); at != readers.end()) {
      int64_t left = at->second.inProgram - int64_t(at->second.inFile.size());
      return left >= int64_t(at->second.numDetached) ? value.str() : left > 0 ? "" : (value + "@detach").str();
    }
  if (isRewritten(node) || operands.empty())
    return "";
  if (const SignatureEntry *entry = signature.findTarget(value); entry && is_contained(operands, entry->placeholder))
    return entry->placeholder;
  // Settings (axes, shapes) are no operands of the program.
  SmallVector<int> values;
  for (auto [i, input] : enumerate(node.input()))
    if (!input.empty() && !integers.contains(input))
      values.push_back(int(i));
  if (auto at = llvm::find(values, operand); at != values.end() && values.size() == operands.size())
    return operands[size_t(at - values.begin())];
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
