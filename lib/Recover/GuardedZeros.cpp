//===- GuardedZeros.cpp - functions that an exporter writes apart at zero ---------===//
//
// PyTorch's current exporter writes
//
//   sinc(x):     Where(x = 0, 1, sin(πx) / πx)
//   xlogy(x, y): Where(x = 0, x, Where(isnan(y), y, x · log(y)))
//
// whose values are right, and whose gradients at x = 0 are not: that of the quotient is 0 · ∞, and that of xlogy is one
// instead of log(y). PyTorch has 0, and log(y) where y is positive.
//
//===----------------------------------------------------------------------===//

#include "GuardedZeros.h"

#include "Makers.h"
#include "Unfold.h"

#include "lowtide/Recover/Evidence.h"
#include "lowtide/Recover/NodeNotes.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

namespace {
/// The choice of an exporter's value at zero, and what its rule has to change.
struct Guard {
  int choice;
  std::string isZero;    ///< where the operand is zero
  std::string one;       ///< of sinc: what is chosen there
  std::string divisor;   ///< of sinc: π · x
  std::string quotient;  ///< of sinc: sin(πx) / πx
  std::string logarithm; ///< of xlogy: log(y)
  std::string argument;  ///< of xlogy: y
};
} // namespace

/// What `choice` is made of, if it ends a function that is written as above.
static std::optional<Guard> matchGuard(const Makers &makers, const NodeProto &choice, int index) {
  if (choice.op_type() != "Where" || choice.input_size() != 3)
    return std::nullopt;
  const NodeProto *isZero = makers.find(choice.input(0), "Equal", 2);
  if (!isZero)
    return std::nullopt;
  const std::string function = findProgramOperator(choice);
  if (function == "aten.sinc.default") {
    const NodeProto *quotient = makers.find(choice.input(2), "Div", 2);
    const NodeProto *sine = quotient ? makers.find(quotient->input(0), "Sin", 1) : nullptr;
    if (!sine || sine->input(0) != quotient->input(1))
      return std::nullopt;
    return Guard{index, choice.input(0), choice.input(1), quotient->input(1), quotient->output(0), "", ""};
  }
  if (!StringRef(function).starts_with("aten.xlogy.") || isZero->input(0) != choice.input(1))
    return std::nullopt;
  const NodeProto *finite = makers.find(choice.input(2), "Where", 3);
  const NodeProto *product = finite ? makers.find(finite->input(2), "Mul", 2) : nullptr;
  const NodeProto *logarithm = product ? makers.find(product->input(1), "Log", 1) : nullptr;
  if (!logarithm || product->input(0) != choice.input(1))
    return std::nullopt;
  return Guard{index, choice.input(0), "", "", "", logarithm->output(0), logarithm->input(0)};
}

void lowtide::restoreGuardedZeros(GraphProto &proto) {
  std::vector<Guard> guards;
  const Makers makers(proto);
  for (auto [i, node] : enumerate(proto.node()))
    if (std::optional<Guard> guard = matchGuard(makers, node, int(i)))
      guards.push_back(*guard);
  if (guards.empty())
    return;
  StringMap<int> nodes;
  for (auto [i, node] : enumerate(proto.node()))
    if (node.output_size())
      nodes[node.output(0)] = int(i);
  UnfoldingGraph graph(proto);
  for (const Guard &guard : guards) {
    graph.setModule(findModulePath(proto.node(guard.choice)).value_or(""));
    auto add = [&](StringRef op, ArrayRef<std::string> operands) { return graph.addNode(op, operands); };
    if (!guard.quotient.empty()) {
      const std::string divisor = add("Where", {guard.isZero, guard.one, guard.divisor});
      proto.mutable_node(nodes[guard.quotient])->set_input(1, divisor);
      continue;
    }
    auto number = [&](float value) { return add("CastLike", {graph.addNumber(value), guard.argument}); };
    const std::string hasLogarithm =
        add("And", {add("Greater", {guard.argument, number(0)}),
                    add("Less", {guard.argument, number(std::numeric_limits<float>::infinity())})});
    const std::string isOut = add("And", {guard.isZero, add("Not", {hasLogarithm})});
    const std::string argument = add("Where", {isOut, number(1), guard.argument});
    proto.mutable_node(nodes[guard.logarithm])->set_input(0, argument);
    proto.mutable_node(guard.choice)->set_input(0, isOut);
  }
}
