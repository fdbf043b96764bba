//===- UnfoldHalvedWeights.cpp - halves of activations in weights -----------------===//
//
// The old exporter writes GELU as x · (1 + erf(x / √2)) · 0.5. onnx-simplifier multiplies the last factor into the
// weight of the convolution that reads it: what it reads is twice the activation, and the weight is half the program's.
//
//===----------------------------------------------------------------------===//

#include "Makers.h"
#include "TableValues.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

static bool isNumbered(StringRef name) { return name.consume_front("_v_") && !name.empty() && all_of(name, isDigit); }

namespace {
class HalvedWeights {
public:
  HalvedWeights(UnfoldingGraph &graph, const GraphProto &proto) : graph(graph), makers(proto) {
    for (const NodeProto &node : proto.node())
      for (const std::string &input : node.input())
        ++reads[input];
  }

  /// Takes the weight of `layer` apart, if it holds the half of the activation before.
  void unfold(const NodeProto &layer);

private:
  bool isOne(StringRef value) const;
  bool isErfOf(StringRef value, StringRef argument) const;
  bool isTwiceAnActivation(StringRef value) const;

  UnfoldingGraph &graph;
  const Makers makers;
  StringMap<unsigned> reads;
};
} // namespace

bool HalvedWeights::isOne(StringRef value) const {
  const TensorProto *tensor = graph.find(value);
  const NodeProto *node = makers.find(value);
  if (!tensor && node && node->op_type() == "Constant" && node->attribute_size() == 1 && node->attribute(0).has_t())
    tensor = &node->attribute(0).t();
  if (!tensor || tensor->data_type() != TensorProto::FLOAT ||
      checkedElements(ArrayRef(tensor->dims().data(), size_t(tensor->dims_size()))) != 1)
    return false;
  const std::string bytes = tensor == graph.find(value) ? graph.read(*tensor).value_or("") : embeddedBytes(*tensor);
  const std::vector<float> numbers = asFloats(bytes);
  return numbers.size() == 1 && numbers.front() == 1;
}

/// Whether `value` is 1 + erf(`argument` / c).
bool HalvedWeights::isErfOf(StringRef value, StringRef argument) const {
  const NodeProto *sum = makers.find(value);
  if (!sum || sum->op_type() != "Add" || sum->input_size() != 2)
    return false;
  for (int operand : {0, 1}) {
    const NodeProto *erf = makers.find(sum->input(operand));
    const NodeProto *scaled = erf && erf->op_type() == "Erf" ? makers.find(erf->input(0)) : nullptr;
    if (scaled && (scaled->op_type() == "Div" || scaled->op_type() == "Mul") &&
        is_contained(scaled->input(), argument) && isOne(sum->input(1 - operand)))
      return true;
  }
  return false;
}

bool HalvedWeights::isTwiceAnActivation(StringRef value) const {
  const NodeProto *node = makers.find(value);
  return node && node->op_type() == "Mul" && node->input_size() == 2 &&
         (isErfOf(node->input(0), node->input(1)) || isErfOf(node->input(1), node->input(0)));
}

void HalvedWeights::unfold(const NodeProto &layer) {
  const TensorProto *weight = is_contained({"Conv", "ConvTranspose"}, layer.op_type()) && layer.domain().empty() &&
                                      layer.input_size() > 1 && isNumbered(layer.input(1))
                                  ? graph.find(layer.input(1))
                                  : nullptr;
  if (!weight || weight->data_type() != TensorProto::FLOAT || reads.lookup(weight->name()) != 1 ||
      graph.isRemoved(weight->name()) || !isTwiceAnActivation(layer.input(0)))
    return;
  // A norm that is folded into the layer changes its bias as well.
  const StringRef bias = layer.input_size() > 2 ? StringRef(layer.input(2)) : "";
  if (!bias.empty() && (!graph.find(bias) || leafOf(bias) != "bias"))
    return;
  const std::string module =
      bias.empty() ? graph.getPaths().find(findModulePath(layer).value_or("")) : moduleOf(bias).str();
  const std::string name = module + ".weight";
  std::vector<float> values = asFloats(graph.read(*weight).value_or(""));
  if (module.empty() || values.empty() || graph.find(name))
    return;
  for (float &value : values)
    value *= 2;
  SmallVector<int64_t> dims(weight->dims().begin(), weight->dims().end());
  graph.addInitializer(
      name, dims, TensorProto::FLOAT,
      std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)),
      {weight->name(), "onnx-simplifier multiplied it by the half of an activation in " + weight->name(), false});
  graph.setModule(module);
  graph.addNode("Mul", {name, graph.addNumber(0.5f)}, weight->name());
  graph.remove(*weight);
}

void lowtide::unfoldHalvedWeights(UnfoldingGraph &graph, GraphProto &proto) {
  HalvedWeights weights(graph, proto);
  for (const NodeProto *node : map_to_vector(proto.node(), [](const NodeProto &n) { return &n; }))
    weights.unfold(*node);
}
