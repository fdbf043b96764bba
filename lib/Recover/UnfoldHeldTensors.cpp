//===- UnfoldHeldTensors.cpp - tensors that no module of the program holds --------===//
//
// A program that keeps parameters in a list or a dictionary as well (`self.decayed = [p for p in …]`) reads them there,
// and the exporter writes copies, `lifted_tensor_3`, from which no gradient comes back: a penalty on weights has none.
// A term of the loss that is made of constants alone would be of no use, so that one that equals a parameter bit by bit
// is that parameter. What else equals one may be a copy: a teacher in a list, the weights that a penalty keeps near.
//
//===----------------------------------------------------------------------===//

#include "TableValues.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace {
using Entry = const SignatureEntry *;

class HeldTensors {
public:
  HeldTensors(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature);
  void run();

private:
  bool isHeld(StringRef name) const;
  bool endsInLoss(StringRef value) const;
  bool isTerm(StringRef value, SmallVectorImpl<std::string> &sums) const;
  bool isReadNextTo(StringRef value, ArrayRef<Entry> others) const;
  std::vector<Entry> findEqual(const TensorProto &tensor) const;
  std::vector<std::string> findUnread() const;

  UnfoldingGraph &graph;
  GraphProto &proto;
  const Signature &signature;
  StringMap<SmallVector<std::pair<NodeProto *, int>>> readers;
  StringSet<> outputs;
  /// Values that are made of constants alone.
  StringSet<> constants;
};
} // namespace

HeldTensors::HeldTensors(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature)
    : graph(graph), proto(proto), signature(signature) {
  for (const auto &output : proto.output())
    outputs.insert(output.name());
  for (const TensorProto &tensor : proto.initializer()) {
    Entry entry = signature.findTarget(tensor.name());
    if (!entry || (entry->kind == SignatureEntry::Constant && !entry->mutated))
      constants.insert(tensor.name());
  }
  for (NodeProto &node : *proto.mutable_node()) {
    for (auto [operand, input] : enumerate(node.input()))
      readers[input].push_back({&node, int(operand)});
    if (all_of(node.input(), [&](const std::string &input) { return input.empty() || constants.contains(input); }))
      for (const std::string &output : node.output())
        constants.insert(output);
  }
}

/// Whether the exporter named a tensor of the program that it found in no module.
bool HeldTensors::isHeld(StringRef name) const {
  Entry entry = signature.findTarget(name);
  return entry && entry->kind == SignatureEntry::Constant && leafOf(name).starts_with("lifted_tensor_");
}

/// Whether the value only adds to what the graph hands out.
bool HeldTensors::endsInLoss(StringRef value) const {
  auto at = readers.find(value);
  if (at == readers.end())
    return outputs.contains(value);
  return all_of(at->second, [&](auto read) {
    const NodeProto &node = *read.first;
    const bool adds = StringSwitch<bool>(node.op_type())
                          .Cases({"Add", "Sub", "Sum", "Identity", "Squeeze", "Unsqueeze"}, true)
                          .Cases({"Reshape", "ReduceSum", "ReduceMean", "Cast"}, true)
                          .Default(false);
    return adds && node.output_size() == 1 && endsInLoss(node.output(0));
  });
}

/// Whether all that is made of the constant is added to the loss; `sums` gets the values where that is done.
bool HeldTensors::isTerm(StringRef value, SmallVectorImpl<std::string> &sums) const {
  auto at = readers.find(value);
  if (at == readers.end() || outputs.contains(value))
    return false;
  return all_of(at->second, [&](auto read) {
    const NodeProto &node = *read.first;
    if (node.output_size() != 1)
      return false;
    const std::string &result = node.output(0);
    if (constants.contains(result))
      return isTerm(result, sums);
    const bool isSum = is_contained({"Add", "Sub", "Sum"}, StringRef(node.op_type()));
    if (!isSum || !(outputs.contains(result) || endsInLoss(result)))
      return false;
    sums.push_back(result);
    return true;
  });
}

bool HeldTensors::isReadNextTo(StringRef value, ArrayRef<Entry> others) const {
  return any_of(readers.lookup(value), [&](auto read) {
    return any_of(others, [&](Entry other) { return is_contained(read.first->input(), other->target); });
  });
}

/// Parameters of the file that began with the tensor's values, and are of its shape.
std::vector<Entry> HeldTensors::findEqual(const TensorProto &tensor) const {
  std::vector<Entry> found;
  std::optional<std::string> bytes;
  auto isAlike = [&](const TensorProto &other) {
    return other.data_type() == tensor.data_type() && equal(other.dims(), tensor.dims());
  };
  for (const SignatureEntry &entry : signature.getEntries()) {
    const TensorProto *other = entry.kind == SignatureEntry::Parameter ? graph.find(entry.target) : nullptr;
    if (!other || !isAlike(*other))
      continue;
    if (!bytes && !(bytes = graph.read(tensor)))
      return {};
    if (graph.read(*other) == bytes)
      found.push_back(&entry);
  }
  return found;
}

/// Parameters that are in the file in no form, and that no operation reads.
std::vector<std::string> HeldTensors::findUnread() const {
  StringSet<> known;
  for (const NodeProto &node : proto.node())
    for (const std::string &operand : findProgramOperands(node))
      known.insert(operand);
  for (const auto &value : proto.value_info())
    for (const std::string &name : findFoldedFrom(value))
      known.insert(name);
  std::vector<std::string> unread;
  for (const SignatureEntry &entry : signature.getEntries())
    if (entry.kind == SignatureEntry::Parameter && !graph.find(entry.target) && !known.contains(entry.target) &&
        !known.contains(entry.placeholder))
      unread.push_back(entry.target);
  return unread;
}

void HeldTensors::run() {
  std::vector<std::string> restored, copies, terms, sums;
  bool readsNumbers = false;
  for (const TensorProto &tensor : proto.initializer()) {
    const std::string &name = tensor.name();
    if (!isHeld(name) || !isFloatType(tensor.data_type()))
      continue;
    const std::vector<Entry> equal = findEqual(tensor);
    SmallVector<std::string> added;
    if (!isReadNextTo(name, equal) && isTerm(name, added) && !added.empty()) {
      if (equal.size() != 1) {
        terms.push_back(name);
        sums.push_back(added.front());
        continue;
      }
      for (auto [node, operand] : readers.lookup(name))
        node->set_input(operand, equal.front()->target);
      restored.push_back(equal.front()->target);
    } else if (!equal.empty() && readers.contains(name) && !isReadNextTo(name, equal) &&
               !hasEqualElements(*graph.read(tensor), findElementType(tensor.data_type())->bytes)) {
      copies.push_back(equal.front()->target);
    } else if (equal.empty() && readers.contains(name)) {
      readsNumbers = readsNumbers || followsNoRule(tensor, graph.read(tensor).value_or(""));
    }
  }
  // What was evaluated of such tensors, and added to the loss.
  for (const auto &value : proto.value_info()) {
    const TensorProto *tensor = graph.find(value.name());
    SmallVector<std::string> added;
    if (!tensor || !isFloatType(tensor->data_type()) || !isTerm(value.name(), added) || added.empty())
      continue;
    for (const std::string &name : findFoldedFrom(value))
      if (isHeld(name)) {
        terms.push_back(name);
        sums.push_back(added.front());
      }
  }
  if (!restored.empty())
    graph.addDoubt({FindingKind::HeldParametersRestored, restored.front(), restored});
  if (!copies.empty())
    graph.addDoubt({FindingKind::HeldParametersCopied, copies.front(), copies});
  if (!terms.empty())
    graph.addDoubt({FindingKind::LossTermConstant, sums.front(), terms});
  if (readsNumbers)
    if (std::vector<std::string> unread = findUnread(); !unread.empty())
      graph.addDoubt({FindingKind::HeldParametersLost, "", unread});
}

void lowtide::unfoldHeldTensors(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  if (any_of(signature.getEntries(), [](const SignatureEntry &entry) {
        return entry.kind == SignatureEntry::Constant && leafOf(entry.target).starts_with("lifted_tensor_");
      }))
    HeldTensors(graph, proto, signature).run();
}
