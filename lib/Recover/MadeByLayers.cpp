//===- MadeByLayers.cpp - tensors that change what layers made -------------------===//

#include "MadeByLayers.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;

bool lowtide::comesFromLayer(const MergedTensors &merged, StringRef value) {
  constexpr size_t farthest = 64; // nodes
  SmallVector<StringRef> open{value};
  llvm::SmallPtrSet<const NodeProto *, 16> seen;
  while (!open.empty() && seen.size() < farthest) {
    const NodeProto *node = merged.findProducer(open.pop_back_val());
    if (!node || !seen.insert(node).second)
      continue;
    if (operandLeaf(*node, 1) == "weight" || node->op_type() == "Gather")
      return true;
    open.append(node->input().begin(), node->input().end());
  }
  return false;
}

bool lowtide::scalesLayers(const MergedTensors &merged, const TensorFacts &facts) {
  return facts.getNumElements() > 1 && llvm::all_of(facts.uses, [&](const InitializerUse &use) {
           return llvm::is_contained({"Add", "Sub", "Mul", "Div"}, StringRef(use.node->op_type())) &&
                  use.node->input_size() == 2 && comesFromLayer(merged, use.node->input(1 - use.operand));
         });
}

/// Whether `node` adds its operand to what layers made, or multiplies it, or moves its elements for what does.
static bool adjustsWith(const MergedTensors &merged, const NodeProto &node, int operand, int depth = 0) {
  constexpr int farthest = 4; // operations that move elements
  if (is_contained({"Add", "Mul"}, StringRef(node.op_type())) && node.input_size() == 2)
    return comesFromLayer(merged, node.input(1 - operand));
  if (!is_contained({"Reshape", "Unsqueeze", "Squeeze", "Cast", "Identity"}, StringRef(node.op_type())) ||
      operand != 0 || depth == farthest)
    return false;
  ArrayRef<const NodeProto *> readers = merged.findReaders(node.output(0));
  return !readers.empty() && all_of(readers, [&](const NodeProto *reader) {
    return adjustsWith(merged, *reader, reader->input(0) == node.output(0) ? 0 : 1, depth + 1);
  });
}

bool lowtide::adjustsLayer(const MergedTensors &merged, const TensorFacts &facts) {
  return all_of(facts.uses, [&](const InitializerUse &use) { return adjustsWith(merged, *use.node, use.operand); });
}

bool lowtide::isEvaluatedWhole(const ModelView &file, ArrayRef<TensorFacts> facts) {
  return file.getModel().producer_name() == "pytorch" && all_of(facts, [](const TensorFacts &fact) {
           return !isFloatType(fact.tensor->data_type()) || fact.getNumElements() == 1 ||
                  StringRef(fact.tensor->name()).starts_with("onnx::");
         });
}
