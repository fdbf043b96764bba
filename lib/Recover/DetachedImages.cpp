//===- DetachedImages.cpp - detached parameters that an exporter evaluated --------===//
//
// What depends on no input is evaluated, with the `detach` in it: the notes of the tensor name it among the operations
// that made the tensor.
//
//===----------------------------------------------------------------------===//

#include "DetachedImages.h"

#include "Detached.h"
#include "Unfold.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Whether the operation reads one value, whose gradient is lost as a whole where it is detached.
static bool readsOneValue(StringRef name) {
  return movesElements(name) ||
         StringSwitch<bool>(operationName(name))
             .Cases({"abs", "exp", "log", "neg", "pow", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign"},
                    true)
             .Cases({"softplus", "sqrt", "square", "tanh", "softmax", "_softmax", "log_softmax", "_log_softmax"}, true)
             .Cases({"mean", "sum", "amax", "amin", "std", "var", "norm", "linalg_vector_norm", "flip", "roll"}, true)
             .Default(false);
}

std::vector<std::string> lowtide::restoreDetachedImages(GraphProto &graph) {
  std::vector<std::string> unknown;
  const Signature signature(graph);
  if (!signature.isPresent())
    return unknown;
  StringSet<> tensors, detached;
  for (const ::onnx::TensorProto &tensor : graph.initializer())
    tensors.insert(tensor.name());
  for (const auto &value : graph.value_info()) {
    const std::vector<std::string> made = findFoldedFrom(value);
    auto isParameter = [&](StringRef name) {
      const SignatureEntry *entry = signature.findTarget(name);
      return entry && entry->kind == SignatureEntry::Parameter;
    };
    if (!tensors.contains(value.name()) || none_of(made, isParameter) ||
        none_of(made, [](StringRef name) { return operationName(name) == "detach"; }))
      continue;
    if (all_of(made, [&](StringRef name) { return isParameter(name) || readsOneValue(name); }) &&
        readsOneValue(value.name()))
      detached.insert(value.name());
    else
      unknown.push_back(value.name());
  }
  if (detached.empty())
    return unknown;
  ::google::protobuf::RepeatedPtrField<NodeProto> nodes;
  StringSet<> written;
  for (NodeProto &node : *graph.mutable_node()) {
    const std::vector<std::string> operands = findProgramOperands(node);
    for (std::string &input : *node.mutable_input()) {
      // Who names another value reads one that was merged with it.
      if (!detached.contains(input) || (!operands.empty() && !is_contained(operands, input)))
        continue;
      const std::string name = input + "@detach";
      if (written.insert(name).second)
        *nodes.Add() = makeDetach(name, input, name, node);
      input = name;
    }
    nodes.Add()->Swap(&node);
  }
  graph.mutable_node()->Swap(&nodes);
  return unknown;
}
