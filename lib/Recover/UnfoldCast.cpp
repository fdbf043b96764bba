//===- UnfoldCast.cpp - parameters that the program converts ----------------------===//
//
// `torch.autocast` and `weight.to(bfloat16)` convert a parameter wherever it is used, and the exporter evaluates the
// conversion. Trained itself, the converted tensor would be rounded by every update, and small updates would vanish:
// the parameter comes back in its own type, and a node converts it.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <map>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

static const fltSemantics *findSemantics(int32_t type) {
  switch (type) {
  case TensorProto::FLOAT16:
    return &APFloat::IEEEhalf();
  case TensorProto::BFLOAT16:
    return &APFloat::BFloat();
  case TensorProto::FLOAT:
    return &APFloat::IEEEsingle();
  case TensorProto::DOUBLE:
    return &APFloat::IEEEdouble();
  default:
    return nullptr;
  }
}

bool lowtide::isConversion(StringRef name) {
  StringRef operation = operationName(name);
  return operation == "_to_copy" || operation == "to" || operation == "convert_element_type";
}

int32_t lowtide::findParameterType(const UnfoldingGraph &graph, const Signature &signature) {
  std::map<int32_t, unsigned> counts;
  for (const SignatureEntry &entry : signature.getEntries())
    if (const TensorProto *tensor = entry.kind == SignatureEntry::Parameter ? graph.find(entry.target) : nullptr;
        tensor && isFloatType(tensor->data_type()))
      ++counts[tensor->data_type()];
  int32_t type = TensorProto::FLOAT;
  unsigned most = 0;
  for (auto [candidate, count] : counts)
    if (count > most) {
      type = candidate;
      most = count;
    }
  return type;
}

/// The elements of `bytes`, of type `from`, as type `to`; empty: one of them is no number of that type.
static std::string convert(StringRef bytes, int32_t from, int32_t to) {
  const fltSemantics &source = *findSemantics(from), &target = *findSemantics(to);
  const size_t width = APFloat::getSizeInBits(source) / 8, wide = APFloat::getSizeInBits(target) / 8;
  std::string result(bytes.size() / width * wide, '\0');
  for (size_t i = 0, e = bytes.size() / width; i != e; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * width, width);
    APFloat value(source, APInt(unsigned(8 * width), bits));
    bool isRounded = false;
    value.convert(target, APFloat::rmNearestTiesToEven, &isRounded);
    if (isRounded)
      return "";
    bits = value.bitcastToAPInt().getZExtValue();
    std::memcpy(&result[i * wide], &bits, wide);
  }
  return result;
}

/// Adds the parameter of which the tensor is a conversion, and a transpose where it is turned; false: its numbers have
/// no such form.
static bool addParameter(UnfoldingGraph &graph, const TensorProto &tensor, const std::string &name,
                         ArrayRef<int64_t> dims, bool isTransposed, int32_t type) {
  const int32_t given = tensor.data_type();
  std::string bytes = convert(graph.read(tensor).value_or(""), given, type);
  if (bytes.empty())
    return false;
  UnfoldedPart part{name, SmallVector<int64_t>(dims), {}};
  if (isTransposed)
    for (int64_t column = 0; column != dims[1]; ++column)
      for (int64_t row = 0; row != dims[0]; ++row)
        part.map.push_back(row * dims[1] + column);
  // What the conversion rounded away is lost.
  const bool isNarrow = APFloat::getSizeInBits(*findSemantics(given)) < APFloat::getSizeInBits(*findSemantics(type));
  graph.addConverted(tensor, part, type, bytes,
                     "the exporter evaluated its conversion to " + std::string(findElementType(given)->name) + " as",
                     isNarrow);
  return true;
}

/// Has the tensor computed from the parameter, in place of its evaluated numbers.
static void computeFrom(UnfoldingGraph &graph, const TensorProto &tensor, const std::string &name, bool isTransposed) {
  graph.setModule(moduleOf(name));
  std::string value = name;
  if (isTransposed) {
    value = graph.addNode("Transpose", {value});
    graph.setAttribute("perm", ArrayRef<int64_t>{1, 0});
  }
  graph.addNode("Cast", {value}, tensor.name());
  graph.setAttribute("to", int64_t(tensor.data_type()));
  graph.remove(tensor);
}

/// Extents of the parameter of which the tensor is a conversion.
static SmallVector<int64_t> dimsOf(const TensorProto &tensor, bool isTransposed) {
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  if (isTransposed)
    std::swap(dims[0], dims[1]);
  return dims;
}

bool lowtide::unfoldConversion(UnfoldingGraph &graph, const Evaluated &evaluated, int32_t type) {
  const TensorProto &tensor = *evaluated.tensor;
  const int32_t given = tensor.data_type();
  if (evaluated.parameters.size() != 1 || given == type || !findSemantics(given) || !findSemantics(type))
    return false;
  const std::string &name = evaluated.parameters.front()->target;
  // Conversions, and at most one transpose.
  bool isTransposed = !isConversion(tensor.name()), converts = !isTransposed;
  if (isTransposed && !is_contained({"t", "transpose", "permute", "numpy_t", "val"}, operationName(tensor.name())))
    return false;
  for (const std::string &source : evaluated.foldedFrom) {
    converts |= isConversion(source);
    if (source == name || isConversion(source))
      continue;
    if (isTransposed || !is_contained({"t", "transpose", "permute", "numpy_t"}, operationName(source)))
      return false;
    isTransposed = true;
  }
  if (!converts || (isTransposed && tensor.dims_size() != 2))
    return false;
  const SmallVector<int64_t> dims = dimsOf(tensor, isTransposed);
  if (const auto *known = graph.find(name)) {
    if (known->data_type() != type || !equal(known->dims(), dims))
      return false;
  } else if (!addParameter(graph, tensor, name, dims, isTransposed, type)) {
    return false;
  }
  computeFrom(graph, tensor, name, isTransposed);
  return true;
}

/// A matrix or vector that a layer reads in 16 bits, as `name` in f32 and a conversion.
static void widenOperand(UnfoldingGraph &graph, const TensorProto &tensor, const std::string &name, bool isTransposed) {
  if (graph.find(name) || graph.isRemoved(tensor.name()))
    return;
  if (addParameter(graph, tensor, name, dimsOf(tensor, isTransposed), isTransposed, TensorProto::FLOAT))
    computeFrom(graph, tensor, name, isTransposed);
}

void lowtide::unfoldNarrow(UnfoldingGraph &graph, GraphProto &proto) {
  StringMap<const NodeProto *> producers;
  StringSet<> taken;
  for (const NodeProto *node : map_to_vector(proto.node(), [](const NodeProto &n) { return &n; })) {
    for (const std::string &output : node->output())
      producers[output] = node;
    /// The tensor of 16 bits that a conversion made.
    auto findTensor = [&](int operand) -> const TensorProto * {
      const TensorProto *tensor = operand < node->input_size() ? graph.find(node->input(operand)) : nullptr;
      const bool isNarrow =
          tensor && (tensor->data_type() == TensorProto::FLOAT16 || tensor->data_type() == TensorProto::BFLOAT16);
      return isNarrow && isEvaluatedName(tensor->name()) && taken.insert(tensor->name()).second ? tensor : nullptr;
    };
    auto isMadeBy = [&](int operand, StringRef op) {
      const NodeProto *made = producers.lookup(node->input(operand));
      return made && made->op_type() == op;
    };
    const std::optional<std::string> module = findModulePath(*node);
    if (!module || module->empty() || node->input_size() < 2)
      continue;
    const StringRef op = node->op_type();
    // A bias that follows a product of the same layer.
    if (op == "Add")
      for (int operand : {0, 1})
        if (const NodeProto *product = producers.lookup(node->input(1 - operand));
            product && product->op_type() == "MatMul" && findModulePath(*product) == module &&
            graph.find(*module + ".weight"))
          if (const TensorProto *bias = findTensor(operand); bias && bias->dims_size() == 1)
            widenOperand(graph, *bias, *module + ".bias", false);
    // What the layer reads is converted, too: the file is none that is kept in 16 bits.
    if (!is_contained({"Gemm", "MatMul", "Conv"}, op) || !isMadeBy(0, "Cast"))
      continue;
    const bool isTurned = op == "MatMul" || (op == "Gemm" && none_of(node->attribute(), [](const auto &attribute) {
                                               return attribute.name() == "transB" && attribute.i();
                                             }));
    if (const TensorProto *weight = findTensor(1); weight && (op == "Conv" || weight->dims_size() == 2))
      widenOperand(graph, *weight, *module + ".weight", isTurned);
    if (op != "MatMul")
      if (const TensorProto *bias = findTensor(2); bias && bias->dims_size() == 1)
        widenOperand(graph, *bias, *module + ".bias", false);
  }
}
