//===- LostDropout.cpp - dropout inside attention that an exporter drops ---------===//
//
// PyTorch's exporters write `scaled_dot_product_attention(…, dropout_p)` with a `Dropout` that does not say that it
// trains, which ONNX takes for inference, and the optimizer removes it. The note keeps the ratio, `(%q, %k, %v, None,
// 0.5)`; attention's weights are what its softmax gives.
//
//===----------------------------------------------------------------------===//

#include "LostDropout.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Adds a number and returns its name.
static std::string addScalar(GraphProto &graph, std::string name, int32_t type, double value) {
  TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  if (type == TensorProto::BOOL)
    tensor.add_int32_data(value != 0);
  else
    tensor.add_float_data(float(value));
  return name;
}

std::vector<std::string> lowtide::restoreAttentionDropout(GraphProto &graph) {
  // Nodes of one attention share its note.
  StringSet<> restored, kept;
  for (const NodeProto &node : graph.node())
    if (node.op_type() == "Dropout")
      kept.insert(findProgramNote(node));
  StringMap<std::string> lost, dropped;
  ::google::protobuf::RepeatedPtrField<NodeProto> nodes;
  for (NodeProto &node : *graph.mutable_node()) {
    for (std::string &input : *node.mutable_input())
      if (auto other = dropped.find(input); other != dropped.end())
        input = other->second;
    const double ratio = findProgramAttentionDropout(node);
    const std::string note = findProgramNote(node).str();
    const bool isDropout = node.op_type() == "Dropout", isSoftmax = node.op_type() == "Softmax";
    if (ratio > 0 && isDropout && node.input_size() < 3) {
      // The exporter kept it; it trains.
      dropped.erase(node.input(0));
      if (node.input_size() < 2)
        node.add_input(addScalar(graph, node.output(0) + "@ratio", TensorProto::FLOAT, ratio));
      node.add_input(addScalar(graph, node.output(0) + "@trains", TensorProto::BOOL, 1));
    }
    NodeProto &moved = *nodes.Add();
    moved.Swap(&node);
    if (ratio <= 0)
      continue;
    if (isDropout || restored.contains(note)) {
      restored.insert(note);
      lost.erase(note);
    } else if (isSoftmax && !kept.contains(note)) {
      restored.insert(note);
      lost.erase(note);
      const std::string weights = moved.output(0), result = weights + "@dropout";
      dropped[weights] = result;
      NodeProto &dropout = *nodes.Add();
      dropout.set_op_type("Dropout");
      dropout.set_name(result);
      dropout.add_input(weights);
      dropout.add_input(addScalar(graph, result + "@ratio", TensorProto::FLOAT, ratio));
      dropout.add_input(addScalar(graph, result + "@trains", TensorProto::BOOL, 1));
      dropout.add_output(result);
      *dropout.mutable_metadata_props() = moved.metadata_props();
    } else {
      lost[note] = moved.output(0);
    }
  }
  graph.mutable_node()->Swap(&nodes);
  std::vector<std::string> names;
  for (const auto &entry : lost)
    names.push_back(entry.second);
  llvm::sort(names);
  return names;
}
