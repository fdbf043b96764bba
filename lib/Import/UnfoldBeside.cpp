//===- UnfoldBeside.cpp - functions of parameters that the file holds as well ----===//
//
// A parameter is read as it is and by a function that the exporter evaluates: `mix` and `1 - mix`, a gate and its
// sigmoid, a weight and the penalty on its squares. The notes name parameters and operations; which function it was,
// and with which number, the values tell.
//
//===----------------------------------------------------------------------===//

#include "TensorData.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// The f32 values of `tensor`; empty where they cannot be read.
static std::vector<float> valuesOf(const UnfoldingGraph &graph, const TensorProto &tensor) {
  std::string bytes = tensor.data_type() == TensorProto::FLOAT ? graph.read(tensor).value_or("") : "";
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

static bool isNear(double a, double b) { return std::abs(a - b) <= 2e-6 * std::max(std::abs(a), std::abs(b)); }

namespace {
/// A function of an element x, and perhaps of a number that is the same for all.
struct Form {
  /// The operation of the exported program, and the operator that computes it.
  const char *operation, *op;
  /// Whether a number is an operand, and stands in front.
  bool takesNumber, isNumberFirst;
  /// Of x; with a number: the number that makes y of x.
  double (*function)(double x, double y);
};
} // namespace

static constexpr Form forms[] = {
    {"sub", "Sub", true, true, [](double x, double y) { return y + x; }},
    {"rsub", "Sub", true, true, [](double x, double y) { return y + x; }},
    {"sub", "Sub", true, false, [](double x, double y) { return x - y; }},
    {"add", "Add", true, false, [](double x, double y) { return y - x; }},
    {"mul", "Mul", true, false, [](double x, double y) { return y / x; }},
    {"div", "Div", true, false, [](double x, double y) { return x / y; }},
    {"div", "Div", true, true, [](double x, double y) { return x * y; }},
    {"exp", "Exp", false, false, [](double x, double) { return std::exp(x); }},
    {"log", "Log", false, false, [](double x, double) { return std::log(x); }},
    {"neg", "Neg", false, false, [](double x, double) { return -x; }},
    {"abs", "Abs", false, false, [](double x, double) { return std::abs(x); }},
    {"relu", "Relu", false, false, [](double x, double) { return std::max(x, 0.0); }},
    {"sigmoid", "Sigmoid", false, false, [](double x, double) { return 1 / (1 + std::exp(-x)); }},
    {"tanh", "Tanh", false, false, [](double x, double) { return std::tanh(x); }},
    {"softplus", "Softplus", false, false, [](double x, double) { return std::log1p(std::exp(x)); }},
    {"sqrt", "Sqrt", false, false, [](double x, double) { return std::sqrt(x); }},
    {"reciprocal", "Reciprocal", false, false, [](double x, double) { return 1 / x; }},
    {"sin", "Sin", false, false, [](double x, double) { return std::sin(x); }},
    {"cos", "Cos", false, false, [](double x, double) { return std::cos(x); }},
};

/// The operations that made the tensor, those aside that move elements.
static SmallVector<StringRef> findOperations(const Evaluated &evaluated) {
  SmallVector<StringRef> operations;
  auto add = [&](StringRef name) {
    bool isParameter = any_of(evaluated.parameters, [&](const SignatureEntry *entry) { return entry->target == name; });
    if (!isParameter && !movesElements(name) && !operationName(name).starts_with("scalar_tensor"))
      operations.push_back(operationName(name));
  };
  for (const std::string &name : evaluated.foldedFrom)
    add(name);
  add(evaluated.tensor->name());
  return operations;
}

/// The number that makes all of `values` of `parameter`, which is the first pair's; NaN where there is none.
static double findNumber(const Form &form, ArrayRef<float> parameter, ArrayRef<float> values) {
  double number = NAN;
  for (auto [x, y] : zip(parameter, values)) {
    double found = form.function(x, y);
    if (std::isnan(number) && std::isfinite(found))
      number = double(float(found));
    double again = StringRef(form.op) == "Mul"   ? number * x
                   : StringRef(form.op) == "Add" ? x + number
                   : StringRef(form.op) == "Div" ? (form.isNumberFirst ? number / x : x / number)
                                                 : (form.isNumberFirst ? number - x : x - number);
    if (!(std::abs(again - y) <= 2e-6 * std::max({std::abs(double(y)), std::abs(double(x)), std::abs(number)})))
      return NAN;
  }
  return number;
}

/// A number as someone wrote it: of few digits.
static double asWritten(double number) {
  for (int digits = 1; digits <= 3; ++digits) {
    double unit = std::pow(10.0, std::floor(std::log10(std::abs(number))) + 1 - digits);
    double rounded = std::round(number / unit) * unit;
    if (std::abs(rounded - number) <= 2e-5 * std::abs(number))
      return rounded;
  }
  return NAN;
}

/// The file's tensor that holds the elements of `entry`, each once, in some order; null: there is none.
static const TensorProto *findElements(const UnfoldingGraph &graph, const SignatureEntry &entry,
                                       ArrayRef<const Evaluated *> moved) {
  if (const TensorProto *tensor = graph.find(entry.target))
    return tensor;
  for (const Evaluated *other : moved)
    if (other->parameters.size() == 1 && other->parameters.front() == &entry && !graph.isRemoved(other->tensor->name()))
      return other->tensor;
  return nullptr;
}

/// Σ c·x² or Σ c·|x| over all elements of all parameters: what a program adds to its loss.
static bool unfoldPenalty(UnfoldingGraph &graph, const Evaluated &evaluated, ArrayRef<StringRef> operations,
                          ArrayRef<const Evaluated *> moved) {
  std::vector<float> held = valuesOf(graph, *evaluated.tensor);
  bool isMean = is_contained(operations, "mean"), isAbsolute = is_contained(operations, "abs");
  bool isSquare = is_contained(operations, "pow") || is_contained(operations, "square");
  if (held.size() != 1 || !(isMean || is_contained(operations, "sum")) || isAbsolute == isSquare)
    return false;
  for (StringRef operation : operations)
    if (!is_contained({"sum", "mean", "abs", "pow", "square", "mul", "add", "val"}, operation))
      return false;
  double total = 0;
  SmallVector<std::string> names;
  for (const SignatureEntry *entry : evaluated.parameters) {
    const TensorProto *tensor = findElements(graph, *entry, moved);
    std::vector<float> elements = tensor ? valuesOf(graph, *tensor) : std::vector<float>();
    if (elements.empty())
      return false;
    double sum = 0;
    for (double x : elements)
      sum += isAbsolute ? std::abs(x) : x * x;
    total += isMean ? sum / double(elements.size()) : sum;
    names.push_back(tensor->name());
  }
  double factor = total > 0 ? asWritten(held.front() / total) : NAN;
  if (std::isnan(factor))
    return false;
  std::string result;
  for (const std::string &name : names) {
    std::string each = isAbsolute ? graph.addNode("Abs", {name}) : graph.addNode("Mul", {name, name});
    each = graph.addNode(isMean ? "ReduceMean" : "ReduceSum", {each});
    graph.setAttribute("keepdims", 0);
    result = result.empty() ? each : graph.addNode("Add", {result, each});
  }
  result = graph.addNode("Mul", {result, graph.addNumber(float(factor))});
  SmallVector<int64_t> dims(evaluated.tensor->dims().begin(), evaluated.tensor->dims().end());
  graph.addNode("Reshape", {result, graph.addIntegers({int64_t(dims.size())}, dims)}, evaluated.tensor->name());
  graph.remove(*evaluated.tensor);
  return true;
}

/// The second function of the first, neither with a number: the tensor is named after the one that came last.
static bool unfoldChain(UnfoldingGraph &graph, const Evaluated &evaluated, const TensorProto &tensor,
                        ArrayRef<StringRef> operations) {
  std::vector<float> parameter = valuesOf(graph, tensor), values = valuesOf(graph, *evaluated.tensor);
  auto find = [](StringRef operation) {
    return find_if(forms, [&](const Form &form) { return !form.takesNumber && operation == form.operation; });
  };
  const Form *first = find(operations[0]), *second = find(operations[1]);
  if (first == std::end(forms) || second == std::end(forms) || values.empty() || parameter.size() != values.size() ||
      operationName(evaluated.tensor->name()) != second->operation ||
      any_of(evaluated.foldedFrom, [](const std::string &name) { return isGather(name); }))
    return false;
  for (auto [x, y] : zip(parameter, values))
    if (!isNear(second->function(first->function(x, 0), 0), y))
      return false;
  graph.setModule(moduleOf(evaluated.parameters.front()->target));
  std::string result = graph.addNode(second->op, {graph.addNode(first->op, {tensor.name()})});
  SmallVector<int64_t> dims(evaluated.tensor->dims().begin(), evaluated.tensor->dims().end());
  graph.addNode("Reshape", {result, graph.addIntegers({int64_t(dims.size())}, dims)}, evaluated.tensor->name());
  graph.remove(*evaluated.tensor);
  return true;
}

bool lowtide::unfoldBeside(UnfoldingGraph &graph, const Evaluated &evaluated, ArrayRef<const Evaluated *> moved) {
  SmallVector<StringRef> operations = findOperations(evaluated);
  if (unfoldPenalty(graph, evaluated, operations, moved))
    return true;
  const TensorProto *tensor =
      evaluated.parameters.size() == 1 ? graph.find(evaluated.parameters.front()->target) : nullptr;
  // Its steps and operands may have names, too.
  llvm::erase(operations, StringRef("val"));
  if (tensor && operations.size() == 2 && unfoldChain(graph, evaluated, *tensor, operations))
    return true;
  if (!tensor || operations.size() != 1 ||
      any_of(evaluated.foldedFrom, [](const std::string &name) { return isGather(name); }))
    return false;
  std::vector<float> parameter = valuesOf(graph, *tensor), values = valuesOf(graph, *evaluated.tensor);
  if (values.empty() || parameter.size() != values.size())
    return false;
  for (const Form &form : forms) {
    if (operations.front() != form.operation)
      continue;
    double number = form.takesNumber ? findNumber(form, parameter, values) : 0;
    if (std::isnan(number) || (!form.takesNumber && !all_of(zip(parameter, values), [&](auto pair) {
          return isNear(form.function(std::get<0>(pair), 0), std::get<1>(pair));
        })))
      continue;
    graph.setModule(moduleOf(evaluated.parameters.front()->target));
    SmallVector<std::string> operands{tensor->name()};
    if (form.takesNumber)
      operands.insert(form.isNumberFirst ? operands.begin() : operands.end(), graph.addNumber(float(number)));
    std::string result = graph.addNode(form.op, operands);
    SmallVector<int64_t> dims(evaluated.tensor->dims().begin(), evaluated.tensor->dims().end());
    graph.addNode("Reshape", {result, graph.addIntegers({int64_t(dims.size())}, dims)}, evaluated.tensor->name());
    graph.remove(*evaluated.tensor);
    return true;
  }
  return false;
}
