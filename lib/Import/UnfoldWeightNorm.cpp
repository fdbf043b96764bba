//===- UnfoldWeightNorm.cpp - weights kept as direction and length ---------------===//
//
// Weight norm (Salimans and Kingma) keeps a weight as g · v / |v|, and exporters evaluate it. The lengths g are those
// of the weight; the length of v is lost, and has no effect but on how fast v turns. Taken as equal to g, as they are
// when training starts.
//
//===----------------------------------------------------------------------===//

#include "TensorData.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <cstring>

using namespace llvm;
using namespace lowtide;
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

/// Whether the notes name what weight norm computes and nothing else.
static bool isNormalized(const Evaluated &evaluated) {
  bool divides = false, measures = false;
  for (const std::string &name : evaluated.foldedFrom) {
    StringRef op = operationName(name);
    divides |= op == "div";
    measures |= op == "linalg_vector_norm" || op == "norm";
    bool isKnown =
        StringSwitch<bool>(op).Cases({"div", "linalg_vector_norm", "norm", "val", "expand_as"}, true).Default(false);
    if (!isKnown && none_of(evaluated.parameters, [&](const SignatureEntry *entry) { return entry->target == name; }))
      return false;
  }
  return divides && measures && operationName(evaluated.tensor->name()) == "mul";
}

bool lowtide::unfoldWeightNorm(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  auto [length, direction] = findPair(evaluated.parameters);
  if (!length || !direction || !isNormalized(evaluated) || tensor.data_type() != TensorProto::FLOAT ||
      tensor.dims_size() < 2 || tensor.dims(0) < 1)
    return false;
  std::optional<std::string> bytes = graph.read(tensor);
  if (!bytes)
    return false;
  int64_t rows = tensor.dims(0);
  size_t width = bytes->size() / sizeof(float) / size_t(rows);
  std::string lengths;
  for (int64_t row = 0; row != rows; ++row) {
    double square = 0;
    for (size_t i = 0; i != width; ++i) {
      float value;
      std::memcpy(&value, &(*bytes)[(size_t(row) * width + i) * sizeof(float)], sizeof(value));
      square += double(value) * double(value);
    }
    float root = float(std::sqrt(square));
    if (!(root > 0) || !std::isfinite(root))
      return false; // of a weight of zeros, the direction is lost as well
    lengths.append(reinterpret_cast<const char *>(&root), sizeof(root));
  }
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end()), axes, single(dims.size(), 1);
  single[0] = rows;
  for (size_t axis = 1; axis != dims.size(); ++axis)
    axes.push_back(int64_t(axis));
  // Written back as a weight: the length and the direction of both are one.
  std::string how = "length or direction of " + tensor.name() + "; the direction's own length is taken as the weight's";
  graph.setModule(moduleOf(direction->target));
  graph.addInitializer(length->target, single, tensor.data_type(), std::move(lengths),
                       {tensor.name(), how, {}, {"weight norm"}, true});
  graph.addInitializer(direction->target, dims, tensor.data_type(), std::move(*bytes),
                       {tensor.name(), how, {}, {"weight norm"}, true});
  std::string square = graph.addNode("Mul", {direction->target, direction->target});
  std::string sum = graph.addNode("ReduceSum", {square, graph.addIntegers({int64_t(axes.size())}, axes)});
  graph.setAttribute("keepdims", 1);
  std::string norm = graph.addNode("Sqrt", {sum});
  std::string unit = graph.addNode("Div", {direction->target, norm});
  graph.addNode("Mul", {unit, length->target}, tensor.name());
  graph.remove(tensor);
  return true;
}
