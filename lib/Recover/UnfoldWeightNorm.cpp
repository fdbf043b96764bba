//===- UnfoldWeightNorm.cpp - weights kept as direction and length ---------------===//
//
// Weight norm (Salimans and Kingma) keeps a weight as g · v / |v|, and exporters evaluate it. The lengths g are those
// of the weight; the length of v is lost, and has no effect but on how fast v turns. Taken as equal to g, as they are
// when training starts.
//
// Without notes, a layer's weight that was evaluated while its bias was not is taken for one, unless its numbers show
// another normalization, or the module calls others: then it is no layer, and only moved the weight of one
// (`F.conv1d(x, self.conv.weight.unsqueeze(1))`).
//
//===----------------------------------------------------------------------===//

#include "CodedValues.h"
#include "TableValues.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// The length and the direction among `parameters`, by the framework's names; null if they are no such pair.
static std::pair<const SignatureEntry *, const SignatureEntry *> findPair(ArrayRef<const SignatureEntry *> parameters) {
  if (parameters.size() != 2)
    return {};
  auto find = [&](StringRef old, StringRef current) -> const SignatureEntry * {
    for (const SignatureEntry *entry : parameters)
      if (leafOf(entry->target).ends_with(old) || leafOf(entry->target) == current)
        return entry;
    return nullptr;
  };
  return {find("_g", "original0"), find("_v", "original1")};
}

/// Whether the tensor was transposed last, for a layer that multiplies from the right.
static bool isTransposed(const Evaluated &evaluated) {
  return evaluated.tensor->dims_size() == 2 && operationName(evaluated.tensor->name()) == "val";
}

/// Whether the notes name what weight norm computes and nothing else.
static bool isNormalized(const Evaluated &evaluated) {
  bool divides = false, measures = false, multiplies = operationName(evaluated.tensor->name()) == "mul";
  for (const std::string &name : evaluated.foldedFrom) {
    StringRef op = operationName(name);
    divides |= op == "div";
    measures |= op == "linalg_vector_norm" || op == "norm";
    if (op == "mul" && !multiplies && isTransposed(evaluated)) {
      multiplies = true;
      continue;
    }
    bool isKnown =
        StringSwitch<bool>(op).Cases({"div", "linalg_vector_norm", "norm", "val", "expand_as"}, true).Default(false);
    if (!isKnown && none_of(evaluated.parameters, [&](const SignatureEntry *entry) { return entry->target == name; }))
      return false;
  }
  return divides && measures && multiplies;
}

/// The f32 lengths of `bytes`, one for each entry of dimension `axis`; empty if one has none.
static std::string lengthsOf(StringRef bytes, ArrayRef<int64_t> dims, size_t axis) {
  size_t inner = 1, number = size_t(dims[axis]);
  for (int64_t dim : dims.drop_front(axis + 1))
    inner *= size_t(dim);
  std::vector<double> squares(number, 0);
  for (size_t i = 0; i != bytes.size() / sizeof(float); ++i) {
    float value;
    std::memcpy(&value, bytes.data() + i * sizeof(float), sizeof(value));
    squares[i / inner % number] += double(value) * double(value);
  }
  std::string lengths;
  for (double square : squares) {
    float root = float(std::sqrt(square));
    if (!(root > 0) || !std::isfinite(root))
      return ""; // of a weight of zeros, the direction is lost as well
    lengths.append(reinterpret_cast<const char *>(&root), sizeof(root));
  }
  return lengths;
}

/// The f32 matrix `bytes` of `rows` rows, its rows as columns.
static std::string transpose(StringRef bytes, size_t rows) {
  constexpr size_t size = sizeof(float);
  size_t columns = bytes.size() / size / rows;
  std::string result(bytes.size(), '\0');
  for (size_t row = 0; row != rows; ++row)
    for (size_t column = 0; column != columns; ++column)
      std::memcpy(&result[(column * rows + row) * size], bytes.data() + (row * columns + column) * size, size);
  return result;
}

/// The dimension whose entries have a length each: the first one unless the program says otherwise, which no file
/// tells. wav2vec 2.0 and its relatives do so in the convolution that gives positions: one length for each tap.
static size_t findAxis(StringRef direction, size_t rank) {
  return rank == 3 && moduleOf(direction).contains("pos_conv_embed") ? 2 : 0;
}

/// Makes `tensor`, or its transpose, of its length and its direction.
static bool takeApart(UnfoldingGraph &graph, const TensorProto &tensor, const std::string &length,
                      const std::string &direction, bool transposed = false) {
  std::optional<std::string> bytes = graph.read(tensor);
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end()), axes, single(dims.size(), 1);
  if (bytes && transposed) {
    bytes = transpose(*bytes, size_t(dims[0]));
    std::swap(dims[0], dims[1]);
  }
  const size_t own = findAxis(direction, dims.size());
  std::string lengths = bytes ? lengthsOf(*bytes, dims, own) : "";
  if (lengths.empty())
    return false;
  single[own] = dims[own];
  for (size_t axis = 0; axis != dims.size(); ++axis)
    if (axis != own)
      axes.push_back(int64_t(axis));
  // Written back as a weight: the length and the direction of both are one.
  std::string how = "length or direction of " + tensor.name() + "; one length for each entry of dimension " +
                    std::to_string(own) + " is assumed, and the direction's own length taken as the weight's";
  graph.setModule(moduleOf(direction));
  graph.addInitializer(length, single, tensor.data_type(), std::move(lengths), {tensor.name(), how, true});
  graph.addInitializer(direction, dims, tensor.data_type(), std::move(*bytes), {tensor.name(), how, true});
  std::string square = graph.addNode("Mul", {direction, direction});
  std::string sum = graph.addNode("ReduceSum", {square, graph.addIntegers({int64_t(axes.size())}, axes)});
  graph.setAttribute("keepdims", 1);
  std::string norm = graph.addNode("Sqrt", {sum});
  std::string unit = graph.addNode("Div", {direction, norm});
  if (transposed)
    graph.addNode("Transpose", {graph.addNode("Mul", {unit, length})}, tensor.name());
  else
    graph.addNode("Mul", {unit, length}, tensor.name());
  graph.remove(tensor);
  return true;
}

bool lowtide::unfoldWeightNorm(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  auto [length, direction] = findPair(evaluated.parameters);
  if (!length || !direction || !isNormalized(evaluated) || tensor.data_type() != TensorProto::FLOAT ||
      tensor.dims_size() < 2 || tensor.dims(0) < 1)
    return false;
  return takeApart(graph, tensor, length->target, direction->target, isTransposed(evaluated));
}

/// Whether the rows of `weight` were brought to a mean of zero, or the whole to a largest singular value of one:
/// another normalization than this.
static bool isOtherwiseNormalized(ArrayRef<float> weight, size_t rows) {
  size_t width = weight.size() / rows;
  bool centered = true;
  std::vector<double> v(width, 1), u(rows);
  for (size_t row = 0; row != rows; ++row) {
    double sum = 0, size = 0;
    for (float value : weight.slice(row * width, width)) {
      sum += value;
      size += std::abs(double(value));
    }
    centered &= std::abs(sum) <= 1e-5 * size;
  }
  double norm = 0;
  for (int round = 0; round != 30; ++round) { // power iteration
    std::fill(u.begin(), u.end(), 0);
    double size = 0;
    for (size_t i = 0; i != weight.size(); ++i)
      u[i / width] += double(weight[i]) * v[i % width];
    std::fill(v.begin(), v.end(), 0);
    for (size_t i = 0; i != weight.size(); ++i)
      v[i % width] += double(weight[i]) * u[i / width];
    for (double value : v)
      size += value * value;
    size = std::sqrt(size);
    for (double &value : v)
      value /= size;
    norm = std::sqrt(size);
  }
  return centered || std::abs(norm - 1) < 1e-2;
}

/// The module of PyTorch that holds what a layer's weight is made of.
static constexpr StringLiteral weightMakers = ".parametrizations.";

/// Whether another module than what makes the weight was called within `module`.
static bool callsOthers(const UnfoldingGraph &graph, StringRef module) {
  return any_of(graph.getGraph().node(), [&](const NodeProto &node) {
    const std::string path = findModulePath(node).value_or("") + ".";
    StringRef below = path;
    return below.consume_front(module) && below.starts_with(".") && below != "." && !below.starts_with(weightMakers);
  });
}

bool lowtide::unfoldWeightNorm(UnfoldingGraph &graph, const NodeProto &node, int operand) {
  const TensorProto *tensor = operand == 1 ? graph.find(node.input(1)) : nullptr;
  bool isLayer = StringSwitch<bool>(node.op_type()).Cases({"Conv", "ConvTranspose", "Gemm"}, true).Default(false);
  // PyTorch's old exporter names what it evaluates after the operator that reads it; a batch norm that it folded would
  // have taken the bias, too.
  if (!tensor || !isLayer || !StringRef(tensor->name()).starts_with("onnx::" + node.op_type() + "_") ||
      graph.isRemoved(tensor->name()) || tensor->data_type() != TensorProto::FLOAT || tensor->dims_size() < 2 ||
      tensor->dims(0) < 1)
    return false;
  std::string module = findModulePath(node).value_or("");
  std::string prefix = (module + weightMakers + "weight.original").str();
  if (module.empty() || graph.find(prefix + "0") || graph.find(module + ".weight") ||
      (node.input_size() > 2 && node.input(2) != module + ".bias") || callsOthers(graph, module))
    return false;
  std::string bytes = graph.read(*tensor).value_or("");
  constexpr size_t largest = size_t(1) << 24;
  if (bytes.empty() || bytes.size() > largest)
    return false;
  std::vector<float> values = asFloats(bytes);
  if (isOtherwiseNormalized(values, size_t(tensor->dims(0))) || holdsScaledCodes(*tensor, bytes))
    return false;
  return takeApart(graph, *tensor, prefix + "0", prefix + "1");
}
