//===- NegativePositions.cpp - positions from the end, which an exporter adds wrongly -===//
//
// `x[rows, columns]` becomes Gather(Flatten(x), rows · width + columns), with the width from Shape. A position -1
// counts from the end of its own dimension; in the sum it is the element before.
//
//===----------------------------------------------------------------------===//

#include "NegativePositions.h"

#include "ValueIndex.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Whether an integer of the tensor, which has a dimension, is negative.
static bool holdsNegative(const TensorProto &tensor) {
  if (tensor.data_type() != TensorProto::INT64 || tensor.dims_size() == 0)
    return false;
  for (size_t at = 0; at + sizeof(int64_t) <= tensor.raw_data().size(); at += sizeof(int64_t)) {
    int64_t value;
    std::memcpy(&value, tensor.raw_data().data() + at, sizeof(value));
    if (value < 0)
      return true;
  }
  return any_of(tensor.int64_data(), [](int64_t value) { return value < 0; });
}

std::vector<std::string> lowtide::findNegativePositions(GraphProto &graph) {
  const ValueIndex values(graph);
  std::vector<std::string> found;
  for (const NodeProto &node : graph.node()) {
    if (node.op_type() != "Gather" || !values.find(node.input(0), "Flatten", 1))
      continue;
    SmallVector<StringRef> open{node.input(1)};
    bool multiplies = false, isNegative = false;
    while (!open.empty()) {
      const StringRef value = open.pop_back_val();
      if (const TensorProto *tensor = values.findTensor(value))
        isNegative |= holdsNegative(*tensor);
      const NodeProto *made = values.find(value);
      if (!made || !is_contained({"Add", "Mul", "Cast", "Expand", "Reshape", "Unsqueeze"}, made->op_type()))
        continue;
      multiplies |= made->op_type() == "Mul";
      open.push_back(made->input(0));
      if (made->op_type() == "Add" || made->op_type() == "Mul")
        open.push_back(made->input(1));
    }
    if (multiplies && isNegative)
      found.push_back(node.output(0));
  }
  return found;
}
