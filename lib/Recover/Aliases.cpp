//===- Aliases.cpp - values that a decomposed program calls alias -----------------===//
//
// PyTorch's decompositions are meant for programs whose backward pass was traced, and write `alias` for `detach`.
//
//===----------------------------------------------------------------------===//

#include "Aliases.h"

#include "StraightThrough.h"
#include "Unfold.h"
#include "ValueIndex.h"

#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Whether decompositions leave no operation of this name: a program that holds one keeps its `detach`, too.
static bool isTakenApart(StringRef op) {
  return StringSwitch<bool>(op.take_until([](char c) { return c == '.'; }))
      .Cases({"linear", "matmul", "conv1d", "conv2d", "conv3d", "layer_norm", "group_norm", "batch_norm", "dropout"},
             true)
      .Cases({"softmax", "log_softmax", "cross_entropy_loss", "nll_loss_nd", "mse_loss", "silu", "detach"}, true)
      .Cases(
          {"reshape", "flatten", "transpose", "einsum", "chunk", "pad", "gru", "lstm", "scaled_dot_product_attention"},
          true)
      .Default(false);
}

/// Whether decompositions make operations of this name, and neither programs nor the exporter do: it makes
/// `native_dropout` of a dropout that draws and `convolution` of a transposed or padded one, and keeps `detach`.
static bool isPart(StringRef op) {
  return StringSwitch<bool>(op.take_until([](char c) { return c == '.'; }))
      .Cases({"_softmax", "_log_softmax", "native_layer_norm", "native_group_norm", "nll_loss_forward"}, true)
      .Default(false);
}

static bool isDecomposed(const GraphProto &graph) {
  bool keepsWhole = false;
  for (const NodeProto &node : graph.node()) {
    const std::string full = findProgramOperator(node);
    StringRef op = full;
    if (!op.consume_front("aten."))
      continue;
    if (isPart(op)) // a table of decompositions may leave some operations whole
      return true;
    keepsWhole |= isTakenApart(op);
  }
  return !keepsWhole;
}

std::vector<std::string> lowtide::findAliases(const GraphProto &graph) {
  std::vector<std::string> found;
  auto isAlias = [](StringRef name) { return operationName(name) == "alias"; };
  const Signature signature(graph);
  auto isParameter = [&](StringRef name) {
    const SignatureEntry *entry = signature.findTarget(name);
    return entry && entry->kind == SignatureEntry::Parameter;
  };
  auto isEvaluatedAlias = [&](const ::onnx::ValueInfoProto &value) {
    const std::vector<std::string> made = findFoldedFrom(value);
    return any_of(made, isAlias) && any_of(made, isParameter);
  };
  auto namesAlias = [&](const NodeProto &node) {
    return any_of(findProgramOperands(node), [&](StringRef name) { return isAlias(name) && !signature.isInput(name); });
  };
  if (!signature.isPresent() || (none_of(graph.node(), namesAlias) && none_of(graph.value_info(), isEvaluatedAlias)) ||
      !isDecomposed(graph))
    return found;
  StringSet<> trained, whole;
  for (const auto &tensor : graph.initializer())
    if (isFloatType(tensor.data_type()))
      trained.insert(tensor.name());
  for (const auto &value : graph.value_info())
    if (int32_t type = value.type().tensor_type().elem_type(); type != 0 && !isFloatType(type))
      whole.insert(value.name());
    else if (isEvaluatedAlias(value))
      found.push_back(value.name());
  const ValueIndex values(graph);
  for (const NodeProto &node : graph.node()) {
    auto flows = [&](StringRef value) { return trained.contains(value) && !whole.contains(value); };
    if (none_of(node.input(), flows))
      continue;
    trained.insert(node.output().begin(), node.output().end());
    const std::vector<std::string> operands = findProgramOperands(node);
    // What the operation does not name, and is no step of it.
    auto mayBeAlias = [&](StringRef input) {
      const SignatureEntry *entry = signature.findTarget(input);
      const NodeProto *maker = values.find(input);
      return flows(input) && (isAlias(input) || (!is_contained(operands, input) &&
                                                 !(entry && is_contained(operands, entry->placeholder)) &&
                                                 !(maker && findProgramNote(*maker) == findProgramNote(node))));
    };
    if (!namesAlias(node) || none_of(node.input(), mayBeAlias) ||
        all_of(node.output(), [&](StringRef output) { return whole.contains(output); }) ||
        isFlat(values, node.output(0)))
      continue;
    const std::string module = findModulePath(node).value_or("");
    for (const std::string &name : operands)
      if (isAlias(name) && !signature.isInput(name))
        if (std::string words = module.empty() ? name : name + " (" + module + ")"; !is_contained(found, words))
          found.push_back(std::move(words));
  }
  return found;
}
