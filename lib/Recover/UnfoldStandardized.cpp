//===- UnfoldStandardized.cpp - weights that a batch norm standardizes -----------===//
//
// Weight standardization (Qiao et al.) brings each filter to a mean of zero and a deviation of one, and programs do so
// by a batch norm of the weight as a matrix (BiT, NFNet). PyTorch's old exporter evaluates the weight in that shape,
// and once more turned, for the statistics, and drops the weight. Its shape is told by who reads the result: the
// convolution of the same module.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <cstring>
#include <numeric>

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

static SmallVector<int64_t> dimsOf(const TensorProto &tensor) {
  return SmallVector<int64_t>(tensor.dims().begin(), tensor.dims().end());
}

/// The node of `module` that alone reads `value`, as this operand; null: there is none.
static const NodeProto *findReader(const UnfoldingGraph &graph, StringRef value, int operand, StringRef module) {
  const NodeProto *reader = nullptr;
  for (const NodeProto &node : graph.getGraph().node())
    if (is_contained(node.input(), value)) {
      if (reader || operand >= node.input_size() || node.input(operand) != value || findModulePath(node) != module)
        return nullptr;
      reader = &node;
    }
  return reader;
}

/// The shape that the initializer `name` says; empty: it is none.
static SmallVector<int64_t> readShape(const UnfoldingGraph &graph, StringRef name) {
  const TensorProto *tensor = graph.find(name);
  const std::string bytes =
      tensor && tensor->data_type() == TensorProto::INT64 ? graph.read(*tensor).value_or("") : std::string();
  SmallVector<int64_t> shape(bytes.size() / sizeof(int64_t));
  std::memcpy(shape.data(), bytes.data(), shape.size() * sizeof(int64_t));
  return shape;
}

/// Whether `turned` are the f32 matrices `bytes` of such dimensions, rows as columns.
static bool isTurned(StringRef bytes, ArrayRef<int64_t> dims, StringRef turned) {
  constexpr size_t size = sizeof(float);
  const size_t rows = size_t(dims[1]), columns = size_t(dims[2]);
  return bytes.size() == turned.size() && all_of(seq<size_t>(0, bytes.size() / size), [&](size_t i) {
           const size_t first = i / (rows * columns) * rows * columns, row = i / columns % rows, column = i % columns;
           return bytes.substr(i * size, size) == turned.substr((first + column * rows + row) * size, size);
         });
}

bool lowtide::unfoldStandardized(UnfoldingGraph &graph, const NodeProto &node, int operand) {
  const TensorProto *tensor = graph.find(node.input(operand));
  const std::string module = findModulePath(node).value_or("");
  if (node.op_type() != "BatchNormalization" || operand != 0 || !tensor || graph.isRemoved(tensor->name()) ||
      tensor->data_type() != TensorProto::FLOAT || tensor->dims_size() != 3 || module.empty())
    return false;
  const NodeProto *shaped = findReader(graph, node.output(0), 0, module);
  const NodeProto *layer =
      shaped && shaped->op_type() == "Reshape" ? findReader(graph, shaped->output(0), 1, module) : nullptr;
  if (!layer || (layer->op_type() != "Conv" && layer->op_type() != "ConvTranspose"))
    return false;
  UnfoldedPart part{module + ".weight", readShape(graph, shaped->input(1)), {}};
  const std::string bytes = graph.read(*tensor).value_or("");
  const size_t elements = bytes.size() / sizeof(float);
  if (bytes.empty() || graph.find(part.name) || size_t(checkedElements(part.dims).value_or(0)) != elements)
    return false;
  part.map.resize(elements);
  std::iota(part.map.begin(), part.map.end(), 0);
  const SmallVector<int64_t> dims = dimsOf(*tensor), across{dims[0], dims[2], dims[1]};
  SmallVector<const TensorProto *> turned;
  for (const TensorProto &other : graph.getGraph().initializer())
    if (&other != tensor && isEvaluatedName(other.name()) && !graph.isRemoved(other.name()) &&
        other.data_type() == TensorProto::FLOAT && dimsOf(other) == across &&
        isTurned(bytes, dims, graph.read(other).value_or("")))
      turned.push_back(&other);
  graph.setModule(module);
  graph.addParts(*tensor, bytes, part, "the program standardizes it, in the shape of", true);
  graph.addNode("Reshape", {part.name, graph.addIntegers({int64_t(dims.size())}, dims)}, tensor->name());
  graph.remove(*tensor);
  for (const TensorProto *other : turned) {
    graph.addNode("Transpose", {tensor->name()}, other->name());
    graph.setAttribute("perm", {0, 2, 1});
    graph.remove(*other);
  }
  return true;
}
