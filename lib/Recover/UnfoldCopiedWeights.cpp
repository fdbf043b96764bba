//===- UnfoldCopiedWeights.cpp - weights that onnxslim wrote once for each call ------===//
//
// onnxslim turns the weight of each product that it rewrites, and calls it after the result: a layer that runs four
// times has four equal weights. Trained as they stand, they would part. Layers that were copied begin equal, too: these
// have biases of their own, and modules of other names.
//
//===----------------------------------------------------------------------===//

#include "Classifier.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// `key` of `key_1`, as PyTorch's old exporter calls a module's second run.
static StringRef withoutCall(StringRef module) {
  auto [stem, number] = module.rsplit('_');
  return !number.empty() && all_of(number, isDigit) ? stem : module;
}

/// Whether `other` is a later run of what `name` is of: `/net/key_1/MatMul_output_0_weight`.
static bool isLaterRun(StringRef name, StringRef other) {
  SmallVector<StringRef> first, later;
  name.split(first, '/');
  other.split(later, '/');
  return name.starts_with("/") && first.size() == later.size() && first.size() > 2 && first.back() == later.back() &&
         all_of(zip(first, later), [](auto pair) {
           auto [a, b] = pair;
           return a == b || a == withoutCall(b) || (withoutCall(a) == withoutCall(b) && a != withoutCall(a));
         });
}

void lowtide::joinCopiedWeights(UnfoldingGraph &graph, GraphProto &proto) {
  StringMap<unsigned> reads;
  for (const NodeProto &node : proto.node())
    for (const std::string &input : node.input())
      ++reads[input];
  // Of the first of equal weights, by a number that equal ones share: they are too large to be kept.
  std::map<uint64_t, SmallVector<const NodeProto *>> readers;
  for (NodeProto &node : *proto.mutable_node()) {
    const TensorProto *weight =
        node.op_type() == "Gemm" && node.input_size() > 1 && StringRef(node.input(1)).ends_with("_weight")
            ? graph.find(node.input(1))
            : nullptr;
    if (!weight || weight->dims_size() != 2 || reads[weight->name()] != 1 || graph.isRemoved(weight->name()) ||
        !isInventedName(weight->name()))
      continue;
    std::optional<std::string> bytes = graph.read(*weight);
    const auto type = findElementType(weight->data_type());
    if (!bytes || !type || !type->bytes || hasEqualElements(*bytes, type->bytes))
      continue;
    const StringRef bias = node.input_size() > 2 ? StringRef(node.input(2)) : "";
    auto &firsts =
        readers[hash_combine(weight->data_type(), weight->dims(0), weight->dims(1), hash_value(StringRef(*bytes)))];
    auto same = llvm::find_if(firsts, [&](const NodeProto *first) {
      const bool sharesBias = !bias.empty() && graph.find(bias) && !isInventedName(bias) && first->input_size() > 2 &&
                              first->input(2) == bias;
      const TensorProto &other = *graph.find(first->input(1));
      return (sharesBias || isLaterRun(other.name(), weight->name())) && other.dims(0) == weight->dims(0) &&
             other.data_type() == weight->data_type() && graph.read(other) == bytes;
    });
    if (same == firsts.end()) {
      firsts.push_back(&node);
      continue;
    }
    graph.remove(*weight);
    node.set_input(1, (*same)->input(1));
  }
}
