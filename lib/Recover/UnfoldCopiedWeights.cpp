//===- UnfoldCopiedWeights.cpp - weights that onnxslim wrote once for each run -------===//
//
// onnxslim turns the weight of each product that it rewrites, and makes tensors of copies: a layer that runs four times
// has four equal weights. Trained as they stand, they would part. Layers that were copied begin equal, too: these have
// biases of their own, and modules of other names.
//
//===----------------------------------------------------------------------===//

#include "Classifier.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

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

/// `/net/key/MatMul` of node `/net/key_1/MatMul`; of other names, the name.
static std::string nameOfFirstRun(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '/');
  for (StringRef &part : MutableArrayRef(parts).drop_back())
    part = withoutCall(part);
  return join(parts, "/");
}

static bool areEqual(const UnfoldingGraph &graph, const TensorProto &a, const TensorProto &b) {
  if (a.data_type() != b.data_type() || a.dims(0) != b.dims(0) || a.dims(1) != b.dims(1))
    return false;
  const std::optional<std::string> bytes = graph.read(a);
  const auto type = findElementType(a.data_type());
  return bytes && type && type->bytes && !hasEqualElements(*bytes, type->bytes) && bytes == graph.read(b);
}

void lowtide::joinCopiedWeights(UnfoldingGraph &graph, GraphProto &proto) {
  StringMap<unsigned> reads;
  for (const NodeProto &node : proto.node())
    for (const std::string &input : node.input())
      ++reads[input];
  StringMap<SmallVector<const NodeProto *>> runs; // by what they share, with a weight of each kind
  for (NodeProto &node : *proto.mutable_node()) {
    const bool isProduct = (node.op_type() == "Gemm" || node.op_type() == "MatMul") && node.domain().empty();
    const TensorProto *weight = isProduct && node.input_size() > 1 ? graph.find(node.input(1)) : nullptr;
    if (!weight || weight->dims_size() != 2 || reads[weight->name()] != 1 || !isInventedName(weight->name()))
      continue;
    SmallVector<std::string> shared;
    if (StringRef(node.name()).count('/') > 2)
      shared.push_back(nameOfFirstRun(node.name()));
    if (node.input_size() > 2 && graph.find(node.input(2)) && !isInventedName(node.input(2)))
      shared.push_back(node.input(2));
    const NodeProto *first = nullptr;
    for (StringRef key : shared)
      for (const NodeProto *run : runs[key]) {
        // A module may be called so, and be another.
        const bool isRun = key == node.input(node.input_size() - 1) || run->name() == key;
        if (!first && isRun && areEqual(graph, *graph.find(run->input(1)), *weight))
          first = run;
      }
    if (!first) {
      for (StringRef key : shared)
        runs[key].push_back(&node);
      continue;
    }
    graph.remove(*weight);
    node.set_input(1, first->input(1));
  }
}
