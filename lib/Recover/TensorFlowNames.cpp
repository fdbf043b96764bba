//===- TensorFlowNames.cpp - names in files that tf2onnx wrote -------------------===//

#include "TensorFlowNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;

StringRef lowtide::scopeOf(StringRef name) {
  size_t slash = name.rfind('/');
  return slash == StringRef::npos ? StringRef() : name.take_front(slash);
}

/// `ReadVariableOp` of `net/dense/BiasAdd/ReadVariableOp_1:0`; empty for names of other kinds.
static StringRef findOperation(StringRef name) {
  auto [operation, output] = name.rsplit(':');
  if (output.empty() || !all_of(output, isDigit))
    return "";
  StringRef leaf = operation.rsplit('/').second;
  auto [stem, number] = leaf.rsplit('_');
  return !number.empty() && all_of(number, isDigit) ? stem : leaf;
}

bool lowtide::isVariableRead(StringRef name) {
  // In loops `cell/ReadVariableOp/resource:0`; without resources, `dense/kernel/read:0`.
  return name.contains("/ReadVariableOp") || findOperation(name) == "read";
}

bool lowtide::isMovedVariable(StringRef name) {
  return StringSwitch<bool>(findOperation(name))
      .Cases({"Reshape", "ExpandDims", "Squeeze", "Transpose", "transpose"}, true)
      .Default(false);
}

bool lowtide::isFoldedNorm(StringRef name) {
  return findOperation(name) == "merged_input" || name.contains("/batchnorm/") || name.contains("_fused_bn");
}

bool lowtide::isOfTensorFlow(const ::onnx::GraphProto &graph) {
  // Tools that write the file again keep the names.
  return graph.name() == "tf2onnx" ||
         any_of(graph.initializer(), [](const auto &tensor) { return isVariableRead(tensor.name()); });
}
