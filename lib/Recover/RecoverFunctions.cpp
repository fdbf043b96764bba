//===- RecoverFunctions.cpp - functions of parameters that the file holds as well ----===//
//
// A parameter is read as it is and by a function that the exporter evaluates: `mix` and `1 - mix`, a gate and its
// sigmoid, a table and the lengths of its rows. The notes name parameters and operations; which function it was,
// and with which number, the values tell.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <numeric>
#include <tuple>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

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

const TensorProto *lowtide::findElements(const UnfoldingGraph &graph, const SignatureEntry &entry,
                                         ArrayRef<const Evaluated *> moved) {
  if (const TensorProto *tensor = graph.find(entry.target))
    return tensor;
  for (const Evaluated *other : moved)
    if (other->parameters.size() == 1 && other->parameters.front() == &entry && !graph.isRemoved(other->tensor->name()))
      return other->tensor;
  return nullptr;
}

namespace {
/// A sum over some dimensions of the elements, their squares or their sizes; its root; or the elements over that root.
struct Reduction {
  bool isSquare, isAbsolute, isMean, isRoot, isQuotient;
  SmallVector<int64_t> axes;
};
} // namespace

/// What the notes say of how it was reduced; nullopt: nothing, or more than that.
static std::optional<Reduction> findReduction(ArrayRef<StringRef> operations) {
  for (StringRef operation : operations)
    if (!is_contained({"sum", "mean", "abs", "pow", "square", "mul", "val", "linalg_vector_norm", "norm", "div",
                       "clamp", "clamp_min", "expand_as"},
                      operation))
      return std::nullopt;
  auto has = [&](StringRef name) { return is_contained(operations, name); };
  bool isRoot = has("linalg_vector_norm") || has("norm"), isSquare = has("pow") || has("square") || has("mul");
  if (isRoot + has("sum") + has("mean") != 1 || isRoot + isSquare + has("abs") > 1 || (has("div") && !isRoot))
    return std::nullopt;
  return Reduction{isRoot || isSquare, has("abs"), has("mean"), isRoot, has("div"), {}};
}

/// What `reduction` makes of `values`.
static std::vector<double> reduce(const Reduction &reduction, ArrayRef<float> values, ArrayRef<int64_t> dims) {
  // Where each element goes.
  SmallVector<int64_t> strides(dims.size(), 0);
  int64_t size = 1;
  for (size_t axis = dims.size(); axis-- > 0;)
    if (!is_contained(reduction.axes, int64_t(axis))) {
      strides[axis] = size;
      size *= dims[axis];
    }
  auto placeOf = [&](size_t element) {
    int64_t place = 0, rest = int64_t(element);
    for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
      place += rest % dims[axis] * strides[axis];
    return size_t(place);
  };
  std::vector<double> result(size_t(size), 0);
  for (auto [i, x] : enumerate(values))
    result[placeOf(i)] += reduction.isSquare     ? double(x) * double(x)
                          : reduction.isAbsolute ? std::abs(double(x))
                                                 : double(x);
  for (double &y : result)
    y = reduction.isRoot ? std::sqrt(y) : reduction.isMean ? y * double(size) / double(values.size()) : y;
  if (!reduction.isQuotient)
    return result;
  std::vector<double> quotients;
  for (auto [i, x] : enumerate(values))
    quotients.push_back(double(x) / result[placeOf(i)]);
  return quotients;
}

/// Lengths of rows and the like: what a program compares a codebook's entries by; also repeated in front, once for each
/// sample.
static bool unfoldReduction(UnfoldingGraph &graph, const Evaluated &evaluated, const TensorProto &tensor,
                            ArrayRef<StringRef> operations) {
  std::optional<Reduction> reduction = findReduction(operations);
  std::vector<float> parameter = valuesOf(graph, tensor), values = valuesOf(graph, *evaluated.tensor);
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  if (!reduction || parameter.empty() || values.empty() || dims.size() > 4 ||
      int64_t(parameter.size()) > largestCompared)
    return false;
  size_t size = 0; // of what is not repeated
  auto fits = [&](unsigned set) {
    reduction->axes.clear();
    for (size_t axis = 0; axis != dims.size(); ++axis)
      if (set >> axis & 1)
        reduction->axes.push_back(int64_t(axis));
    std::vector<double> expected = reduce(*reduction, parameter, dims);
    double scale = 0; // sums of both signs keep the error of their largest terms
    for (double x : parameter)
      scale = std::max(scale, reduction->isSquare || reduction->isAbsolute ? 0 : std::abs(x));
    if (values.size() % expected.size() != 0)
      return false;
    for (size_t at = 0; at != values.size(); at += expected.size())
      if (!all_of(zip(expected, ArrayRef(values).slice(at, expected.size())),
                  [&](auto pair) { return isEvaluated(std::get<0>(pair), std::get<1>(pair), scale); }))
        return false;
    size = expected.size();
    return true;
  };
  unsigned set = 1;
  while (set < 1u << dims.size() && !fits(set))
    ++set;
  SmallVector<int64_t> shape(evaluated.tensor->dims().begin(), evaluated.tensor->dims().end()), inner(shape);
  while (!inner.empty() && checkedElements(inner).value_or(0) > int64_t(size))
    inner.erase(inner.begin());
  if (set == 1u << dims.size() || checkedElements(inner).value_or(0) != int64_t(size))
    return false;
  graph.setModule(moduleOf(tensor.name()));
  std::string result = reduction->isSquare     ? graph.addNode("Mul", {tensor.name(), tensor.name()})
                       : reduction->isAbsolute ? graph.addNode("Abs", {tensor.name()})
                                               : tensor.name();
  result = graph.addNode("ReduceSum", {result, graph.addIntegers({int64_t(reduction->axes.size())}, reduction->axes)});
  graph.setAttribute("keepdims", 1);
  if (reduction->isMean)
    result = graph.addNode("Mul", {result, graph.addNumber(float(size) / float(parameter.size()))});
  if (reduction->isRoot)
    result = graph.addNode("Sqrt", {result});
  if (reduction->isQuotient)
    result = graph.addNode("Div", {tensor.name(), result});
  const bool isRepeated = inner.size() != shape.size();
  result = graph.addNode("Reshape", {result, graph.addIntegers({int64_t(inner.size())}, inner)},
                         isRepeated ? StringRef() : StringRef(evaluated.tensor->name()));
  if (isRepeated)
    graph.addNode("Expand", {result, graph.addIntegers({int64_t(shape.size())}, shape)}, evaluated.tensor->name());
  graph.remove(*evaluated.tensor);
  return true;
}

/// Lets nodes compute `value`, of the dimensions of `image`, from `parameter` by `functions`, each with its number.
static void compute(UnfoldingGraph &graph, const TensorProto &image, StringRef value, const std::string &parameter,
                    ArrayRef<std::pair<const ElementFunction *, double>> functions) {
  graph.setModule(moduleOf(parameter));
  std::string result = parameter;
  for (auto [function, number] : functions)
    result = addFunction(graph, *function, number, result);
  SmallVector<int64_t> dims(image.dims().begin(), image.dims().end());
  graph.addNode("Reshape", {result, graph.addIntegers({int64_t(dims.size())}, dims)}, value);
}

/// Factors that programs write: 2, 1/8, 0.1, 1/√d.
static bool isWritten(double factor) {
  for (double number : {factor, factor * factor, 1 / factor, 1 / (factor * factor)})
    if (std::abs(number) >= 0.5 && std::abs(number) < 4096 &&
        std::abs(number * 10 - std::round(number * 10)) < 1e-5 * std::abs(number))
      return true;
  return false;
}

/// The second function of the first, which has no number: the tensor is named after the one that came last. `1 / p` is
/// a reciprocal, and one times it.
static bool unfoldChain(UnfoldingGraph &graph, const Evaluated &evaluated, const TensorProto &tensor,
                        ArrayRef<StringRef> operations) {
  std::vector<float> values = valuesOf(graph, *evaluated.tensor), between = valuesOf(graph, tensor);
  const ElementFunction *first = findElementFunction(operations[0]);
  if (!first || values.empty() || between.size() != values.size() ||
      operationName(evaluated.tensor->name()) != operations[1] || first->other == ElementFunction::Sum)
    return false;
  for (float &x : between)
    x = float(first->evaluate(x, 0));
  for (const ElementFunction &second : elementFunctions()) {
    if (operations[1] != second.operation || second.other == ElementFunction::Sum)
      continue;
    std::optional<double> number = matchFunction(second, between, values);
    if (!number || (second.takesNumber() && !isWritten(*number)))
      continue;
    compute(graph, *evaluated.tensor, evaluated.tensor->name(), tensor.name(), {{first, 0}, {&second, *number}});
    graph.remove(*evaluated.tensor);
    return true;
  }
  return false;
}

/// A layer that read zeros, as a recurrence does in its first step: each row is its bias, zeros where it has none, and
/// what is multiplied with zeros has no gradient there.
static bool unfoldLayerOfZeros(UnfoldingGraph &graph, const Evaluated &evaluated, ArrayRef<StringRef> operations,
                               ArrayRef<const Evaluated *> moved) {
  const TensorProto &tensor = *evaluated.tensor;
  const std::string rows = graph.read(tensor).value_or("");
  const bool isZero = all_of(rows, [](char byte) { return byte == 0; });
  const bool readsZeros = any_of(evaluated.foldedFrom, [](const std::string &name) {
    return is_contained({"zeros", "new_zeros", "zeros_like", "full", "new_full"}, operationName(name));
  });
  if (rows.empty() || tensor.dims_size() == 0 || !readsZeros || none_of(operations, [](StringRef operation) {
        return is_contained({"linear", "addmm", "matmul", "mm"}, operation);
      }))
    return false;
  const int64_t channels = tensor.dims(tensor.dims_size() - 1);
  const TensorProto *bias = nullptr;
  for (const SignatureEntry *entry : evaluated.parameters) {
    const TensorProto *found = findElements(graph, *entry, moved);
    const std::vector<float> values = found ? valuesOf(graph, *found) : std::vector<float>();
    const bool isBias = found && found->dims_size() == 1 && found->dims(0) == channels;
    if (isBias && !bias)
      bias = found;
    else if (isBias || all_of(values, [](float x) { return x == 0; }))
      // Which of two it is, or whether its product is zero for its own sake, the values do not tell. A bias that is
      // gone was zero, and other steps lack it, too.
      return false;
  }
  const std::string row = bias ? graph.read(*bias).value_or("") : rows.substr(0, rows.size() * size_t(isZero));
  if (row.empty() || rows.size() % row.size() || (bias && bias->data_type() != tensor.data_type()))
    return false;
  for (size_t at = 0; at != rows.size(); at += row.size())
    if (StringRef(rows).substr(at, row.size()) != row)
      return false;
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  graph.setModule(moduleOf(evaluated.parameters.front()->target));
  graph.addNode("Expand", {bias ? bias->name() : graph.addNumber(0), graph.addIntegers({int64_t(dims.size())}, dims)},
                tensor.name());
  graph.remove(tensor);
  return true;
}

bool lowtide::recoverFunctions(UnfoldingGraph &graph, const Evaluated &evaluated, ArrayRef<const Evaluated *> moved) {
  SmallVector<StringRef> operations = findOperations(evaluated);
  if (unfoldPenalty(graph, evaluated, operations, moved) || unfoldLayerOfZeros(graph, evaluated, operations, moved))
    return true;
  const TensorProto *tensor =
      evaluated.parameters.size() == 1 ? findElements(graph, *evaluated.parameters.front(), moved) : nullptr;
  if (!tensor)
    return false;
  if (unfoldReduction(graph, evaluated, *tensor, operations) ||
      unfoldProducts(graph, *evaluated.tensor, *tensor, operations))
    return true;
  // Its steps and operands may have names, too.
  llvm::erase(operations, StringRef("val"));
  StringRef last = operationName(evaluated.tensor->name());
  bool gathers = any_of(evaluated.foldedFrom, [](const std::string &name) { return isGather(name); });
  if (!gathers && operations.size() == 2 && unfoldChain(graph, evaluated, *tensor, operations))
    return true;
  std::vector<float> parameter = valuesOf(graph, *tensor), values = valuesOf(graph, *evaluated.tensor);
  if (values.empty() || parameter.size() != values.size())
    return false;
  // The only operation, or the last, where the others are steps that the exporter takes for it.
  auto isNamed = [&](const ElementFunction &function) {
    return !gathers &&
           (operations.size() == 1
                ? operations.front() == function.operation
                : last == function.operation && !function.takesNumber() &&
                      none_of(operations, [&](StringRef name) { return name != last && isElementOperation(name); }));
  };
  for (const ElementFunction &function : elementFunctions()) {
    std::optional<double> number = matchFunction(function, parameter, values);
    if (!number)
      continue;
    // A function that the notes do not name is known by values alone.
    bool isPlain = !function.takesNumber() || (StringRef(function.ops[0]) == "Mul" && isWritten(*number));
    if (!isNamed(function) && !(isPlain && isTelling(function, parameter, values)))
      continue;
    compute(graph, *evaluated.tensor, evaluated.tensor->name(), tensor->name(), {{&function, *number}});
    graph.remove(*evaluated.tensor);
    return true;
  }
  return false;
}
