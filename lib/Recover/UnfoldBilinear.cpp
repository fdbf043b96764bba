//===- UnfoldBilinear.cpp - the weight of a bilinear layer -----------------------===//
//
// PyTorch keeps [outputs, left, right]; the exporter multiplies with [left, outputs · right]. How many outputs there
// are is in a number that it evaluated from the weight's shape, or in the bias.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// The number of outputs by the shape that the layer's product takes, `[…, outputs, right]`, where that is constant; 0:
/// not known.
static int64_t findOutputsByShape(const UnfoldingGraph &graph, const NodeProto &product) {
  for (const NodeProto &reader : graph.getGraph().node()) {
    const TensorProto *shape =
        reader.op_type() == "Reshape" && reader.input_size() == 2 && reader.input(0) == product.output(0)
            ? graph.find(reader.input(1))
            : nullptr;
    std::optional<std::string> bytes = shape ? graph.read(*shape) : std::nullopt;
    int64_t numbers[2];
    if (!bytes || shape->data_type() != TensorProto::INT64 || bytes->size() < sizeof(numbers))
      continue;
    std::memcpy(numbers, bytes->data() + bytes->size() - sizeof(numbers), sizeof(numbers));
    return numbers[0];
  }
  return 0;
}

/// The number of outputs of the layer with weight `name`; 0: not known.
static int64_t findOutputs(const UnfoldingGraph &graph, StringRef name, const NodeProto &product) {
  for (const auto &value : graph.getGraph().value_info()) {
    const TensorProto *tensor = graph.find(value.name());
    std::vector<std::string> sources = findFoldedFrom(value);
    if (!tensor || tensor->data_type() != TensorProto::INT64 || sources.size() != 1 || sources.front() != name)
      continue;
    std::optional<std::string> bytes = graph.read(*tensor);
    int64_t number = 0;
    if (!bytes || bytes->size() != sizeof(number))
      continue;
    std::memcpy(&number, bytes->data(), sizeof(number));
    return number;
  }
  const TensorProto *bias = graph.find((moduleOf(name) + ".bias").str());
  return bias && bias->dims_size() == 1 ? bias->dims(0) : findOutputsByShape(graph, product);
}

bool lowtide::unfoldBilinear(UnfoldingGraph &graph, const NodeProto &node, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  if (graph.isRemoved(tensor.name()) || evaluated.parameters.size() != 1 || node.op_type() != "MatMul" ||
      tensor.dims_size() != 2 || findProgramOperator(node).rfind("aten.bilinear.", 0) != 0)
    return false;
  const std::string &name = evaluated.parameters.front()->target;
  int64_t outputs = findOutputs(graph, name, node), left = tensor.dims(0), all = tensor.dims(1);
  std::optional<std::string> bytes = graph.read(tensor);
  if (outputs < 1 || all % outputs || !bytes)
    return false;
  int64_t right = all / outputs;
  UnfoldedPart part{name, {outputs, left, right}, {}};
  for (int64_t i = 0; i != left; ++i)
    for (int64_t o = 0; o != outputs; ++o)
      for (int64_t j = 0; j != right; ++j)
        part.map.push_back((o * left + i) * right + j);
  graph.setModule(moduleOf(name));
  graph.addParts(tensor, *bytes, part, "the exporter turned it to", false);
  std::string turned = graph.addNode("Transpose", {name});
  graph.setAttribute("perm", ArrayRef<int64_t>{1, 0, 2});
  graph.addNode("Reshape", {turned, graph.addIntegers({2}, {left, all})}, tensor.name());
  graph.remove(tensor);
  return true;
}
