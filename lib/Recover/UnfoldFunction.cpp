//===- UnfoldFunction.cpp - functions of a parameter, inverted -------------------===//
//
// A temperature kept as its logarithm, a gate kept before its sigmoid: the exporter evaluates the function. Where it
// can be inverted, the parameter is computed back, in f64.
//
//===----------------------------------------------------------------------===//

#include "Classifier.h"
#include "ElementFunctions.h"
#include "TableValues.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// The function that can be inverted and that the exported program calls so; null: there is none.
static const ElementFunction *findFunction(StringRef name) {
  const ElementFunction *function = findElementFunction(operationName(name));
  return function && function->inverse ? function : nullptr;
}

/// Bounds leave what lies between them as it is. Where they lie, the file does not tell.
static bool isBounding(StringRef name) {
  StringRef operation = operationName(name);
  return operation == "clamp" || operation == "clamp_min" || operation == "clamp_max" || operation == "clip";
}

bool lowtide::isStepOfSoftplus(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '_');
  StringRef first = parts.front();
  return name.starts_with("self_scaled") ||
         ((first == "beta" || first == "threshold" || first == "tmp") && all_of(drop_begin(parts), [](StringRef part) {
            return part == "cast" || (!part.empty() && all_of(part, isDigit));
          }));
}

namespace {
struct Chain {
  SmallVector<const ElementFunction *> functions;
  bool knowsLast = false;
  bool isBounded = false;
  /// A number that changes the function was left out: the one that programs leave out is taken.
  bool hasNumbers = false;
  bool isQuotient = false;
};
} // namespace

/// More orders than of three functions are not tried.
static constexpr size_t mostFunctions = 3;

/// The functions that the notes name: in the alphabet's order, except that `Chain::last` came last.
static std::optional<Chain> findChain(const Evaluated &evaluated) {
  Chain chain;
  StringRef lastName = evaluated.tensor->name();
  const ElementFunction *last = findFunction(lastName);
  // `1 / x` is a reciprocal, and one times it; the number is lost.
  const bool isQuotient = operationName(lastName) == "mul" && any_of(evaluated.foldedFrom, [](StringRef name) {
                            return operationName(name) == "reciprocal";
                          });
  chain.isBounded = isBounding(lastName) || any_of(evaluated.foldedFrom, isBounding);
  if ((!last && !movesElements(lastName) && !isBounding(lastName) && !isQuotient) || isGather(lastName))
    return std::nullopt;
  // Numbered values are operands of an operation, such as axes and bounds, or steps within it.
  unsigned numbered = 0, explained = movesElements(lastName) || isQuotient;
  // Each softplus in steps names its quotient, too: not another softplus.
  unsigned quotients = count_if(evaluated.foldedFrom, [](StringRef name) { return name.starts_with("self_scaled"); });
  chain.hasNumbers = quotients != 0;
  chain.isQuotient = isQuotient;
  for (const std::string &name : evaluated.foldedFrom) {
    if (name == evaluated.parameters.front()->target || (chain.hasNumbers && isStepOfSoftplus(name)))
      continue;
    if (quotients && operationName(name) == "softplus") {
      --quotients;
      continue;
    }
    // What is computed from positions is not told from what is computed from rows.
    if (isGather(name))
      return std::nullopt;
    if (const ElementFunction *function = findFunction(name))
      chain.functions.push_back(function);
    else if (operationName(name) == "val")
      ++numbered;
    else if (movesElements(name))
      ++explained;
    else if (!isBounding(name) && !(chain.isBounded && operationName(name) == "scalar_tensor_default")) // a bound
      return std::nullopt;
  }
  if (numbered > explained && !chain.isBounded)
    return std::nullopt;
  chain.knowsLast = last;
  if (last)
    chain.functions.push_back(last);
  // A function is of one of the values that are joined, not of them all.
  if (!chain.functions.empty() && (isJoin(lastName) || any_of(evaluated.foldedFrom, isJoin)))
    return std::nullopt;
  if (chain.functions.size() > mostFunctions)
    return std::nullopt;
  return chain;
}

/// What `functions` make `value` of; not finite: of nothing, or of many numbers.
static double invert(ArrayRef<const ElementFunction *> functions, double value) {
  double inverse = value, again;
  for (const ElementFunction *function : reverse(functions))
    inverse = function->inverse(inverse);
  again = inverse;
  for (const ElementFunction *function : functions)
    again = function->evaluate(again, 0);
  return std::abs(again - value) <= 1e-6 * std::abs(value) ? inverse : std::nan("");
}

/// Puts the functions into the only order that gives all of `values`; false: there is none, or more than one.
static bool findOrder(Chain &chain, ArrayRef<float> values) {
  auto fits = [&](ArrayRef<const ElementFunction *> functions) {
    return all_of(values, [&](float value) { return std::isfinite(float(invert(functions, value))); });
  };
  if (chain.functions.size() == 1)
    return fits(chain.functions);
  SmallVector<const ElementFunction *> order = chain.functions, found;
  auto end = order.end() - (chain.knowsLast ? 1 : 0);
  sort(order.begin(), end);
  do {
    if (!fits(order))
      continue;
    // Where the order makes no difference, any will do.
    if (!found.empty() && any_of(values, [&](float value) { return invert(found, value) != invert(order, value); }))
      return false;
    found = order;
  } while (std::next_permutation(order.begin(), end));
  chain.functions = found;
  return !found.empty();
}

/// Whether several but not all elements are the largest or the smallest: perhaps a bound, and what was beyond it is
/// lost.
static bool mayHaveMetBound(ArrayRef<float> values) {
  if (values.empty())
    return false;
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least != *most && (count(values, *least) > 1 || count(values, *most) > 1);
}

/// The matrix with rows and columns exchanged.
static std::vector<float> transpose(ArrayRef<float> values, int64_t rows, int64_t columns) {
  std::vector<float> turned;
  turned.reserve(values.size());
  for (int64_t column = 0; column != columns; ++column)
    for (int64_t row = 0; row != rows; ++row)
      turned.push_back(values[size_t(row * columns + column)]);
  return turned;
}

/// Makes `tensor` of parameter `name` by the functions in `chain`; `isTurned`: and exchanges rows and columns.
static bool invert(UnfoldingGraph &graph, const TensorProto &tensor, const std::string &name, Chain chain,
                   bool isAssumed, bool isTurned = false) {
  std::optional<std::string> bytes = graph.read(tensor);
  if (!bytes)
    return false;
  std::vector<float> values = asFloats(*bytes);
  // Saturated, many parameters have this image.
  if ((chain.isBounded && mayHaveMetBound(values)) || (!chain.functions.empty() && !findOrder(chain, values)))
    return false;
  std::string names;
  for (const ElementFunction *function : chain.functions)
    names += (names.empty() ? "" : ", ") + std::string(function->operation);
  if (chain.isBounded)
    names = names.empty() ? "clamp" : names + " and clamp";
  for (float &value : values)
    value = float(invert(chain.functions, value));
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  if (isTurned) {
    values = transpose(values, dims[0], dims[1]);
    std::swap(dims[0], dims[1]);
  }
  std::memcpy(bytes->data(), values.data(), bytes->size());
  graph.setModule(moduleOf(name));
  std::string how = "the exporter evaluated " + names + " of it as " + tensor.name();
  if (chain.isBounded)
    how += "; the bounds are not in the file, and are left out";
  if (chain.hasNumbers)
    how += ", with beta = 1, for the file does not tell it";
  if (chain.isQuotient)
    how += ", as one divided by it, for the file does not tell the number";
  UnfoldedSource source{tensor.name(), std::move(how),
                        isAssumed || chain.isBounded || chain.hasNumbers || chain.isQuotient};
  SmallVector<StringRef> ops;
  for (const ElementFunction *function : chain.functions)
    ops.append(function->operators());
  if (isTurned) // without a permutation it turns dimensions around
    ops.push_back("Transpose");
  if (ops.empty())
    ops.push_back("Identity");
  graph.addInitializer(name, dims, tensor.data_type(), std::move(*bytes), std::move(source));
  std::string value = name;
  for (StringRef op : ArrayRef(ops).drop_back())
    value = graph.addNode(op, {value});
  graph.addNode(ops.back(), {value}, tensor.name());
  graph.remove(tensor);
  return true;
}

bool lowtide::unfoldFunction(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  if (evaluated.parameters.size() != 1 || tensor.data_type() != TensorProto::FLOAT)
    return false;
  auto chain = findChain(evaluated);
  const std::string &name = evaluated.parameters.front()->target;
  SmallVector<StringRef> moves(evaluated.foldedFrom.begin(), evaluated.foldedFrom.end());
  moves.push_back(tensor.name());
  erase(moves, name);
  const bool isTurned = tensor.dims_size() == 2 && count_if(moves, turnsDimensions) == 1 && none_of(moves, isView);
  if (!chain || (chain->functions.empty() && !chain->isBounded) ||
      !invert(graph, tensor, name, *chain, false, isTurned))
    return false;
  // The parameter's own shape is not in the file.
  if (any_of(moves, takesPart))
    graph.addDoubt({FindingKind::ParametersIndexed, name, {name}});
  else if (tensor.dims_size() > 1 && !isTurned && (any_of(moves, turnsDimensions) || any_of(moves, isView)))
    graph.addDoubt({FindingKind::ParametersViewed, name, {name}});
  return true;
}

bool lowtide::unfoldFunction(UnfoldingGraph &graph, const TensorProto &tensor) {
  StringRef op = findEvaluatedOperator(tensor.name());
  // Programs compute roots and reciprocals of numbers that they know, too.
  if (tensor.data_type() != TensorProto::FLOAT ||
      (op != "Exp" && op != "Sigmoid" && op != "Tanh" && op != "Softplus") ||
      any_of(tensor.dims(), [](int64_t dim) { return dim != 1; }))
    return false;
  std::string module = graph.getPaths().findOfValue(tensor.name()).value_or("");
  std::string name = (module.empty() ? "" : module + ".") + op.lower() + "_operand";
  for (unsigned i = 2; graph.find(name); ++i)
    name = (module.empty() ? "" : module + ".") + op.lower() + "_operand_" + std::to_string(i);
  return invert(graph, tensor, name, {{findFunction(op.lower())}, true}, true);
}
