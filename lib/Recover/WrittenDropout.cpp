//===- WrittenDropout.cpp - dropout that is written with random numbers -----------===//
//
// `Dropout2d`, and the stochastic depth of torchvision, timm and transformers, reach a file as
// `x · Cast(uniform < c) / c`, `x / c · Floor(uniform + c)` or `x · Cast(uniform > 1 − c) / c`. A mask that nothing
// divides by c is none of these: programs hide parts of what they read by such, in evaluation as well.
//
//===----------------------------------------------------------------------===//

#include "WrittenDropout.h"

#include "Unfold.h"
#include "ValueIndex.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

namespace {
class Draws {
public:
  explicit Draws(const GraphProto &graph) : values(graph) {}

  /// The probability with which the mask that `node` draws keeps; nullopt: it draws none, or is not divided by it.
  std::optional<double> findKept(const NodeProto &node) const;

private:
  bool isUniform(StringRef value) const;
  /// The same whatever is done to the mask.
  std::optional<double> findDrawn(const NodeProto &node) const;
  bool isDivisor(StringRef value, double kept) const;
  bool isDivided(StringRef value, double kept, int depth) const;

  const ValueIndex values;
};
} // namespace

bool Draws::isUniform(StringRef value) const {
  const NodeProto *node = values.find(value);
  return node && (node->op_type() == "RandomUniformLike" || node->op_type() == "RandomUniform") &&
         none_of(node->attribute(), [](const auto &attribute) {
           return (attribute.name() == "low" && attribute.f() != 0) ||
                  (attribute.name() == "high" && attribute.f() != 1) || attribute.name() == "seed";
         });
}

std::optional<double> Draws::findDrawn(const NodeProto &node) const {
  if (node.input_size() != 1 || node.output_size() != 1)
    return std::nullopt;
  const NodeProto *chosen = values.find(node.input(0));
  if (!chosen || chosen->input_size() != 2 || !isUniform(chosen->input(0)))
    return std::nullopt;
  std::optional<double> number = values.findNumber(chosen->input(1));
  StringRef op = chosen->op_type();
  if (node.op_type() == "Floor")
    return op == "Add" ? number : std::nullopt;
  if (!number || node.op_type() != "Cast")
    return std::nullopt;
  return op.starts_with("Less") ? number : op.starts_with("Greater") ? std::optional(1 - *number) : std::nullopt;
}

bool Draws::isDivisor(StringRef value, double kept) const {
  std::optional<double> number = values.findNumber(value);
  return number && std::abs(*number - kept) < 1e-6;
}

bool Draws::isDivided(StringRef value, double kept, int depth) const {
  const ArrayRef<const NodeProto *> readers = values.findReaders(value);
  return !readers.empty() && all_of(readers, [&](const NodeProto *reader) {
    if (!reader || reader->input_size() != 2)
      return false;
    if (reader->op_type() == "Div")
      return reader->input(0) == value && isDivisor(reader->input(1), kept);
    if (reader->op_type() != "Mul" || depth == 0)
      return false;
    StringRef other = reader->input(reader->input(0) == value);
    const NodeProto *quotient = values.find(other, "Div", 2);
    return (quotient && isDivisor(quotient->input(1), kept)) || isDivided(reader->output(0), kept, depth - 1);
  });
}

std::optional<double> Draws::findKept(const NodeProto &node) const {
  std::optional<double> kept = findDrawn(node);
  return kept && *kept > 0 && *kept < 1 && isDivided(node.output(0), *kept, /*depth=*/1) ? kept : std::nullopt;
}

void lowtide::restoreWrittenDropout(GraphProto &proto) {
  SmallVector<std::pair<int, double>> masks;
  const Draws draws(proto);
  for (auto [i, node] : enumerate(proto.node()))
    if (std::optional<double> kept = draws.findKept(node))
      masks.emplace_back(int(i), *kept);
  if (masks.empty())
    return;
  UnfoldingGraph graph(proto);
  const int numOld = proto.node_size();
  for (auto [index, kept] : masks) {
    const std::string mask = proto.node(index).output(0);
    graph.setModule(findModulePath(proto.node(index)).value_or(""));
    const std::string one = graph.addNode("CastLike", {graph.addNumber(1), mask});
    const std::string ones = graph.addNode("Expand", {one, graph.addNode("Shape", {mask})});
    const std::string ratio = graph.addNumber(float(1 - kept)), trains = graph.addTruth(true);
    const std::string dropped = graph.addNode("Dropout", {ones, ratio, trains});
    const std::string drawn =
        graph.addNode("Mul", {dropped, graph.addNode("CastLike", {graph.addNumber(float(kept)), mask})});
    for (int i = 0; i != numOld; ++i)
      for (std::string &input : *proto.mutable_node(i)->mutable_input())
        if (input == mask)
          input = drawn;
  }
}
