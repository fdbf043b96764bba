//===- FewBits.cpp - codes, scales and zero points of weights in few bits ---------===//

#include "FewBits.h"

#include "Classifier.h"
#include "CodedValues.h"

#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Support/StableSort.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

bool lowtide::isOfFewBits(const InitializerUse &use) {
  const int operand = use.operand;
  if (StringRef(use.node->op_type()).starts_with("QLinear"))
    return true;
  return StringSwitch<bool>(use.node->op_type())
      .Cases({"DequantizeLinear", "MatMulInteger", "ConvInteger", "QGemm"}, true)
      .Cases({"QuantizeLinear", "Quant", "IntQuant"}, operand > 0)
      .Case("MatMulNBits", operand > 0 && operand < 5) // a bias is trained
      .Case("MatMulBnb4", operand == 1 || operand == 2)
      .Case("GatherBlockQuantized", operand != 1)
      .Default(false);
}

namespace {
/// Finds operations that make a weight's numbers of codes, which are whole numbers of 8 bits.
class Decoding {
public:
  Decoding(const GraphProto &graph, TensorReader read);

  /// Whether the node makes a weight's numbers.
  bool contains(const NodeProto *node) const { return nodes.contains(node); }

private:
  /// What codes became.
  struct Value {
    SmallVector<const NodeProto *> made; ///< the nodes that made it
    int64_t numCodes = 0;                ///< of the tensor with the most
    bool isNumber = false;               ///< of a float type by now
    std::string rows = {};               ///< not empty: rows that were looked up at these positions
  };

  /// Numbers of the largest float tensor that it was made of, and the nodes that made it.
  struct Constant {
    int64_t numFloats = 0;
    SmallVector<const NodeProto *> made = {};
  };

  bool isConstant(StringRef name) const { return constants.contains(name); }
  bool isFloat(StringRef name) const { return constants.lookup(name).numFloats > 0; }
  bool isScale(StringRef name, const Value &value) const {
    return constants.lookup(name).numFloats <= value.numCodes / 2;
  }
  void visit(const NodeProto &node);
  std::optional<Value> decode(const NodeProto &node) const;
  void keep(const Value &value) { nodes.insert(value.made.begin(), value.made.end()); }

  /// What depends on no input, but codes.
  StringMap<Constant> constants;
  StringMap<Value> values;
  /// Rows of constants that are looked up at positions of the step.
  StringMap<const NodeProto *> lookups;
  /// Products with codes as they are, whose scales follow.
  StringMap<Value> products;
  SmallPtrSet<const NodeProto *, 32> nodes;
};
} // namespace

/// Whether an operation on codes, or on what became of them, may be a part of making numbers of them.
static bool decodes(StringRef op) {
  return StringSwitch<bool>(op)
      .Cases({"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift", "Mod"}, true)
      .Cases({"Cast", "CastLike", "Add", "Sub", "Mul", "Div", "Neg", "Floor"}, true)
      .Cases({"Reshape", "Transpose", "Unsqueeze", "Squeeze", "Flatten", "Identity"}, true)
      .Cases({"Concat", "Slice", "Split", "Expand", "DequantizeLinear"}, true)
      .Default(false);
}

/// Which operand of a product is, or may be, a weight; -1: none.
static bool isWeight(const NodeProto &node, int operand) {
  return StringSwitch<bool>(node.op_type())
      .Cases({"MatMul", "Gemm"}, operand < 2)
      .Cases({"Conv", "ConvTranspose"}, operand == 1)
      .Default(false);
}

Decoding::Decoding(const GraphProto &graph, TensorReader read) {
  for (const TensorProto &tensor : graph.initializer()) {
    const int64_t elements = checkedElements({tensor.dims().data(), size_t(tensor.dims_size())}).value_or(0);
    bool isCode = tensor.data_type() == TensorProto::INT8 || tensor.data_type() == TensorProto::UINT8;
    // The exporter may have evaluated the conversion, and nothing else.
    const bool isNumber = isFloatType(tensor.data_type());
    if (isNumber && tensor.dims_size() == 2 && isInventedName(tensor.name()) && mayHoldCodes(tensor))
      isCode = holdsCodes(tensor, read(tensor).value_or(""));
    if (isCode && elements > 1)
      values[tensor.name()] = {{}, elements, isNumber, {}};
    constants[tensor.name()].numFloats = isNumber && !isCode ? elements : 0;
  }
  if (values.empty())
    return;
  for (const NodeProto &node : graph.node())
    if (all_of(node.input(), [&](const std::string &input) { return input.empty() || isConstant(input); })) {
      Constant constant;
      for (const std::string &input : node.input()) {
        const Constant from = constants.lookup(input);
        constant.numFloats = std::max(constant.numFloats, from.numFloats);
        constant.made.append(from.made.begin(), from.made.end());
      }
      constant.made.push_back(&node);
      for (const std::string &output : node.output())
        constants[output] = constant;
    } else if (node.op_type() == "Gather" && isConstant(node.input(0))) {
      lookups[node.output(0)] = &node;
    }
  for (const NodeProto &node : graph.node())
    visit(node);
}

void Decoding::visit(const NodeProto &node) {
  for (auto [operand, input] : enumerate(node.input())) {
    auto found = values.find(input);
    if (found == values.end() || !found->second.isNumber)
      continue;
    const bool isTable = node.op_type() == "Gather" && operand == 0 && !isConstant(node.input(1));
    if (!isTable && !isWeight(node, int(operand)))
      continue;
    keep(found->second);
    if (!isTable && node.output_size())
      products[node.output(0)] = found->second;
  }
  // Scales of a matrix's outputs may follow its product.
  if (node.op_type() == "Mul" && node.input_size() == 2)
    for (int operand : {0, 1})
      if (auto product = products.find(node.input(operand));
          product != products.end() && isFloat(node.input(1 - operand)) &&
          isScale(node.input(1 - operand), product->second) &&
          none_of(product->second.made, [&](const NodeProto *made) {
            return any_of(made->input(), [&](const std::string &input) { return isFloat(input); });
          })) {
        const Constant scale = constants.lookup(node.input(1 - operand));
        nodes.insert(scale.made.begin(), scale.made.end());
        nodes.insert(&node);
      }
  if (std::optional<Value> value = decode(node)) {
    // Rows of a table are numbers as soon as a scale is theirs.
    if (!value->rows.empty() && value->isNumber && node.op_type() == "Mul")
      keep(*value);
    for (const std::string &output : node.output())
      values[output] = *value;
  }
}

/// What the node makes of codes; nothing: of none, or something else as well.
std::optional<Decoding::Value> Decoding::decode(const NodeProto &node) const {
  const bool isGather = node.op_type() == "Gather";
  if (none_of(node.input(), [&](const std::string &input) { return values.contains(input); }) ||
      (!isGather && !decodes(node.op_type())))
    return std::nullopt;
  Value result;
  for (auto [operand, input] : enumerate(node.input())) {
    if (auto found = values.find(input); found != values.end()) {
      const Value &value = found->second;
      result.made.append(value.made.begin(), value.made.end());
      // Codes that are positions stand for the numbers that they look up.
      result.isNumber |= value.isNumber || (isGather && operand == 1);
      result.numCodes = std::max(result.numCodes, value.numCodes);
      if (!value.rows.empty())
        result.rows = value.rows;
    } else if (isGather && operand == 1 && !isConstant(input)) {
      if (values.lookup(node.input(0)).isNumber)
        return std::nullopt;
      result.rows = input;
    } else if (auto lookup = lookups.find(input); lookup != lookups.end()) {
      result.made.push_back(lookup->second);
    } else if (isConstant(input)) {
      const Constant constant = constants.lookup(input);
      result.made.append(constant.made.begin(), constant.made.end());
    } else if (!input.empty()) {
      return std::nullopt;
    }
  }
  // A weight next to a mask of 8 bits is none of its scales: there are fewer of these than of codes.
  for (const std::string &input : node.input()) {
    auto lookup = values.contains(input) ? lookups.end() : lookups.find(input);
    if (!isScale(lookup == lookups.end() ? StringRef(input) : StringRef(lookup->second->input(0)), result) ||
        (lookup != lookups.end() && lookup->second->input(1) != result.rows))
      return std::nullopt;
  }
  for (const auto &attribute : node.attribute())
    if (node.op_type() == "Cast" && attribute.name() == "to")
      result.isNumber = isFloatType(int32_t(attribute.i()));
  result.isNumber |= any_of(node.input(), [&](const std::string &input) { return isFloat(input); });
  result.made.push_back(&node);
  return result;
}

/// Whether all that reads the tensor makes a weight's numbers, or is told by an operator of few bits to do so.
static bool isPart(const TensorFacts &fact, const Decoding &decoding) {
  return !fact.uses.empty() && !fact.isGraphOutput &&
         all_of(fact.uses, [&](const InitializerUse &use) { return isOfFewBits(use) || decoding.contains(use.node); });
}

StringSet<> lowtide::findFewBits(ArrayRef<TensorFacts> facts, const GraphProto &graph, TensorReader read) {
  const Signature signature(graph);
  const Decoding decoding(graph, read);
  StringSet<> names;
  for (const TensorFacts &fact : facts)
    if (isPart(fact, decoding) && !signature.findTarget(fact.tensor->name()))
      names.insert(fact.tensor->name());
  return names;
}

InitializerInfo lowtide::describeFewBits(const TensorFacts &fact) {
  const RoleReason reason = !isFloatType(fact.tensor->data_type()) ? RoleReason::NoFloat
                            : all_of(fact.uses, isOfFewBits)       ? RoleReason::Setting
                                                                   : RoleReason::OfFewBits;
  InitializerInfo info = makeInfo(fact, fact.tensor->name(), InitializerRole::Constant, Certainty::Inferred, reason);
  info.uses.assign(fact.uses.begin(), fact.uses.end());
  return info;
}

void lowtide::reportScales(ModelView &file, ArrayRef<TensorFacts> facts, const StringSet<> &ofFewBits) {
  StringSet<> all;
  for (const TensorFacts &fact : facts)
    all.insert(fact.tensor->name());
  // The numbers of a float type's codes are called as the codes (PackedTensors.cpp).
  auto isTable = [&](StringRef name) { return name.contains('/') && all.contains(name.rsplit('/').first); };
  std::vector<std::string> names;
  for (const TensorFacts &fact : facts)
    if (ofFewBits.contains(fact.tensor->name()) && isFloatType(fact.tensor->data_type()) && fact.getNumElements() > 1 &&
        !all_of(fact.uses, isOfFewBits) && !isTable(fact.tensor->name()))
      names.push_back(fact.tensor->name());
  if (!names.empty())
    file.getReport().add({FindingKind::ScalesNotTrained, names.front(), names, {{"name", names.front()}}});
}

/// The graph's initializers, which it has no longer.
static std::vector<TensorProto *> releaseAll(GraphProto &graph) {
  std::vector<TensorProto *> tensors;
  while (graph.initializer_size())
    tensors.push_back(graph.mutable_initializer()->ReleaseLast());
  std::reverse(tensors.begin(), tensors.end());
  return tensors;
}

WithoutScales::WithoutScales(GraphProto &graph, TensorReader read) : graph(graph) {
  const StringSet<> parts = findFewBits(collectTensorFacts(graph), graph, read);
  if (parts.empty())
    return;
  for (TensorProto *tensor : releaseAll(graph)) {
    order.try_emplace(tensor->name(), order.size());
    if (isFloatType(tensor->data_type()) && parts.contains(tensor->name()))
      scales.push_back(tensor);
    else
      graph.mutable_initializer()->AddAllocated(tensor);
  }
}

WithoutScales::~WithoutScales() {
  if (scales.empty())
    return;
  std::vector<TensorProto *> tensors = releaseAll(graph);
  tensors.insert(tensors.end(), scales.begin(), scales.end());
  auto placeOf = [&](const TensorProto *tensor) {
    auto found = order.find(tensor->name());
    return found == order.end() ? order.size() : found->second;
  };
  sortStably(tensors, [&](const TensorProto *a, const TensorProto *b) { return placeOf(a) < placeOf(b); });
  for (TensorProto *tensor : tensors)
    graph.mutable_initializer()->AddAllocated(tensor);
}
