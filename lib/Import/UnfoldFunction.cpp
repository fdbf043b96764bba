//===- UnfoldFunction.cpp - functions of a parameter, inverted -------------------===//
//
// A temperature kept as its logarithm, a gate kept before its sigmoid: the exporter evaluates the function. Where it
// can be inverted, the parameter is computed back, in f64.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "TensorData.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

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

/// The functions in the order in which they were applied, for a chain whose order the notes leave no doubt about: they
/// name operations, sorted by the alphabet, and the last one.
static std::optional<SmallVector<const ElementFunction *>> findChain(const Evaluated &evaluated) {
  SmallVector<const ElementFunction *> chain;
  const ElementFunction *last = findFunction(evaluated.tensor->name());
  if ((!last && !movesElements(evaluated.tensor->name())) || isGather(evaluated.tensor->name()))
    return std::nullopt;
  for (const std::string &name : evaluated.foldedFrom) {
    if (name == evaluated.parameters.front()->target)
      continue;
    // What is computed from positions is not told from what is computed from rows.
    if (isGather(name))
      return std::nullopt;
    // Numbered values are steps within an operation, or operands of it.
    if (const ElementFunction *function = findFunction(name))
      chain.push_back(function);
    else if (!movesElements(name) || operationName(name) == "val")
      return std::nullopt;
  }
  if (chain.size() > 1)
    return std::nullopt;
  if (last)
    chain.push_back(last);
  return chain;
}

/// Makes `tensor` of parameter `name` by the functions in `chain`.
static bool invert(UnfoldingGraph &graph, const TensorProto &tensor, const std::string &name,
                   ArrayRef<const ElementFunction *> chain, bool isAssumed) {
  std::optional<std::string> bytes = graph.read(tensor);
  if (!bytes)
    return false;
  std::string names;
  for (const ElementFunction *function : chain)
    names += (names.empty() ? "" : ", ") + std::string(function->operation);
  for (size_t at = 0; at != bytes->size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, &(*bytes)[at], sizeof(value));
    double inverse = value;
    for (const ElementFunction *function : reverse(chain))
      inverse = function->inverse(inverse);
    value = float(inverse);
    if (!std::isfinite(value))
      return false; // saturated: many parameters have this image
    std::memcpy(&(*bytes)[at], &value, sizeof(value));
  }
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  graph.setModule(moduleOf(name));
  SmallVector<StringRef> ops;
  UnfoldedSource source{
      tensor.name(), "the exporter evaluated " + names + " of it as " + tensor.name(), {}, {}, isAssumed};
  for (const ElementFunction *function : chain)
    ops.append(function->operators());
  for (StringRef op : ops)
    source.functions.push_back(op.lower());
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
  return chain && !chain->empty() && invert(graph, tensor, evaluated.parameters.front()->target, *chain, false);
}

bool lowtide::unfoldFunction(UnfoldingGraph &graph, const TensorProto &tensor) {
  StringRef op = findEvaluatedOperator(tensor.name());
  // Programs compute roots and reciprocals of numbers that they know, too.
  if (tensor.data_type() != TensorProto::FLOAT ||
      (op != "Exp" && op != "Sigmoid" && op != "Tanh" && op != "Softplus") ||
      any_of(tensor.dims(), [](int64_t dim) { return dim != 1; }))
    return false;
  std::string module = findModuleOfValue(tensor.name()).value_or("");
  std::string name = (module.empty() ? "" : module + ".") + op.lower() + "_operand";
  for (unsigned i = 2; graph.find(name); ++i)
    name = (module.empty() ? "" : module + ".") + op.lower() + "_operand_" + std::to_string(i);
  return invert(graph, tensor, name, {findFunction(op.lower())}, true);
}
