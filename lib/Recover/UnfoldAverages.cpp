//===- UnfoldAverages.cpp - running averages that an exporter evaluated ----------===//
//
// `avg = m · avg + (1 - m) · x`: `m · avg` depends on no input, and the exporter evaluates it. The program's signature
// says what is assigned to the buffer, and the factor of the other operand tells m.
//
//===----------------------------------------------------------------------===//

#include "Makers.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace {
class Averages {
public:
  Averages(UnfoldingGraph &graph, GraphProto &proto) : graph(graph), proto(proto), makers(proto) {}

  void restore(const SignatureEntry &buffer);

private:
  std::optional<float> findNumber(StringRef value) const;
  std::optional<float> findFactor(StringRef value) const;

  UnfoldingGraph &graph;
  GraphProto &proto;
  const Makers makers;
};
} // namespace

std::optional<float> Averages::findNumber(StringRef value) const {
  const TensorProto *tensor = graph.find(value);
  if (!tensor || tensor->data_type() != TensorProto::FLOAT)
    return std::nullopt;
  std::string bytes = graph.read(*tensor).value_or("");
  float number;
  if (bytes.size() != sizeof(number))
    return std::nullopt;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

/// The number between 0 and 1 that `value` is multiplied by.
std::optional<float> Averages::findFactor(StringRef value) const {
  const NodeProto *node = makers.find(value, "Mul", 2);
  if (!node)
    return std::nullopt;
  for (int operand : {0, 1})
    if (std::optional<float> number = findNumber(node->input(operand)); number && *number > 0 && *number < 1)
      return number;
  return std::nullopt;
}

void Averages::restore(const SignatureEntry &buffer) {
  // What was evaluated from the buffer: one product with a number.
  const TensorProto *image = nullptr;
  for (const auto &value : proto.value_info()) {
    std::vector<std::string> sources = findFoldedFrom(value);
    if (!is_contained(sources, buffer.target))
      continue;
    if (image || operationName(value.name()) != "mul" || any_of(sources, [&](const std::string &name) {
          return name != buffer.target && operationName(name) != "val" &&
                 operationName(name) != "scalar_tensor_default";
        }))
      return;
    image = graph.find(value.name());
  }
  const NodeProto *sum = makers.find(buffer.assigned, "Add", 2);
  if (!image || image->data_type() != TensorProto::FLOAT || !sum)
    return;
  const int operand = sum->input(0) == image->name() ? 0 : 1;
  std::optional<float> rest = findFactor(sum->input(1 - operand));
  std::optional<std::string> bytes = sum->input(operand) == image->name() && rest ? graph.read(*image) : std::nullopt;
  if (!bytes)
    return;
  const float kept = float(1 - double(*rest));
  for (size_t at = 0; at + sizeof(float) <= bytes->size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, &(*bytes)[at], sizeof(value));
    value /= kept;
    std::memcpy(&(*bytes)[at], &value, sizeof(value));
  }
  const std::string name = image->name();
  SmallVector<int64_t> dims(image->dims().begin(), image->dims().end());
  graph.setModule(moduleOf(buffer.target));
  graph.addInitializer(buffer.target, dims, TensorProto::FLOAT, std::move(*bytes),
                       {name, "the exporter evaluated a multiple of it as " + name, true});
  graph.addNode("Mul", {buffer.target, graph.addNumber(kept)}, name);
  graph.remove(*image);
  graph.addDoubt(
      {FindingKind::AverageFactorAssumed,
       name,
       {buffer.target},
       {{"initializer", quoteName(name)}, {"buffer", quoteName(buffer.target)}, {"number", std::to_string(*rest)}}});
}

void lowtide::unfoldAverages(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  for (const SignatureEntry &entry : signature.getEntries())
    if (entry.kind == SignatureEntry::Buffer && !entry.assigned.empty() && !graph.find(entry.target))
      Averages(graph, proto).restore(entry);
}
