//===- ElementFunctions.cpp - what exporters evaluate of a parameter -------------===//

#include "ElementFunctions.h"

#include "TableValues.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// Exponents and bases that programs write: halves and whole numbers, of which what is solved for is near.
static double nearHalf(double x) {
  const double half = std::round(2 * x) / 2;
  return std::abs(x - half) <= 1e-4 * std::max(1.0, std::abs(x)) ? half : x;
}

static const ElementFunction functions[] = {
    {"sub",
     {"Sub"},
     ElementFunction::NumberFirst,
     [](double x, double c) { return c - x; },
     [](double x, double y) { return y + x; },
     nullptr},
    {"rsub",
     {"Sub"},
     ElementFunction::NumberFirst,
     [](double x, double c) { return c - x; },
     [](double x, double y) { return y + x; },
     nullptr},
    {"sub",
     {"Sub"},
     ElementFunction::NumberLast,
     [](double x, double c) { return x - c; },
     [](double x, double y) { return x - y; },
     nullptr},
    {"add",
     {"Add"},
     ElementFunction::NumberLast,
     [](double x, double c) { return x + c; },
     [](double x, double y) { return y - x; },
     nullptr},
    {"mul",
     {"Mul"},
     ElementFunction::NumberLast,
     [](double x, double c) { return x * c; },
     [](double x, double y) { return y / x; },
     nullptr},
    {"div",
     {"Div"},
     ElementFunction::NumberLast,
     [](double x, double c) { return x / c; },
     [](double x, double y) { return x / y; },
     nullptr},
    {"div",
     {"Div"},
     ElementFunction::NumberFirst,
     [](double x, double c) { return c / x; },
     [](double x, double y) { return x * y; },
     nullptr},
    {"neg",
     {"Neg"},
     ElementFunction::Nothing,
     [](double x, double) { return -x; },
     nullptr,
     [](double y) { return -y; }},
    {"sqrt",
     {"Sqrt"},
     ElementFunction::Nothing,
     [](double x, double) { return std::sqrt(x); },
     nullptr,
     [](double y) { return y * y; }},
    {"reciprocal",
     {"Reciprocal"},
     ElementFunction::Nothing,
     [](double x, double) { return 1 / x; },
     nullptr,
     [](double y) { return 1 / y; }},
    {"rsqrt",
     {"Sqrt", "Reciprocal"},
     ElementFunction::Nothing,
     [](double x, double) { return 1 / std::sqrt(x); },
     nullptr,
     [](double y) { return 1 / (y * y); }},
    {"log",
     {"Log"},
     ElementFunction::Nothing,
     [](double x, double) { return std::log(x); },
     nullptr,
     [](double y) { return std::exp(y); }},
    {"exp",
     {"Exp"},
     ElementFunction::Nothing,
     [](double x, double) { return std::exp(x); },
     nullptr,
     [](double y) { return std::log(y); }},
    {"sigmoid",
     {"Sigmoid"},
     ElementFunction::Nothing,
     [](double x, double) { return 1 / (1 + std::exp(-x)); },
     nullptr,
     [](double y) { return std::log(y) - std::log1p(-y); }},
    {"tanh",
     {"Tanh"},
     ElementFunction::Nothing,
     [](double x, double) { return std::tanh(x); },
     nullptr,
     [](double y) { return std::atanh(y); }},
    {"softplus",
     {"Softplus"},
     ElementFunction::Nothing,
     [](double x, double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); },
     nullptr,
     [](double y) { return y > 20 ? y : std::log(std::expm1(y)); }},
    {"softmax",
     {"Softmax"},
     ElementFunction::Sum,
     [](double x, double c) { return std::exp(x) / c; },
     nullptr,
     nullptr},
    {"square", {"Mul"}, ElementFunction::Itself, [](double x, double) { return x * x; }, nullptr, nullptr},
    {"pow", {"Mul"}, ElementFunction::Itself, [](double x, double) { return x * x; }, nullptr, nullptr},
    {"pow",
     {"Pow"},
     ElementFunction::NumberLast,
     [](double x, double c) { return std::pow(x, c); },
     [](double x, double y) { return nearHalf(std::log(std::abs(y)) / std::log(std::abs(x))); },
     nullptr},
    {"pow",
     {"Pow"},
     ElementFunction::NumberFirst,
     [](double x, double c) { return std::pow(c, x); },
     [](double x, double y) { return nearHalf(std::pow(y, 1 / x)); },
     nullptr},
    {"abs", {"Abs"}, ElementFunction::Nothing, [](double x, double) { return std::abs(x); }, nullptr, nullptr},
    {"relu", {"Relu"}, ElementFunction::Nothing, [](double x, double) { return std::max(x, 0.0); }, nullptr, nullptr},
    {"sin", {"Sin"}, ElementFunction::Nothing, [](double x, double) { return std::sin(x); }, nullptr, nullptr},
    {"cos", {"Cos"}, ElementFunction::Nothing, [](double x, double) { return std::cos(x); }, nullptr, nullptr},
};

SmallVector<StringRef> ElementFunction::operators() const {
  SmallVector<StringRef> names{ops[0]};
  if (ops[1])
    names.push_back(ops[1]);
  return names;
}

ArrayRef<ElementFunction> lowtide::elementFunctions() { return functions; }

const ElementFunction *lowtide::findElementFunction(StringRef operation) {
  const auto *found =
      find_if(functions, [&](const ElementFunction &f) { return operation == f.operation && !f.takesNumber(); });
  return found == std::end(functions) ? nullptr : found;
}

bool lowtide::isElementOperation(StringRef operation) {
  return any_of(functions, [&](const ElementFunction &f) { return operation == f.operation; });
}

std::vector<float> lowtide::valuesOf(const UnfoldingGraph &graph, const TensorProto &tensor) {
  std::string bytes = tensor.data_type() == TensorProto::FLOAT ? graph.read(tensor).value_or("") : "";
  std::vector<float> values = asFloats(bytes);
  return values;
}

std::pair<double, int> lowtide::asWritten(double number) {
  for (int digits = 1; digits <= 3; ++digits) {
    double unit = std::pow(10.0, std::floor(std::log10(std::abs(number))) + 1 - digits);
    double rounded = std::round(number / unit) * unit;
    if (std::abs(rounded - number) <= 2e-5 * std::abs(number))
      return {rounded, digits};
  }
  return {NAN, 4};
}

/// A few units in the last place: exporters evaluate by polynomials, and a difference keeps the error of what was
/// subtracted.
static constexpr double tolerance = 2e-6;

bool lowtide::isEvaluated(double expected, double value, double scale) {
  // Next to an infinity everything is near.
  return std::isfinite(expected) && std::isfinite(scale) &&
         std::abs(expected - value) <= tolerance * std::max({std::abs(expected), std::abs(value), scale}) + 1e-37;
}

std::optional<double> lowtide::matchFunction(const ElementFunction &function, ArrayRef<float> parameter,
                                             ArrayRef<float> values) {
  double number = function.takesNumber() ? NAN : 0;
  if (function.other == ElementFunction::Sum) {
    double total = 0;
    for (double y : values)
      total += y;
    if (!(std::abs(total - 1) < 1e-3))
      return std::nullopt;
    for (double x : parameter)
      number += std::exp(x);
  }
  bool isSum = StringRef(function.ops[0]) == "Add" || StringRef(function.ops[0]) == "Sub";
  for (auto [x, y] : zip(parameter, values)) {
    // A zero times a number tells nothing of it.
    if (double found = function.takesNumber() && std::isnan(number) ? function.solve(x, y) : NAN; std::isfinite(found))
      number = double(float(found));
    double scale = isSum ? std::max(std::abs(double(x)), std::abs(number)) : 0;
    if (!isEvaluated(function.evaluate(x, number), y, scale))
      return std::nullopt;
  }
  return number;
}

/// How far apart the values are.
static double spread(ArrayRef<float> values) {
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  return double(*most) - double(*least);
}

bool lowtide::isTelling(const ElementFunction &function, ArrayRef<float> parameter, ArrayRef<float> values) {
  auto magnitude = [](ArrayRef<float> all) {
    return std::max(std::abs(*min_element(all)), std::abs(*max_element(all)));
  };
  double least = 1e-3 * std::max(magnitude(parameter), magnitude(values));
  bool isSum = StringRef(function.ops[0]) == "Add" || StringRef(function.ops[0]) == "Sub";
  return values.size() >= 4 && parameter != values && spread(parameter) > 1e-3 * magnitude(parameter) &&
         spread(values) > 1e-3 * magnitude(values) && (!isSum || spread(parameter) > least);
}

std::string lowtide::addFunction(UnfoldingGraph &graph, const ElementFunction &function, double number,
                                 std::string value) {
  if (function.other == ElementFunction::Sum) { // over all elements
    value = graph.addNode("Reshape", {value, graph.addIntegers({1}, {-1})});
    value = graph.addNode(function.ops[0], {value});
    graph.setAttribute("axis", 0);
    return value;
  }
  SmallVector<std::string> operands{value};
  if (function.takesNumber())
    operands.insert(function.other == ElementFunction::NumberFirst ? operands.begin() : operands.end(),
                    graph.addNumber(float(number)));
  else if (function.other == ElementFunction::Itself)
    operands.push_back(value);
  value = graph.addNode(function.ops[0], operands);
  return function.ops[1] ? graph.addNode(function.ops[1], {value}) : value;
}
