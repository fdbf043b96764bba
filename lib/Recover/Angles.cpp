//===- Angles.cpp - angles of vectors along an axis -------------------------------===//
//
// ONNX has no atan2. PyTorch's exporters write
//
//   Where(x < 0, Where(y > 0, a + π, a - π), a),  a = Atan(y / x)
//
// which is -π instead of π at y = 0, x < 0, and whose gradient at x = 0 is that of an infinite quotient. The quotient
// of the smaller by the larger coordinate is finite everywhere but at the origin, where PyTorch's gradient is NaN, too.
//
//===----------------------------------------------------------------------===//

#include "Angles.h"

#include "Makers.h"
#include "Unfold.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

namespace {
struct Angle {
  std::string y, x, zero;
};
} // namespace

/// Whether the value is an initializer, an input, or a constant of the graph.
static bool isConstant(const Makers &makers, const std::string &value) {
  const NodeProto *maker = makers.find(value);
  return !maker || maker->op_type() == "Constant";
}

/// What `choice` is the angle of, if it is written as above.
static std::optional<Angle> matchAngle(const Makers &makers, const NodeProto &choice) {
  if (choice.op_type() != "Where" || choice.input_size() != 3)
    return std::nullopt;
  if (!findProgramNote(choice).empty() && findProgramOperator(choice) != "aten.atan2.default")
    return std::nullopt;
  const std::string &angle = choice.input(2);
  const NodeProto *arc = makers.find(angle, "Atan", 1), *turned = makers.find(choice.input(1), "Where", 3);
  const NodeProto *quotient = arc ? makers.find(arc->input(0), "Div", 2) : nullptr;
  const NodeProto *plus = turned ? makers.find(turned->input(1), "Add", 2) : nullptr;
  const NodeProto *minus = turned ? makers.find(turned->input(2), "Sub", 2) : nullptr;
  if (!quotient || !plus || !minus || plus->input(0) != angle || minus->input(0) != angle)
    return std::nullopt;
  const std::string &y = quotient->input(0), &x = quotient->input(1);
  const NodeProto *left = makers.find(choice.input(0), "Less", 2), *above = makers.find(turned->input(0), "Greater", 2);
  // Of a coordinate that is a constant, the comparison was evaluated.
  const bool isLeft = left ? left->input(0) == x : isConstant(makers, choice.input(0));
  const bool isAbove = above ? above->input(0) == y : isConstant(makers, turned->input(0));
  if (!isLeft || !isAbove || (!left && !above))
    return std::nullopt;
  return Angle{y, x, left ? left->input(1) : above->input(1)};
}

void lowtide::restoreAngles(GraphProto &proto) {
  SmallVector<std::pair<int, Angle>> angles;
  const Makers makers(proto);
  for (auto [i, node] : enumerate(proto.node()))
    if (std::optional<Angle> angle = matchAngle(makers, node))
      angles.emplace_back(int(i), *angle);
  if (angles.empty())
    return;
  UnfoldingGraph graph(proto);
  for (const auto &[index, angle] : angles) {
    const auto &[y, x, zero] = angle;
    graph.setModule(findModulePath(proto.node(index)).value_or(""));
    auto add = [&](StringRef op, ArrayRef<std::string> operands) { return graph.addNode(op, operands); };
    const std::string isSteep = add("Greater", {add("Abs", {y}), add("Abs", {x})});
    const std::string arc = add("Atan", {add("Div", {add("Where", {isSteep, x, y}), add("Where", {isSteep, y, x})})});
    // Zero has a sign: that of its reciprocal.
    const std::string isBelow = add("Or", {add("Less", {y, zero}), add("Less", {add("Reciprocal", {y}), zero})});
    auto turn = [&](float number) {
      const std::string size = add("CastLike", {graph.addNumber(number), arc});
      return add("Where", {isBelow, add("Neg", {size}), size});
    };
    const std::string turned = add("Add", {arc, turn(3.14159265f)});
    const std::string isOrigin = add("And", {add("Equal", {y, zero}), add("Equal", {x, zero})});
    const std::string flat = add("Where", {add("Less", {x, zero}), turned, arc});
    NodeProto &choice = *proto.mutable_node(index);
    const std::string steep = add("Sub", {turn(1.57079633f), arc}), none = add("CastLike", {graph.addNumber(0), arc});
    choice.set_input(0, isSteep);
    choice.set_input(1, steep);
    choice.set_input(2, add("Where", {isOrigin, none, flat}));
  }
}
