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
#include <map>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Elements of the largest tensors whose values are compared without a note that speaks for it.
static constexpr int64_t largestCompared = 1 << 20;

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

/// The number with which the form makes `values` of `parameter` (0 where it takes none); nullopt: it does not.
static std::optional<double> match(const Form &form, ArrayRef<float> parameter, ArrayRef<float> values) {
  if (form.takesNumber) {
    double number = findNumber(form, parameter, values);
    return std::isnan(number) ? std::nullopt : std::optional(number);
  }
  bool fits = all_of(zip(parameter, values),
                     [&](auto pair) { return isNear(form.function(std::get<0>(pair), 0), std::get<1>(pair)); });
  return fits ? std::optional(0.0) : std::nullopt;
}

/// Lets nodes compute `value`, of the dimensions of `image`, from `parameter`.
static void compute(UnfoldingGraph &graph, const TensorProto &image, StringRef value, const std::string &parameter,
                    const Form &form, double number) {
  graph.setModule(moduleOf(parameter));
  SmallVector<std::string> operands{parameter};
  if (form.takesNumber)
    operands.insert(form.isNumberFirst ? operands.begin() : operands.end(), graph.addNumber(float(number)));
  std::string result = graph.addNode(form.op, operands);
  SmallVector<int64_t> dims(image.dims().begin(), image.dims().end());
  graph.addNode("Reshape", {result, graph.addIntegers({int64_t(dims.size())}, dims)}, value);
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
    if (std::optional<double> number = match(form, parameter, values)) {
      compute(graph, *evaluated.tensor, evaluated.tensor->name(), tensor->name(), form, *number);
      graph.remove(*evaluated.tensor);
      return true;
    }
  }
  return false;
}

/// How far apart the values are.
static double spread(ArrayRef<float> values) {
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  return double(*most) - double(*least);
}

/// Whether a tensor of `values` cannot be the form's of `parameter` by chance: there are a few, and they differ by more
/// than what the comparison forgives.
static bool isTelling(const Form &form, ArrayRef<float> parameter, ArrayRef<float> values) {
  auto magnitude = [](ArrayRef<float> all) {
    return std::max(std::abs(*min_element(all)), std::abs(*max_element(all)));
  };
  double least = 1e-3 * std::max(magnitude(parameter), magnitude(values));
  bool isSum = StringRef(form.op) == "Add" || StringRef(form.op) == "Sub";
  return values.size() >= 4 && parameter != values && spread(parameter) > 1e-3 * magnitude(parameter) &&
         spread(values) > 1e-3 * magnitude(values) && (!isSum || spread(parameter) > least);
}

namespace {
/// Functions of parameters in a file without notes.
class Images {
public:
  Images(UnfoldingGraph &graph, GraphProto &proto, ArrayRef<const TensorProto *> parameters)
      : graph(graph), proto(proto) {
    for (const TensorProto *tensor : parameters)
      if (tensor->data_type() == TensorProto::FLOAT)
        add(tensor->name(), *tensor);
    // Merged parameters keep their names by copies.
    for (const NodeProto &node : proto.node())
      if (const TensorProto *tensor = node.op_type() == "Identity" ? graph.find(node.input(0)) : nullptr)
        if (is_contained(parameters, tensor))
          add(node.output(0), *tensor);
  }

  void unfold(const TensorProto &image);

private:
  struct Named {
    std::string name;
    const TensorProto *tensor;
  };
  struct Match {
    const Named *parameter = nullptr;
    const Form *form = nullptr;
    double number = 0;
  };

  static int64_t elementsOf(const TensorProto &tensor) {
    return checkedElements({tensor.dims().data(), size_t(tensor.dims_size())}).value_or(0);
  }
  void add(const std::string &name, const TensorProto &tensor) { named[elementsOf(tensor)].push_back({name, &tensor}); }
  ArrayRef<float> valuesOnce(const TensorProto &tensor) {
    auto [at, isNew] = held.try_emplace(&tensor);
    if (isNew)
      at->second = valuesOf(graph, tensor);
    return at->second;
  }
  Match find(const TensorProto &image, std::optional<std::string> module);

  UnfoldingGraph &graph;
  GraphProto &proto;
  std::map<int64_t, std::vector<Named>> named;
  std::map<const TensorProto *, std::vector<float>> held;
};
} // namespace

/// What the image is to a reader in `module`: a function of a parameter of that module rather than of another's.
Images::Match Images::find(const TensorProto &image, std::optional<std::string> module) {
  // `/block/Sub_output_0` says which operator; `onnx::Mul_12`, which one reads it.
  StringRef op = findEvaluatedOperator(image.name());
  ArrayRef<float> values = valuesOnce(image);
  Match found;
  for (const Named &parameter : named[elementsOf(image)]) {
    ArrayRef<float> of = valuesOnce(*parameter.tensor);
    bool isOwn = moduleOf(parameter.name) == module;
    if (of.empty() || of.size() != values.size() || (found.form && !isOwn))
      continue;
    for (const Form &form : forms) {
      std::optional<double> number = op.empty() || op == form.op ? match(form, of, values) : std::nullopt;
      // The other part of a mixture is one even where the numbers alone would not tell.
      bool isRest = number == 1 && form.isNumberFirst && StringRef(form.op) == "Sub";
      if (!number || !(isTelling(form, of, values) || (isOwn && isRest)))
        continue;
      found = {&parameter, &form, *number};
      if (isOwn)
        return found;
      break;
    }
  }
  return found;
}

void Images::unfold(const TensorProto &image) {
  if (elementsOf(image) > largestCompared || image.data_type() != TensorProto::FLOAT || valuesOnce(image).empty())
    return;
  struct Reader {
    int node, operand;
    Match match;
  };
  SmallVector<Reader> readers;
  int numNodes = proto.node_size();
  // Merged images keep their names by copies, too.
  StringSet<> names;
  names.insert(image.name());
  for (const NodeProto &node : proto.node())
    if (node.op_type() == "Identity" && node.input(0) == image.name())
      names.insert(node.output(0));
  for (int i = 0; i != numNodes; ++i)
    for (auto [operand, name] : enumerate(proto.node(i).input()))
      if (names.contains(name) && proto.node(i).op_type() != "Identity") {
        readers.push_back({i, int(operand), find(image, findModulePath(proto.node(i)))});
        if (!readers.back().match.form)
          return;
      }
  // The first reader's value keeps the image's name: graphs within the graph may read it, too.
  std::map<const Named *, std::string> computed;
  for (const Reader &reader : readers) {
    auto [value, isNew] = computed.try_emplace(reader.match.parameter);
    if (isNew) {
      value->second = computed.size() == 1 ? image.name() : (image.name() + "@" + reader.match.parameter->name);
      compute(graph, image, value->second, reader.match.parameter->name, *reader.match.form, reader.match.number);
    }
    proto.mutable_node(reader.node)->set_input(reader.operand, value->second);
  }
  if (!readers.empty())
    graph.remove(image);
}

void lowtide::unfoldBeside(UnfoldingGraph &graph, GraphProto &proto, ArrayRef<const TensorProto *> evaluated,
                           ArrayRef<const TensorProto *> parameters) {
  Images images(graph, proto, parameters);
  for (const TensorProto *image : evaluated)
    images.unfold(*image);
}
