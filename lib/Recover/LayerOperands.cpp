//===- LayerOperands.cpp - a learned state that only a layer reads ------------------===//
//
// A learned first state of an `nn.LSTMCell` is multiplied with the cell's weights, and that is evaluated: the file
// holds the product, and the weights, which later steps read. A layer with as many outputs as inputs or more has one
// operand that gives its result, which is solved for. Of the first states of an `nn.RNN`, stacked in one parameter,
// each layer reads its own (`unbind`), and each gives back its part.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Unfold.h"
#include "lowtide/Recover/Evidence.h"
#include "lowtide/Support/StableSort.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Inputs of the widest layer that is solved for.
static constexpr size_t widestLayer = 1024;

namespace {
struct Layer {
  const SignatureEntry *gone = nullptr;
  std::vector<float> weight, bias;
  /// Of the tensors; `isTurned`: that is the weight's transpose.
  std::string weightName, biasName;
  bool isTurned = false;
  size_t inputs = 0, outputs = 0;
  bool repeats = false;
  /// Which of the results of an operation it read, `getitem_1`; empty: the whole.
  std::string part;
};
} // namespace

/// Whether products alone read the tensor, as their right operand: a step of linear layers, the weight's transpose.
static bool isOfLayers(const UnfoldingGraph &graph, StringRef tensor) {
  return operationName(tensor) == "val" && all_of(graph.getGraph().node(), [&](const NodeProto &node) {
           for (int operand = 0; operand != node.input_size(); ++operand)
             if (node.input(operand) == tensor && (node.op_type() != "MatMul" || operand != 1 ||
                                                   !StringRef(findProgramOperator(node)).starts_with("aten.linear.")))
               return false;
           return true;
         });
}

const TensorProto *lowtide::findTurned(const UnfoldingGraph &graph, StringRef name) {
  for (const auto &value : graph.getGraph().value_info()) {
    const TensorProto *image = graph.find(value.name());
    if (image && image->dims_size() == 2 && !graph.isRemoved(value.name()) &&
        findFoldedFrom(value) == std::vector<std::string>{name.str()} &&
        (is_contained({"t", "transpose", "permute", "numpy_t"}, operationName(value.name())) ||
         isOfLayers(graph, value.name())))
      return image;
  }
  return nullptr;
}

/// The transpose of a matrix of `rows`.
static std::vector<float> turn(ArrayRef<float> matrix, size_t rows) {
  std::vector<float> result(matrix.size());
  const size_t columns = matrix.size() / std::max<size_t>(rows, 1);
  for (size_t at = 0; at != matrix.size(); ++at)
    result[at % columns * rows + at / columns] = matrix[at];
  return result;
}

/// The layer that gave the tensor, if the file holds its weights and all that is gone is its operand.
static std::optional<Layer> findLayer(const UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  if (!is_contained({"linear", "addmm"}, operationName(tensor.name())) || tensor.dims_size() < 1)
    return std::nullopt;
  Layer layer;
  layer.outputs = size_t(tensor.dims(tensor.dims_size() - 1));
  for (const SignatureEntry *entry : evaluated.parameters) {
    const TensorProto *held = graph.find(entry->target), *image = held ? nullptr : findTurned(graph, entry->target);
    if (image && size_t(image->dims(1)) == layer.outputs && layer.weight.empty()) {
      layer.inputs = size_t(image->dims(0));
      layer.weight = turn(valuesOf(graph, *image), layer.inputs);
      layer.weightName = image->name();
      layer.isTurned = true;
    } else if (!held) {
      if (layer.gone)
        return std::nullopt;
      layer.gone = entry;
    } else if (held->dims_size() == 2 && size_t(held->dims(0)) == layer.outputs && layer.weight.empty()) {
      layer.weight = valuesOf(graph, *held);
      layer.weightName = held->name();
      layer.inputs = size_t(held->dims(1));
    } else if (held->dims_size() == 1 && size_t(held->dims(0)) == layer.outputs && layer.bias.empty()) {
      layer.bias = valuesOf(graph, *held);
      layer.biasName = held->name();
    } else {
      return std::nullopt;
    }
  }
  for (StringRef name : evaluated.foldedFrom) {
    const StringRef operation = operationName(name);
    const bool isParameter =
        any_of(evaluated.parameters, [&](const SignatureEntry *entry) { return entry->target == name; });
    layer.repeats |= !isParameter && is_contained({"expand", "repeat"}, operation);
    if (!isParameter && operation == "getitem" && layer.part.empty())
      layer.part = name;
    else if (!isParameter && !is_contained({"val", "expand", "repeat", "unsqueeze", "view", "t", "permute"}, operation))
      return std::nullopt;
  }
  const bool isKnown = layer.gone && !layer.weight.empty() && layer.inputs <= std::min(layer.outputs, widestLayer);
  return isKnown ? std::optional(layer) : std::nullopt;
}

/// wᵀ · w = l · lᵀ, by which every w · x = y is solved; empty: several x give the same y.
static std::vector<double> factor(const Layer &layer) {
  const size_t n = layer.inputs;
  auto w = [&](size_t row, size_t column) { return double(layer.weight[row * n + column]); };
  std::vector<double> l(n * n, 0);
  for (size_t i = 0; i != n; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (size_t row = 0; row != layer.outputs; ++row)
        sum += w(row, i) * w(row, j);
      const double whole = sum;
      for (size_t k = 0; k != j; ++k)
        sum -= l[i * n + k] * l[j * n + k];
      if (i == j && !(sum > 1e-7 * whole))
        return {};
      l[i * n + j] = i == j ? std::sqrt(sum) : sum / l[j * n + j];
    }
  return l;
}

/// x of w · x = y, by least squares; empty: none gives y.
static std::vector<double> solve(const Layer &layer, ArrayRef<double> l, ArrayRef<double> y) {
  const size_t n = layer.inputs;
  auto w = [&](size_t row, size_t column) { return double(layer.weight[row * n + column]); };
  std::vector<double> x(n, 0);
  for (size_t i = 0; i != n; ++i) {
    for (size_t row = 0; row != layer.outputs; ++row)
      x[i] += w(row, i) * y[row];
    for (size_t k = 0; k != i; ++k)
      x[i] -= l[i * n + k] * x[k];
    x[i] /= l[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k != n; ++k)
      x[i] -= l[k * n + i] * x[k];
    x[i] /= l[i * n + i];
  }
  for (size_t row = 0; row != layer.outputs; ++row) {
    double sum = 0, scale = 0;
    for (size_t k = 0; k != n; ++k) {
      sum += w(row, k) * x[k];
      scale = std::max(scale, std::abs(w(row, k) * x[k]));
    }
    if (!isEvaluated(sum, y[row], std::max(scale, layer.bias.empty() ? 0.0 : std::abs(double(layer.bias[row])))))
      return {};
  }
  return x;
}

/// What the layer read, a row for each sample, or one where they are equal; empty: nothing gives what it made.
static std::vector<float> solve(const UnfoldingGraph &graph, const Evaluated &evaluated, const Layer &layer) {
  const std::vector<float> held = valuesOf(graph, *evaluated.tensor);
  const std::vector<double> l = held.empty() ? std::vector<double>() : factor(layer);
  if (l.empty())
    return {};
  const size_t rows = held.size() / layer.outputs;
  std::vector<float> values;
  for (size_t row = 0; row != rows; ++row) {
    const ArrayRef<float> here = ArrayRef(held).slice(row * layer.outputs, layer.outputs);
    if (layer.repeats && row != 0) {
      if (here != ArrayRef(held).take_front(layer.outputs))
        return {};
      continue;
    }
    std::vector<double> y(here.begin(), here.end());
    for (size_t i = 0; i != layer.bias.size(); ++i)
      y[i] -= double(layer.bias[i]);
    const std::vector<double> x = solve(layer, l, y);
    if (x.empty())
      return {};
    values.insert(values.end(), x.begin(), x.end());
  }
  return values;
}

static void addSolved(UnfoldingGraph &graph, const std::string &name, ArrayRef<int64_t> dims, ArrayRef<float> values,
                      const TensorProto &image) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  graph.addInitializer(name, dims, TensorProto::FLOAT, std::move(bytes),
                       {image.name(),
                        "the exporter evaluated a layer of it as " + image.name() +
                            ", which is solved for it; with dimensions of one around it, its shape is another",
                        true});
}

bool lowtide::unfoldLayerOperand(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const std::optional<Layer> layer = findLayer(graph, evaluated);
  const std::vector<float> values =
      layer && layer->part.empty() ? solve(graph, evaluated, *layer) : std::vector<float>();
  if (values.empty())
    return false;
  SmallVector<int64_t> dims{int64_t(layer->inputs)};
  if (!layer->repeats)
    dims.assign(evaluated.tensor->dims().begin(), evaluated.tensor->dims().end());
  dims.back() = int64_t(layer->inputs);
  addSolved(graph, layer->gone->target, dims, values, *evaluated.tensor);
  return true;
}

bool lowtide::unfoldLayerOperands(UnfoldingGraph &graph, ArrayRef<const Evaluated *> evaluated) {
  struct Part {
    const TensorProto *tensor;
    Layer layer;
    std::vector<float> values;
  };
  std::vector<Part> parts;
  for (const Evaluated *each : evaluated) {
    std::optional<Layer> layer = findLayer(graph, *each);
    std::vector<float> values = layer && !layer->part.empty() ? solve(graph, *each, *layer) : std::vector<float>();
    if (values.empty() || (!parts.empty() && (values.size() != parts.front().values.size() ||
                                              layer->repeats != parts.front().layer.repeats)))
      return false;
    parts.push_back({each->tensor, std::move(*layer), std::move(values)});
  }
  // Results of an operation are read in their order.
  sortStably(parts, [](const Part &a, const Part &b) {
    return operationNumber(a.layer.part) < operationNumber(b.layer.part);
  });
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].layer.part == parts[i - 1].layer.part)
      return false;
  const int64_t width = int64_t(parts.front().layer.inputs), size = int64_t(parts.front().values.size());
  const std::string &name = parts.front().layer.gone->target;
  std::vector<float> values;
  for (const Part &part : parts)
    values.insert(values.end(), part.values.begin(), part.values.end());
  addSolved(graph, name, {int64_t(parts.size()), size / width, width}, values, *parts.front().tensor);
  for (auto [i, part] : enumerate(parts)) {
    graph.setModule(moduleOf(part.layer.biasName.empty() ? name : part.layer.biasName));
    const int64_t at = int64_t(i);
    const SmallVector<int64_t> dims(part.tensor->dims().begin(), part.tensor->dims().end());
    SmallVector<int64_t> read(dims);
    read.back() = width;
    std::string value = graph.addNode(
        "Slice", {name, graph.addIntegers({1}, {at}), graph.addIntegers({1}, {at + 1}), graph.addIntegers({1}, {0})});
    if (part.layer.repeats)
      value = graph.addNode("Expand", {value, graph.addIntegers({int64_t(read.size())}, read)});
    else
      value = graph.addNode("Reshape", {value, graph.addIntegers({int64_t(read.size())}, read)});
    const bool isAdded = !part.layer.biasName.empty();
    const std::string weight =
        part.layer.isTurned ? part.layer.weightName : graph.addNode("Transpose", {part.layer.weightName});
    value = graph.addNode("MatMul", {value, weight}, isAdded ? StringRef() : StringRef(part.tensor->name()));
    if (isAdded)
      graph.addNode("Add", {value, part.layer.biasName}, part.tensor->name());
    graph.remove(*part.tensor);
  }
  return true;
}

/// Writes zeros in place of an evaluated tensor, whose numbers they are.
static void writeZeros(UnfoldingGraph &graph, const TensorProto &tensor, ArrayRef<float> zeros, StringRef module) {
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  graph.setModule(module);
  graph.addNode("Identity", {graph.addNumbers(dims, zeros)}, tensor.name());
  graph.remove(tensor);
}

/// Whether `operation` of the program makes zeros of nothing but a shape.
static bool makesZeros(StringRef operation) { return is_contained({"zeros", "new_zeros", "zeros_like"}, operation); }

bool lowtide::unfoldZeroProduct(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  if (operationName(tensor.name()) != "mul")
    return false;
  bool hasZeros = false;
  for (StringRef from : evaluated.foldedFrom) {
    if (any_of(evaluated.parameters, [&](const SignatureEntry *entry) { return entry->target == from; }))
      continue;
    const StringRef operation = operationName(from);
    hasZeros |= makesZeros(operation);
    // What joins zeros, or adds them, keeps the other operand.
    const bool keepsOther =
        isJoin(from) || !(movesElements(from) || operation == "mul" || findElementFunction(operation));
    if (!makesZeros(operation) && keepsOther)
      return false;
  }
  const std::vector<float> results = valuesOf(graph, tensor);
  if (!hasZeros || results.empty() || !all_of(results, [](float value) { return value == 0; }))
    return false;
  writeZeros(graph, tensor, results, moduleOf(evaluated.parameters.front()->target));
  return true;
}

bool lowtide::unfoldZeroLayer(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  if (!is_contained({"linear", "mm", "matmul"}, operationName(tensor.name())) || evaluated.parameters.size() != 1)
    return false;
  const std::string &name = evaluated.parameters.front()->target;
  const TensorProto *held = graph.find(name), *weight = held ? held : findTurned(graph, name);
  const std::vector<float> results = valuesOf(graph, tensor),
                           numbers = weight ? valuesOf(graph, *weight) : std::vector<float>();
  auto isZero = [](float value) { return value == 0; };
  // Zeros of the weight would make zeros of anything.
  if (results.empty() || numbers.empty() || weight->dims_size() != 2 || !all_of(results, isZero) ||
      count_if(numbers, isZero) * 2 > int64_t(numbers.size()))
    return false;
  writeZeros(graph, tensor, results, moduleOf(name));
  return true;
}
