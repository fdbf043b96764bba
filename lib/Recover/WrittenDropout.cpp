//===- WrittenDropout.cpp - dropout that is written with random numbers -----------===//
//
// `Dropout2d`, and the stochastic depth of torchvision, timm and transformers, reach a file as
// `x · Cast(uniform < c) / c`, `x / c · Floor(uniform + c)` or `x · Cast(uniform > 1 − c) / c`. A mask that nothing
// divides by c is none of these: programs hide parts of what they read by such, in evaluation as well.
//
// `AlphaDropout` and `FeatureAlphaDropout` reach it as `x · (m · a) + ((m − 1) · αa + αa(1 − c))` of such a mask m,
// where a, which keeps mean and variance, follows from c.
//
//===----------------------------------------------------------------------===//

#include "WrittenDropout.h"

#include "Unfold.h"
#include "ValueIndex.h"

#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"
#include "lowtide/Support/AlphaDropout.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

namespace {
struct AlphaDropout {
  std::string operand, mask;
  double kept;
};

class Draws {
public:
  explicit Draws(const GraphProto &graph) : values(graph) {}

  /// The probability with which the mask that `node` draws keeps; nullopt: it draws none, or is not divided by it.
  std::optional<double> findKept(const NodeProto &node) const;

  /// The sum that ends an alpha dropout, its operand and mask, and the probability with which it keeps; null: none ends
  /// in `node`.
  std::optional<AlphaDropout> findAlpha(const NodeProto &node) const;

private:
  /// A number that is perhaps cast to the type of what it is compared with, as files of no optimizer have it.
  std::optional<double> findNumber(StringRef value) const;
  bool isUniform(StringRef value) const;
  /// The same whatever is done to the mask.
  std::optional<double> findDrawn(const NodeProto &node) const;
  bool isDivisor(StringRef value, double kept) const;
  bool isDivided(StringRef value, double kept, int depth) const;
  /// The other operand of a node of this operator, one of whose operands is about `number`; empty: it has none.
  StringRef findBeside(StringRef value, StringRef op, double number) const;

  const ValueIndex values;
};
} // namespace

std::optional<double> Draws::findNumber(StringRef value) const {
  const NodeProto *node = values.find(value);
  while (node && (node->op_type() == "Cast" || node->op_type() == "CastLike") && node->input_size()) {
    value = node->input(0);
    node = values.find(value);
  }
  if (node && node->op_type() == "Constant")
    for (const auto &attribute : node->attribute())
      if (attribute.name() == "value_float")
        return attribute.f();
  const ::onnx::TensorProto *tensor = values.findTensor(value);
  if (!tensor || tensor->data_type() != ::onnx::TensorProto::INT64)
    return values.findNumber(value);
  if (any_of(tensor->dims(), [](int64_t dim) { return dim != 1; }))
    return std::nullopt;
  const std::string bytes = embeddedBytes(*tensor);
  int64_t number = 0;
  if (bytes.size() != sizeof(number))
    return std::nullopt;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return double(number);
}

bool Draws::isUniform(StringRef value) const {
  const NodeProto *node = values.find(value);
  return node && (node->op_type() == "RandomUniformLike" || node->op_type() == "RandomUniform") &&
         none_of(node->attribute(), [](const auto &attribute) {
           return (attribute.name() == "low" && attribute.f() != 0) ||
                  (attribute.name() == "high" && attribute.f() != 1) || attribute.name() == "seed";
         });
}

std::optional<double> Draws::findDrawn(const NodeProto &node) const {
  if (node.input_size() != (node.op_type() == "CastLike" ? 2 : 1) || node.output_size() != 1)
    return std::nullopt;
  const NodeProto *chosen = values.find(node.input(0));
  if (!chosen || chosen->input_size() != 2 || !isUniform(chosen->input(0)))
    return std::nullopt;
  std::optional<double> number = findNumber(chosen->input(1));
  StringRef op = chosen->op_type();
  if (node.op_type() == "Floor")
    return op == "Add" ? number : std::nullopt;
  if (!number || (node.op_type() != "Cast" && node.op_type() != "CastLike"))
    return std::nullopt;
  return op.starts_with("Less") ? number : op.starts_with("Greater") ? std::optional(1 - *number) : std::nullopt;
}

bool Draws::isDivisor(StringRef value, double kept) const {
  std::optional<double> number = findNumber(value);
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

StringRef Draws::findBeside(StringRef value, StringRef op, double number) const {
  const NodeProto *node = values.find(value, op, 2);
  for (int i = 0; node && i != 2; ++i)
    if (std::optional<double> given = findNumber(node->input(i)); given && std::abs(*given - number) < 1e-4)
      return node->input(1 - i);
  return "";
}

std::optional<AlphaDropout> Draws::findAlpha(const NodeProto &node) const {
  if (node.op_type() != "Add" || node.input_size() != 2)
    return std::nullopt;
  for (int i = 0; i != 2; ++i) {
    const NodeProto *product = values.find(node.input(i), "Mul", 2);
    for (int j = 0; product && j != 2; ++j) {
      const NodeProto *scale = values.find(product->input(j), "Mul", 2);
      for (int k = 0; scale && k != 2; ++k) {
        const NodeProto *mask = values.find(scale->input(k));
        const std::optional<double> kept = mask ? findDrawn(*mask) : std::nullopt;
        if (!kept || *kept <= 0 || *kept >= 1)
          continue;
        const double a = alphaDropoutScale(1 - *kept);
        const StringRef below = findBeside(node.input(1 - i), "Add", seluLimit * a * (1 - *kept));
        if (findBeside(product->input(j), "Mul", a) == mask->output(0) &&
            findBeside(findBeside(below, "Mul", seluLimit * a), "Add", -1) == mask->output(0))
          return AlphaDropout{product->input(1 - j), mask->output(0), *kept};
      }
    }
  }
  return std::nullopt;
}

/// Writes `Dropout` with the attribute `alpha`, and what its draws have the shape of as a further operand.
static void restoreAlphaDropout(GraphProto &proto) {
  std::vector<std::pair<int, AlphaDropout>> found;
  const Draws draws(proto);
  for (auto [i, node] : enumerate(proto.node()))
    if (std::optional<AlphaDropout> alpha = draws.findAlpha(node))
      found.emplace_back(int(i), std::move(*alpha));
  if (found.empty())
    return;
  UnfoldingGraph graph(proto);
  for (const auto &[index, alpha] : found) {
    const std::string ratio = graph.addNumber(float(1 - alpha.kept)), trains = graph.addTruth(true);
    NodeProto &node = *proto.mutable_node(index);
    node.set_op_type("Dropout");
    node.clear_input();
    for (const std::string &input : {alpha.operand, ratio, trains, alpha.mask})
      node.add_input(input);
    ::onnx::AttributeProto &attribute = *node.add_attribute();
    attribute.set_name("alpha");
    attribute.set_type(::onnx::AttributeProto::FLOAT);
    attribute.set_f(float(seluLimit));
  }
}

void lowtide::restoreWrittenDropout(GraphProto &proto) {
  restoreAlphaDropout(proto);
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
