//===- LayerOperands.cpp - a learned state that only a layer reads ------------------===//
//
// A learned first state of an `nn.LSTMCell` is multiplied with the cell's weights, and that is evaluated: the file
// holds the product, and the weights, which later steps read. A layer with as many outputs as inputs or more has one
// operand that gives its result, which is solved for.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// Inputs of the widest layer that is solved for.
static constexpr size_t widestLayer = 1024;

namespace {
struct Layer {
  const SignatureEntry *gone = nullptr;
  std::vector<float> weight, bias;
  size_t inputs = 0, outputs = 0;
  bool repeats = false;
};
} // namespace

const TensorProto *lowtide::findTurned(const UnfoldingGraph &graph, StringRef name) {
  for (const auto &value : graph.getGraph().value_info()) {
    const TensorProto *image = is_contained({"t", "transpose", "permute", "numpy_t"}, operationName(value.name()))
                                   ? graph.find(value.name())
                                   : nullptr;
    if (image && image->dims_size() == 2 && !graph.isRemoved(value.name()) &&
        findFoldedFrom(value) == std::vector<std::string>{name.str()})
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
    } else if (!held) {
      if (layer.gone)
        return std::nullopt;
      layer.gone = entry;
    } else if (held->dims_size() == 2 && size_t(held->dims(0)) == layer.outputs && layer.weight.empty()) {
      layer.weight = valuesOf(graph, *held);
      layer.inputs = size_t(held->dims(1));
    } else if (held->dims_size() == 1 && size_t(held->dims(0)) == layer.outputs && layer.bias.empty()) {
      layer.bias = valuesOf(graph, *held);
    } else {
      return std::nullopt;
    }
  }
  for (StringRef name : evaluated.foldedFrom) {
    const StringRef operation = operationName(name);
    const bool isParameter =
        any_of(evaluated.parameters, [&](const SignatureEntry *entry) { return entry->target == name; });
    layer.repeats |= !isParameter && is_contained({"expand", "repeat"}, operation);
    if (!isParameter && !is_contained({"val", "expand", "repeat", "unsqueeze", "view", "t", "permute"}, operation))
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

bool lowtide::unfoldLayerOperand(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const std::optional<Layer> layer = findLayer(graph, evaluated);
  const std::vector<float> held = layer ? valuesOf(graph, *evaluated.tensor) : std::vector<float>();
  if (held.empty())
    return false;
  const std::vector<double> l = factor(*layer);
  if (l.empty())
    return false;
  const size_t rows = held.size() / layer->outputs;
  std::vector<float> values;
  for (size_t row = 0; row != rows; ++row) {
    const ArrayRef<float> here = ArrayRef(held).slice(row * layer->outputs, layer->outputs);
    if (layer->repeats && row != 0) {
      if (here != ArrayRef(held).take_front(layer->outputs))
        return false;
      continue;
    }
    std::vector<double> y(here.begin(), here.end());
    for (size_t i = 0; i != layer->bias.size(); ++i)
      y[i] -= double(layer->bias[i]);
    const std::vector<double> x = solve(*layer, l, y);
    if (x.empty())
      return false;
    values.insert(values.end(), x.begin(), x.end());
  }
  SmallVector<int64_t> dims{int64_t(layer->inputs)};
  if (!layer->repeats)
    dims.assign(evaluated.tensor->dims().begin(), evaluated.tensor->dims().end());
  dims.back() = int64_t(layer->inputs);
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  graph.addInitializer(layer->gone->target, dims, TensorProto::FLOAT, std::move(bytes),
                       {evaluated.tensor->name(),
                        "the exporter evaluated a layer of it as " + evaluated.tensor->name() +
                            ", which is solved for it; with dimensions of one around it, its shape is another",
                        true});
  return true;
}
