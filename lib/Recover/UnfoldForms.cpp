//===- UnfoldForms.cpp - parameters that the file also holds in another form -----===//
//
// Where a parameter is read as it is, and once more with dimensions put around it, exporters evaluate the second form
// and keep both: trained as they stand, they would part. Their numbers are the same bit by bit, which no chance makes.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::TensorProto;

/// Elements of a tensor that chance may repeat, and of one that is too large to be compared.
static constexpr size_t fewest = 4, most = size_t(1) << 18;

static size_t elementsOf(const TensorProto &tensor) {
  return size_t(checkedElements({tensor.dims().data(), size_t(tensor.dims_size())}).value_or(0));
}

static bool isComparable(const TensorProto &tensor) {
  size_t elements = elementsOf(tensor);
  return tensor.data_type() == TensorProto::FLOAT && elements >= fewest && elements <= most;
}

void lowtide::unfoldForms(UnfoldingGraph &graph, GraphProto &proto,
                          function_ref<bool(const TensorProto &)> isEvaluated) {
  StringMap<std::string> sources;
  SmallVector<const TensorProto *> evaluated, whole;
  std::set<size_t> sizes;
  for (const TensorProto &tensor : proto.initializer()) {
    if (!isComparable(tensor) || graph.isRemoved(tensor.name()))
      continue;
    bool isForm = isEvaluated(tensor);
    (isForm ? evaluated : whole).push_back(&tensor);
    if (isForm)
      sizes.insert(elementsOf(tensor));
  }
  for (const TensorProto *tensor : whole) {
    std::string bytes = sizes.count(elementsOf(*tensor)) ? graph.read(*tensor).value_or("") : "";
    // Equal elements may be equal by chance.
    if (!bytes.empty() && StringRef(bytes).drop_front(sizeof(float)) != StringRef(bytes).drop_back(sizeof(float)))
      sources[bytes] = tensor->name();
  }
  for (const TensorProto *tensor : evaluated) {
    auto source = sources.find(graph.read(*tensor).value_or(""));
    if (source == sources.end())
      continue;
    SmallVector<int64_t> dims(tensor->dims().begin(), tensor->dims().end());
    graph.setModule(moduleOf(source->second));
    graph.addNode("Reshape", {source->second, graph.addIntegers({int64_t(dims.size())}, dims)}, tensor->name());
    graph.remove(*tensor);
  }
}
