//===- MadeByLayers.cpp - tensors that change what layers made -------------------===//

#include "MadeByLayers.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;

/// Whether the node, or one in a branch or body of it, reads a layer's weight.
static bool holdsLayer(const NodeProto &node) {
  return operandLeaf(node, 1) == "weight" || node.op_type() == "Gather" ||
         any_of(node.attribute(),
                [](const auto &attribute) { return attribute.has_g() && any_of(attribute.g().node(), holdsLayer); });
}

bool lowtide::comesFromLayer(const MergedTensors &merged, StringRef value) {
  constexpr size_t farthest = 64; // nodes
  SmallVector<StringRef> open{value};
  llvm::SmallPtrSet<const NodeProto *, 16> seen;
  while (!open.empty() && seen.size() < farthest) {
    const NodeProto *node = merged.findProducer(open.pop_back_val());
    if (!node || !seen.insert(node).second)
      continue;
    if (holdsLayer(*node))
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
static bool adjustsWith(const MergedTensors &merged, const NodeProto &node, int operand, bool mayScale, int depth = 0) {
  constexpr int farthest = 4; // operations that move elements
  if ((node.op_type() == "Add" || (mayScale && node.op_type() == "Mul")) && node.input_size() == 2)
    return comesFromLayer(merged, node.input(1 - operand));
  if (!is_contained({"Reshape", "Unsqueeze", "Squeeze", "Cast", "Identity"}, StringRef(node.op_type())) ||
      operand != 0 || depth == farthest)
    return false;
  ArrayRef<const NodeProto *> readers = merged.findReaders(node.output(0));
  return !readers.empty() && all_of(readers, [&](const NodeProto *reader) {
    return adjustsWith(merged, *reader, reader->input(0) == node.output(0) ? 0 : 1, mayScale, depth + 1);
  });
}

bool lowtide::adjustsLayer(const MergedTensors &merged, const TensorFacts &facts) {
  // Programs write numbers that they multiply by as they write weights.
  const bool mayScale = !StringRef(facts.tensor->name()).starts_with("Constant_");
  return all_of(facts.uses,
                [&](const InitializerUse &use) { return adjustsWith(merged, *use.node, use.operand, mayScale); });
}

bool lowtide::isEvaluatedWhole(const ModelView &file, ArrayRef<TensorFacts> facts) {
  const bool isPyTorch = file.getModel().producer_name() == "pytorch";
  return all_of(facts, [&](const TensorFacts &fact) {
    const StringRef name = fact.tensor->name();
    return !isFloatType(fact.tensor->data_type()) || fact.getNumElements() == 1 ||
           name.starts_with(isPyTorch ? "onnx::" : "Constant_");
  });
}
