//===- UnfoldForms.cpp - parameters that the file also holds in another form -----===//
//
// Where a parameter is read as it is, and once more with dimensions put around it, or through a function, exporters
// evaluate the second form and keep both: trained as they stand, they would part. Their numbers are the same bit by
// bit, or those of the function to the last place, which no chance makes.
//
//===----------------------------------------------------------------------===//

#include "TensorData.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <cstring>
#include <map>
#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::TensorProto;

/// Elements of a tensor that chance may repeat, and of one that is too large to be compared.
static constexpr size_t fewest = 4, most = size_t(1) << 18;

static size_t elementsOf(const TensorProto &tensor) {
  return size_t(checkedElements({tensor.dims().data(), size_t(tensor.dims_size())}).value_or(0));
}

static bool isComparable(const TensorProto &tensor) {
  size_t elements = elementsOf(tensor);
  return tensor.data_type() == TensorProto::FLOAT && elements >= fewest && elements <= most;
}

static std::vector<float> floatsOf(StringRef bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

namespace {
/// A function that exporters evaluate element by element: what it computes, and the operators of it.
struct Function {
  std::initializer_list<const char *> ops;
  double (*evaluate)(double);
};

/// One of the functions, or a factor.
struct Relation {
  const Function *function = nullptr;
  double factor = 1;
  bool isSoftmax = false;
};
} // namespace

static bool isNear(double expected, float value) {
  // Exporters evaluate in f32, by polynomials.
  return std::abs(expected - double(value)) <= 4e-7 * std::abs(expected) + 1e-37;
}

/// Factors that programs write: 2, 1/8, 0.1, 1/√d.
static bool isWritten(double factor) {
  for (double number : {factor, factor * factor, 1 / factor, 1 / (factor * factor)})
    if (std::abs(number) >= 0.5 && std::abs(number) < 4096 &&
        std::abs(number * 10 - std::round(number * 10)) < 1e-5 * std::abs(number))
      return true;
  return false;
}

/// By what `image` was computed from `source`, element by element; nullopt: not known.
static std::optional<Relation> findRelation(ArrayRef<float> source, ArrayRef<float> image) {
  static const Function functions[] = {
      {{"Mul"}, [](double x) { return x * x; }}, // by itself
      {{"Sqrt"}, [](double x) { return std::sqrt(x); }},
      {{"Exp"}, [](double x) { return std::exp(x); }},
      {{"Sigmoid"}, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {{"Tanh"}, [](double x) { return std::tanh(x); }},
      {{"Softplus"}, [](double x) { return std::log1p(std::exp(x)); }},
      {{"Log"}, [](double x) { return std::log(x); }},
      {{"Abs"}, [](double x) { return std::abs(x); }},
      {{"Neg"}, [](double x) { return -x; }},
      {{"Reciprocal"}, [](double x) { return 1 / x; }},
      {{"Sqrt", "Reciprocal"}, [](double x) { return 1 / std::sqrt(x); }},
      {{"Relu"}, [](double x) { return x > 0 ? x : 0; }},
  };
  if (source == image) // a clone, or merged
    return std::nullopt;
  for (const Function &function : functions)
    if (all_of(zip(source, image),
               [&](auto pair) { return isNear(function.evaluate(std::get<0>(pair)), std::get<1>(pair)); }))
      return Relation{&function};
  double sum = 0, largest = 0, factor = 0;
  for (auto [x, y] : zip(source, image)) {
    sum += std::exp(double(x));
    if (std::abs(double(x)) > largest) {
      largest = std::abs(double(x));
      factor = double(y) / double(x);
    }
  }
  if (all_of(zip(source, image),
             [&](auto pair) { return isNear(std::exp(double(std::get<0>(pair))) / sum, std::get<1>(pair)); }))
    return Relation{nullptr, 1, true};
  if (std::abs(factor - 1) > 1e-6 && isWritten(factor) &&
      all_of(zip(source, image), [&](auto pair) { return isNear(factor * std::get<0>(pair), std::get<1>(pair)); }))
    return Relation{nullptr, factor, false};
  return std::nullopt;
}

/// Adds the nodes of `relation` to `value` and returns what they compute.
static std::string addFunction(UnfoldingGraph &graph, const Relation &relation, std::string value) {
  if (relation.isSoftmax) { // over all elements
    value = graph.addNode("Reshape", {value, graph.addIntegers({1}, {-1})});
    value = graph.addNode("Softmax", {value});
    graph.setAttribute("axis", 0);
    return value;
  }
  if (!relation.function)
    return graph.addNode("Mul", {value, graph.addNumber(float(relation.factor))});
  for (StringRef op : relation.function->ops)
    value = op == "Mul" ? graph.addNode(op, {value, value}) : graph.addNode(op, {value});
  return value;
}

void lowtide::unfoldForms(UnfoldingGraph &graph, GraphProto &proto,
                          function_ref<bool(const TensorProto &)> isEvaluated) {
  StringMap<std::string> sources;
  SmallVector<const TensorProto *> evaluated, whole;
  std::set<size_t> sizes;
  for (const TensorProto &tensor : proto.initializer()) {
    if (!isComparable(tensor) || graph.isRemoved(tensor.name()))
      continue;
    bool isForm = isEvaluated(tensor);
    (isForm ? evaluated : whole).push_back(&tensor);
    if (isForm)
      sizes.insert(elementsOf(tensor));
  }
  std::map<size_t, SmallVector<std::pair<std::string, std::vector<float>>>> candidates;
  auto addCandidate = [&](const TensorProto &tensor, const std::string &bytes) {
    // Equal elements may be equal by chance.
    if (bytes.empty() || StringRef(bytes).drop_front(sizeof(float)) == StringRef(bytes).drop_back(sizeof(float)))
      return false;
    candidates[elementsOf(tensor)].push_back({tensor.name(), floatsOf(bytes)});
    return true;
  };
  for (const TensorProto *tensor : whole) {
    std::string bytes = sizes.count(elementsOf(*tensor)) ? graph.read(*tensor).value_or("") : "";
    if (addCandidate(*tensor, bytes))
      sources[bytes] = tensor->name();
  }
  for (const TensorProto *tensor : evaluated) {
    std::string bytes = graph.read(*tensor).value_or(""), source;
    Relation relation;
    bool isFunction = false;
    if (auto found = sources.find(bytes); found != sources.end()) {
      source = found->second;
    } else {
      std::vector<float> image = floatsOf(bytes);
      for (const auto &[name, values] : candidates[elementsOf(*tensor)])
        if (std::optional<Relation> found = findRelation(values, image); found && source.empty()) {
          source = name;
          relation = *found;
          isFunction = true;
        }
    }
    if (source.empty()) {
      // Itself a parameter in another form, of which there may be more.
      addCandidate(*tensor, bytes);
      continue;
    }
    SmallVector<int64_t> dims(tensor->dims().begin(), tensor->dims().end());
    graph.setModule(moduleOf(source));
    std::string value = isFunction ? addFunction(graph, relation, source) : source;
    graph.addNode("Reshape", {value, graph.addIntegers({int64_t(dims.size())}, dims)}, tensor->name());
    graph.remove(*tensor);
  }
}
