//===- Expressions.cpp - what an operation of a program makes of first values -----===//

#include "Expressions.h"

#include "ElementFunctions.h"
#include "TakenElements.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace lowtide;

static double largestOf(ArrayRef<double> values) {
  double largest = 0;
  for (double x : values)
    largest = std::max(largest, std::abs(x));
  return largest;
}

/// The dimensions of an operation on elements; nullopt: those of its operands do not fit.
static std::optional<SmallVector<int64_t>> broadcast(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  SmallVector<int64_t> dims(std::max(a.size(), b.size()), 1);
  for (ArrayRef<int64_t> of : {a, b})
    for (size_t i = 0; i != of.size(); ++i) {
      int64_t &dim = dims[dims.size() - of.size() + i];
      if (of[i] != 1 && dim != 1 && dim != of[i])
        return std::nullopt;
      dim = std::max(dim, of[i]);
    }
  return dims;
}

/// The element of a tensor of `dims` that stands at element `at` of one of `whole`.
static int64_t placeOf(int64_t at, ArrayRef<int64_t> whole, ArrayRef<int64_t> dims) {
  int64_t place = 0, stride = 1;
  for (size_t axis = whole.size(); axis-- > 0; at /= whole[axis]) {
    if (whole.size() - axis > dims.size())
      continue;
    const int64_t dim = dims[axis + dims.size() - whole.size()];
    place += dim == 1 ? 0 : at % whole[axis] * stride;
    stride *= dim;
  }
  return place;
}

static double pairOf(StringRef op, double x, double y) {
  return StringSwitch<double>(op)
      .Case("Add", x + y)
      .Case("Sub", x - y)
      .Case("Mul", x * y)
      .Case("Div", x / y)
      .Case("Max", std::max(x, y))
      .Case("Min", std::min(x, y))
      .Default(NAN);
}

static std::optional<Numbers> evaluatePairs(const Step &step, const Numbers &a, const Numbers &b) {
  std::optional<SmallVector<int64_t>> dims = broadcast(a.dims, b.dims);
  if (!dims)
    return std::nullopt;
  Numbers result{std::vector<double>(size_t(sizeOf(*dims))), *dims};
  for (auto [at, value] : enumerate(result.values))
    value = pairOf(step.op, a.values[size_t(placeOf(int64_t(at), *dims, a.dims))],
                   b.values[size_t(placeOf(int64_t(at), *dims, b.dims))]);
  const bool isSum = StringRef(step.op) == "Add" || StringRef(step.op) == "Sub";
  result.scale = isSum ? std::max(a.scale, b.scale) : largestOf(result.values);
  if (StringRef(step.op) == "Mul")
    result.scale = std::max(result.scale, a.scale * b.scale);
  return result;
}

/// Where each element goes when `axes` are taken together, and the dimensions that are left, as ones.
static std::pair<std::vector<int64_t>, SmallVector<int64_t>> groupBy(ArrayRef<int64_t> dims, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> kept(dims);
  for (int64_t axis : axes)
    kept[size_t(axis)] = 1;
  std::vector<int64_t> places(size_t(sizeOf(dims)));
  for (auto [at, place] : enumerate(places))
    place = placeOf(int64_t(at), dims, kept);
  return {std::move(places), std::move(kept)};
}

static Numbers evaluateReduce(const Step &step, const Numbers &of) {
  auto [places, kept] = groupBy(of.dims, step.axes);
  const StringRef op = step.op;
  Numbers result{std::vector<double>(size_t(sizeOf(kept)), 0), kept};
  std::vector<double> largest(result.values.size(), -INFINITY);
  for (auto [value, place] : zip(of.values, places))
    largest[size_t(place)] = std::max(largest[size_t(place)], value);
  double scale = 0;
  for (auto [value, place] : zip(of.values, places)) {
    double &sum = result.values[size_t(place)];
    if (op == "ReduceLogSumExp")
      sum += std::exp(value - largest[size_t(place)]);
    else
      sum += op == "ReduceL2" ? value * value : value;
    scale = std::max(scale, std::abs(value));
  }
  const double count = double(of.values.size()) / double(result.values.size());
  for (auto [value, top] : zip(result.values, largest))
    value = op == "ReduceLogSumExp" ? std::log(value) + top
            : op == "ReduceL2"      ? std::sqrt(value)
            : op == "ReduceMean"    ? value / count
                                    : value;
  result.scale = std::max(largestOf(result.values), std::max(scale, of.scale));
  if (!step.keepsDims) {
    result.dims.clear();
    for (size_t axis = 0; axis != of.dims.size(); ++axis)
      if (!is_contained(step.axes, int64_t(axis)))
        result.dims.push_back(of.dims[axis]);
  }
  return result;
}

static Numbers evaluateNormalize(const Step &step, const Numbers &of) {
  auto [places, kept] = groupBy(of.dims, step.axes);
  std::vector<double> largest(size_t(sizeOf(kept)), -INFINITY), sums(largest.size(), 0);
  for (auto [value, place] : zip(of.values, places))
    largest[size_t(place)] = std::max(largest[size_t(place)], value);
  for (auto [value, place] : zip(of.values, places))
    sums[size_t(place)] += std::exp(value - largest[size_t(place)]);
  Numbers result = of;
  for (auto [value, place] : zip(result.values, places)) {
    value -= largest[size_t(place)];
    value =
        StringRef(step.op) == "Softmax" ? std::exp(value) / sums[size_t(place)] : value - std::log(sums[size_t(place)]);
  }
  result.scale = std::max(largestOf(result.values), StringRef(step.op) == "Softmax" ? 0.0 : of.scale);
  return result;
}

namespace {
/// Sizes of a product of matrices, one for each of `batch`.
struct ProductShape {
  SmallVector<int64_t> batch;
  int64_t rows, inner, columns;
};
} // namespace

static std::optional<ProductShape> shapeOf(const Step &step, const Numbers &a, const Numbers &b) {
  if (a.dims.size() < 2 || b.dims.size() < 2)
    return std::nullopt;
  const ArrayRef<int64_t> left(a.dims), right(b.dims);
  const int64_t first = right[right.size() - 2], last = right.back();
  std::optional<SmallVector<int64_t>> batch = broadcast(left.drop_back(2), right.drop_back(2));
  if (!batch || left.back() != (step.turnsSecond ? last : first) || (step.turnsSecond && right.size() != 2))
    return std::nullopt;
  return ProductShape{*batch, left[left.size() - 2], left.back(), step.turnsSecond ? first : last};
}

/// Whether a row of the left operand is the one before it, as rows are that were repeated for each sample.
static bool repeatsRow(const double *left, int64_t row, int64_t inner) {
  return row != 0 && std::equal(left + row * inner, left + (row + 1) * inner, left + (row - 1) * inner);
}

static std::optional<Numbers> evaluateProduct(const Step &step, const Numbers &a, const Numbers &b) {
  std::optional<ProductShape> shape = shapeOf(step, a, b);
  if (!shape)
    return std::nullopt;
  Numbers result{{}, shape->batch};
  result.dims.append({shape->rows, shape->columns});
  result.values.resize(size_t(sizeOf(result.dims)));
  const auto [batch, rows, inner, columns] = *shape;
  for (int64_t at = 0, e = sizeOf(batch); at != e; ++at) {
    const double *left = &a.values[size_t(placeOf(at, batch, ArrayRef(a.dims).drop_back(2)) * rows * inner)];
    const double *right = &b.values[size_t(placeOf(at, batch, ArrayRef(b.dims).drop_back(2)) * inner * columns)];
    double *out = &result.values[size_t(at * rows * columns)];
    for (int64_t i = 0; i != rows; ++i) {
      if (repeatsRow(left, i, inner)) {
        std::copy_n(out + (i - 1) * columns, columns, out + i * columns);
        continue;
      }
      for (int64_t k = 0; k != inner; ++k)
        for (int64_t j = 0; j != columns; ++j)
          out[i * columns + j] +=
              left[i * inner + k] * (step.turnsSecond ? right[j * inner + k] : right[k * columns + j]);
    }
  }
  result.scale = std::max(largestOf(result.values), largestOf(a.values) * largestOf(b.values));
  return result;
}

static Numbers evaluateTurn(const Step &step, const Numbers &of) {
  Numbers result = of;
  SmallVector<int64_t> strides(of.dims.size(), 1);
  for (size_t axis = of.dims.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * of.dims[axis];
  for (auto [dim, axis] : zip(result.dims, step.axes))
    dim = of.dims[size_t(axis)];
  for (auto [at, value] : enumerate(result.values)) {
    int64_t from = 0, left = int64_t(at);
    for (size_t axis = result.dims.size(); axis-- > 0; left /= result.dims[axis])
      from += left % result.dims[axis] * strides[size_t(step.axes[axis])];
    value = of.values[size_t(from)];
  }
  return result;
}

std::optional<Numbers> lowtide::evaluate(const Step &step, ArrayRef<Numbers> values) {
  const Numbers &of = values[step.operands[0]];
  switch (step.kind) {
  case Step::Function: {
    Numbers result = of;
    const ElementFunction *function = findElementFunction(step.op);
    for (double &value : result.values)
      value = function->evaluate(value, 0);
    result.scale = std::max(largestOf(result.values), of.scale);
    return result;
  }
  case Step::Pairs: {
    const Numbers number{{step.number.value_or(0)}, {}, std::abs(step.number.value_or(0))};
    const Numbers &other = step.number ? number : values[step.operands[1]];
    return step.numberFirst ? evaluatePairs(step, other, of) : evaluatePairs(step, of, other);
  }
  case Step::Reduce:
    return evaluateReduce(step, of);
  case Step::Normalize:
    return evaluateNormalize(step, of);
  case Step::Product:
    return evaluateProduct(step, of, values[step.operands[1]]);
  case Step::Turn:
    return step.axes.size() == of.dims.size() ? std::optional(evaluateTurn(step, of)) : std::nullopt;
  case Step::View: {
    Numbers result = of;
    result.dims = step.dims;
    return sizeOf(step.dims) == sizeOf(of.dims) ? std::optional(result) : std::nullopt;
  }
  case Step::Repeat: {
    if (broadcast(of.dims, step.dims) != SmallVector<int64_t>(step.dims))
      return std::nullopt;
    Numbers result{std::vector<double>(size_t(sizeOf(step.dims))), step.dims, of.scale};
    for (auto [at, value] : enumerate(result.values))
      value = of.values[size_t(placeOf(int64_t(at), step.dims, of.dims))];
    return result;
  }
  case Step::Take: {
    Numbers result{{}, step.dims, of.scale};
    for (int64_t from : step.axes)
      result.values.push_back(from < 0 ? 0 : of.values[size_t(from)]);
    return result;
  }
  }
  llvm_unreachable("no such step");
}

int64_t lowtide::costOf(const Step &step, ArrayRef<Numbers> values) {
  if (step.kind == Step::Repeat || step.kind == Step::View || step.kind == Step::Take)
    return sizeOf(step.dims);
  int64_t cost = int64_t(values[step.operands[0]].values.size());
  if (step.kind == Step::Product) {
    const Numbers &left = values[step.operands[0]];
    std::optional<ProductShape> shape = shapeOf(step, left, values[step.operands[1]]);
    if (!shape)
      return 1;
    const int64_t rows = std::max<int64_t>(int64_t(left.values.size()) / std::max<int64_t>(shape->inner, 1), 1);
    const int64_t distinct = count_if(seq<int64_t>(0, rows),
                                      [&](int64_t row) { return !repeatsRow(left.values.data(), row, shape->inner); });
    return sizeOf(shape->batch) * shape->rows * shape->columns * shape->inner / rows * distinct;
  }
  if (step.kind == Step::Pairs && step.operands.size() == 2)
    if (auto dims = broadcast(values[step.operands[0]].dims, values[step.operands[1]].dims))
      cost = sizeOf(*dims);
  return cost;
}

namespace {
/// What the program calls an operation, and what it is here.
struct Operation {
  const char *name;
  Step::Kind kind;
  const char *op;
  unsigned fewest, most; ///< operands
};
} // namespace

static const Operation operations[] = {
    {"add", Step::Pairs, "Add", 1, 2},
    {"sub", Step::Pairs, "Sub", 1, 2},
    {"rsub", Step::Pairs, "Sub", 1, 1},
    {"mul", Step::Pairs, "Mul", 1, 2},
    {"div", Step::Pairs, "Div", 1, 2},
    {"maximum", Step::Pairs, "Max", 2, 2},
    {"minimum", Step::Pairs, "Min", 2, 2},
    {"sum", Step::Reduce, "ReduceSum", 1, 1},
    {"mean", Step::Reduce, "ReduceMean", 1, 1},
    {"logsumexp", Step::Reduce, "ReduceLogSumExp", 1, 1},
    {"linalg_vector_norm", Step::Reduce, "ReduceL2", 1, 1},
    {"softmax", Step::Normalize, "Softmax", 1, 1},
    {"_softmax", Step::Normalize, "Softmax", 1, 1},
    {"log_softmax", Step::Normalize, "LogSoftmax", 1, 1},
    {"_log_softmax", Step::Normalize, "LogSoftmax", 1, 1},
    {"matmul", Step::Product, "MatMul", 2, 2},
    {"mm", Step::Product, "MatMul", 2, 2},
    {"bmm", Step::Product, "MatMul", 2, 2},
    {"linear", Step::Product, "Gemm", 2, 3},
    {"addmm", Step::Product, "MatMul", 3, 3},
    {"t", Step::Turn, "Transpose", 1, 1},
    {"transpose", Step::Turn, "Transpose", 1, 1},
    {"permute", Step::Turn, "Transpose", 1, 1},
    {"numpy_t", Step::Turn, "Transpose", 1, 1},
    {"view", Step::View, "Reshape", 1, 1},
    {"_unsafe_view", Step::View, "Reshape", 1, 1},
    {"reshape", Step::View, "Reshape", 1, 1},
    {"unsqueeze", Step::View, "Reshape", 1, 1},
    {"squeeze", Step::View, "Reshape", 1, 1},
    {"flatten", Step::View, "Reshape", 1, 1},
    {"roll", Step::Take, "roll", 1, 1},
    {"flip", Step::Take, "flip", 1, 1},
    {"select", Step::Take, "select", 1, 1},
    {"embedding", Step::Take, "embedding", 1, 1},
    {"tril", Step::Take, "tril", 1, 1},
    {"triu", Step::Take, "triu", 1, 1},
    {"expand", Step::Repeat, "Expand", 1, 1},
    {"repeat", Step::Repeat, "Expand", 1, 1},
};

static const Operation *findOperation(StringRef name) {
  const auto *found = find_if(operations, [&](const Operation &each) { return name == each.name; });
  return found == std::end(operations) ? nullptr : found;
}

/// Functions of each element that have no number.
static const ElementFunction *findFunction(StringRef name) {
  const ElementFunction *function = findElementFunction(name == "pow" ? StringRef("square") : name);
  return function && function->other != ElementFunction::Sum ? function : nullptr;
}

std::pair<unsigned, unsigned> lowtide::countOperands(StringRef operation) {
  if (const Operation *found = findOperation(operation))
    return {found->fewest, found->most};
  return findFunction(operation) ? std::pair(1u, 1u) : std::pair(0u, 0u);
}

bool lowtide::isSymmetric(StringRef operation) { return is_contained({"add", "mul", "maximum", "minimum"}, operation); }

/// Numbers within expressions that programs write and that no note tells.
static constexpr double writtenNumbers[] = {1, 2, 0.5, -1};

static void addNumberForms(Forms &forms, const Operation &operation, unsigned operand) {
  const StringRef op = operation.op;
  Step step{Step::Pairs, operation.op, {operand}};
  const bool isFirst = StringRef(operation.name) == "rsub";
  if (op == "Add" || op == "Sub") {
    step.number = 1;
    step.numberFirst = isFirst;
    forms.push_back({step});
    if (op == "Add") { // what keeps a root from zero, and is not seen
      step.number = 1e-12;
      forms.push_back({step});
    }
    if (op == "Sub" && !isFirst) {
      step.numberFirst = true;
      forms.push_back({step});
    }
    return;
  }
  for (double number : writtenNumbers)
    if (number != 1) {
      step.number = number;
      forms.push_back({step});
    }
  if (op == "Div") {
    step.number = 1;
    step.numberFirst = true;
    forms.push_back({step});
  }
}

/// Into the goal, flat, or with a dimension of one more or less.
static void addViewForms(Forms &forms, unsigned operand, const Numbers &of, ArrayRef<int64_t> goal) {
  Step step{Step::View, "Reshape", {operand}};
  std::vector<SmallVector<int64_t>> shapes{SmallVector<int64_t>(goal), {sizeOf(of.dims)}};
  for (size_t axis = 0; axis <= of.dims.size(); ++axis) {
    SmallVector<int64_t> dims(of.dims);
    dims.insert(dims.begin() + axis, 1);
    shapes.push_back(dims);
    if (axis != of.dims.size() && of.dims[axis] == 1) {
      dims.assign(of.dims.begin(), of.dims.end());
      dims.erase(dims.begin() + axis);
      shapes.push_back(dims);
    }
  }
  for (auto [i, dims] : enumerate(shapes))
    if (sizeOf(dims) == sizeOf(of.dims) && !is_contained(ArrayRef(shapes).take_front(i), dims)) {
      step.dims = dims;
      forms.push_back({step});
    }
}

int64_t lowtide::countPlaces(StringRef name, const Numbers &of) {
  const Operation *operation = findOperation(name);
  return operation && operation->kind == Step::Take ? countTakenPlaces(name, of) : 0;
}

static void addAxisForms(Forms &forms, const Operation &operation, unsigned operand, ArrayRef<int64_t> dims) {
  Step step{operation.kind, operation.op, {operand}};
  const size_t rank = dims.size();
  for (unsigned set = 1; set < 1u << std::min<size_t>(rank, 4); ++set) {
    step.axes.clear();
    for (size_t axis = 0; axis != rank; ++axis)
      if (set >> axis & 1)
        step.axes.push_back(int64_t(axis));
    const bool isSingle = operation.kind == Step::Normalize || StringRef(operation.op) == "ReduceLogSumExp";
    if (step.axes.size() != 1 && (isSingle || step.axes.size() != rank))
      continue;
    int64_t count = 1;
    for (int64_t axis : step.axes)
      count *= dims[size_t(axis)];
    step.number = double(count);
    for (bool keeps : {false, true}) {
      step.keepsDims = keeps;
      if (operation.kind == Step::Reduce || !keeps)
        forms.push_back({step});
    }
  }
}

Forms lowtide::findForms(StringRef name, ArrayRef<unsigned> operands, ArrayRef<Numbers> values,
                         ArrayRef<int64_t> goal) {
  Forms forms;
  const Operation *operation = findOperation(name);
  const Numbers &of = values[operands[0]];
  if (!operation) {
    if (const ElementFunction *function = findFunction(name))
      forms.push_back({Step{Step::Function, function->operation, {operands[0]}}});
    return forms;
  }
  switch (operation->kind) {
  case Step::Pairs:
    if (operands.size() == 2)
      forms.push_back({Step{Step::Pairs, operation->op, {operands[0], operands[1]}}});
    else
      addNumberForms(forms, *operation, operands[0]);
    break;
  case Step::Reduce:
  case Step::Normalize:
    addAxisForms(forms, *operation, operands[0], of.dims);
    break;
  case Step::Product: {
    // `linear(x, w, b)` and `addmm(b, x, w)`; what the product gives is the last value but one.
    const bool addsFirst = name == "addmm";
    Step product{Step::Product, "MatMul", {operands[addsFirst], operands[1 + addsFirst]}};
    product.turnsSecond = name == "linear";
    forms.push_back({product});
    if (operands.size() == 3)
      forms.back().push_back(Step{Step::Pairs, "Add", {unsigned(values.size()), operands[addsFirst ? 0 : 2]}});
    break;
  }
  case Step::Turn:
    // Any two dimensions.
    for (size_t i = 0; i != of.dims.size(); ++i)
      for (size_t j = i + 1; j < of.dims.size(); ++j) {
        Step step{Step::Turn, "Transpose", {operands[0]}};
        step.axes = to_vector(seq<int64_t>(0, int64_t(of.dims.size())));
        std::swap(step.axes[i], step.axes[j]);
        forms.push_back({step});
      }
    break;
  case Step::View:
    addViewForms(forms, operands[0], of, goal);
    break;
  case Step::Repeat: {
    Step step{Step::Repeat, "Expand", {operands[0]}};
    step.dims.assign(goal.begin(), goal.end());
    forms.push_back({step});
    if (!goal.empty()) {
      step.dims.assign(of.dims.begin(), of.dims.end());
      (step.dims.empty() || step.dims.front() != 1 || step.dims.size() < 2)
          ? void(step.dims.insert(step.dims.begin(), goal.front()))
          : void(step.dims.front() = goal.front());
      forms.push_back({step});
    }
    break;
  }
  case Step::Take:
    addTakeForms(forms, name, operands[0], of, goal);
    break;
  case Step::Function:
    break;
  }
  return forms;
}

std::string lowtide::addStep(UnfoldingGraph &graph, const Step &step, ArrayRef<std::string> names) {
  const std::string &of = names[step.operands[0]];
  switch (step.kind) {
  case Step::Function:
    return addFunction(graph, *findElementFunction(step.op), 0, of);
  case Step::Pairs: {
    const std::string other = step.number ? graph.addNumber(float(*step.number)) : names[step.operands[1]];
    return step.numberFirst ? graph.addNode(step.op, {other, of}) : graph.addNode(step.op, {of, other});
  }
  case Step::Reduce: {
    // In sums, which all versions of the operators read alike. x − log softmax x is the logarithm of the sum of
    // exponentials, once for each element.
    const StringRef op = step.op;
    std::string value = of;
    if (op == "ReduceL2")
      value = graph.addNode("Mul", {of, of});
    if (op == "ReduceLogSumExp") {
      value = graph.addNode("LogSoftmax", {of});
      graph.setAttribute("axis", step.axes.front());
      value = graph.addNode("Sub", {of, value});
    }
    value = graph.addNode("ReduceSum", {value, graph.addIntegers({int64_t(step.axes.size())}, step.axes)});
    graph.setAttribute("keepdims", int64_t(step.keepsDims));
    if (op == "ReduceL2")
      return graph.addNode("Sqrt", {value});
    return op == "ReduceSum" ? value : graph.addNode("Mul", {value, graph.addNumber(float(1 / *step.number))});
  }
  case Step::Normalize: {
    std::string value = graph.addNode(step.op, {of});
    graph.setAttribute("axis", step.axes.front());
    return value;
  }
  case Step::Product: {
    std::string second = names[step.operands[1]];
    if (step.turnsSecond)
      second = graph.addNode("Transpose", {second});
    return graph.addNode("MatMul", {of, second});
  }
  case Step::Turn: {
    std::string value = graph.addNode("Transpose", {of});
    graph.setAttribute("perm", step.axes);
    return value;
  }
  case Step::View:
    return graph.addNode("Reshape", {of, graph.addIntegers({int64_t(step.dims.size())}, step.dims)});
  case Step::Repeat:
    return graph.addNode("Expand", {of, graph.addIntegers({int64_t(step.dims.size())}, step.dims)});
  case Step::Take: {
    std::string flat = graph.addNode("Reshape", {of, graph.addIntegers({1}, {-1})});
    if (is_contained(step.axes, -1)) { // a zero after the last element
      const std::string zero = graph.addNode("Reshape", {graph.addNumber(0), graph.addIntegers({1}, {1})});
      flat = graph.addNode("Concat", {flat, zero});
      graph.setAttribute("axis", int64_t(0));
    }
    SmallVector<int64_t> places(step.axes.begin(), step.axes.end());
    for (int64_t &place : places)
      place = place < 0 ? step.size : place;
    std::string value = graph.addNode("Gather", {flat, graph.addIntegers(step.dims, places)});
    graph.setAttribute("axis", int64_t(0));
    return value;
  }
  }
  llvm_unreachable("no such step");
}
