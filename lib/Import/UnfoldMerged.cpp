//===- UnfoldMerged.cpp - readers that the exporter merged -----------------------===//
//
// Two tokens that begin as zeros are one initializer, and then their readers are one node as well: `cls` and `dist` are
// both what the one `Expand` gives. The notes of whoever reads that twice still name two values of the program. Where
// exactly one parameter is gone, the second value is its.
//
//===----------------------------------------------------------------------===//

#include "TensorData.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Parameters of the program that no tensor of the file is, or was evaluated from.
static SmallVector<const SignatureEntry *> findGone(const UnfoldingGraph &graph, const GraphProto &proto,
                                                    const Signature &signature) {
  StringSet<> present;
  for (const auto &value : proto.value_info())
    for (const std::string &name : findFoldedFrom(value))
      present.insert(name);
  SmallVector<const SignatureEntry *> gone;
  for (const SignatureEntry &entry : signature.getEntries())
    if (entry.kind == SignatureEntry::Parameter && !graph.find(entry.target) && !present.contains(entry.target))
      gone.push_back(&entry);
  return gone;
}

/// The parameter that `node` spreads over the batch and that may have been merged with another: all elements equal.
static const TensorProto *findSpread(const UnfoldingGraph &graph, const Signature &signature, const NodeProto &node) {
  const TensorProto *tensor = node.op_type() == "Expand" ? graph.find(node.input(0)) : nullptr;
  const SignatureEntry *entry = tensor ? signature.findTarget(tensor->name()) : nullptr;
  if (!entry || entry->kind != SignatureEntry::Parameter)
    return nullptr;
  std::string bytes = graph.read(*tensor).value_or("");
  size_t width = isFloatType(tensor->data_type()) ? findElementType(tensor->data_type())->bytes : 0;
  bool isRegular =
      width && bytes.size() > width && StringRef(bytes).drop_front(width) == StringRef(bytes).drop_back(width);
  return isRegular ? tensor : nullptr;
}

void lowtide::unfoldMergedReaders(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  SmallVector<const SignatureEntry *> gone = findGone(graph, proto, signature);
  if (gone.empty())
    return;
  StringMap<int> producers;
  for (auto [i, node] : enumerate(proto.node()))
    for (const std::string &output : node.output())
      producers[output] = int(i);
  const TensorProto *merged = nullptr;
  std::string second;
  SmallVector<std::pair<int, int>> reads;
  int spread = -1;
  for (int i = 0, e = proto.node_size(); i != e; ++i) {
    const NodeProto &node = proto.node(i);
    std::vector<std::string> operands = findProgramOperands(node);
    if (int(operands.size()) != node.input_size())
      continue;
    for (int operand = 0; operand != node.input_size(); ++operand) {
      auto producer = producers.find(node.input(operand));
      // The program's value is this node's, or another's that is gone.
      if (producer == producers.end() || operands[operand] == node.input(operand) ||
          producers.contains(operands[operand]))
        continue;
      const TensorProto *tensor = findSpread(graph, signature, proto.node(producer->second));
      if (!tensor)
        continue;
      if (merged && (merged != tensor || second != operands[operand] || spread != producer->second))
        return; // more than one value is gone: whose they are is not known
      merged = tensor;
      second = operands[operand];
      spread = producer->second;
      reads.emplace_back(i, operand);
    }
  }
  // It belongs to the module that spreads both. Others that are gone were merged where a layer reads them.
  llvm::erase_if(gone, [&](const SignatureEntry *entry) {
    return !merged || moduleOf(entry->target) != moduleOf(merged->name());
  });
  if (gone.size() != 1)
    return;
  const std::string &name = gone.front()->target;
  SmallVector<int64_t> dims(merged->dims().begin(), merged->dims().end());
  graph.addInitializer(name, dims, merged->data_type(), *graph.read(*merged),
                       {"", "it began equal to " + merged->name() + ", and the exporter merged the two", {}, {}, true});
  for (auto [node, operand] : reads)
    proto.mutable_node(node)->set_input(operand, second);
  NodeProto apart = proto.node(spread);
  apart.set_input(0, name);
  apart.set_output(0, second);
  apart.set_name(apart.name() + "_apart");
  graph.insertNode(spread + 1, std::move(apart));
}
