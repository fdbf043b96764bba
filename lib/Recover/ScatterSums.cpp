//===- ScatterSums.cpp - sums that an exporter wrote as assignments ---------------===//
//
// PyTorch's old exporter writes `x.index_add(0, i, y)`, and below opset 16 `x.scatter_add(0, i, y)`, as x plus what a
// ScatterElements assigns to zeros: of rows that meet at one place one is left. ONNX does not define an assignment of
// several elements to one place, so a sum is right in any case. Equal elements are: a program may mark places by ones,
// several times. Those count only where they are added to zeros, which is no program's text.
//
//===----------------------------------------------------------------------===//

#include "ScatterSums.h"

#include "ValueIndex.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// The elements of a tensor as bytes, where all of them are equal; empty otherwise, or where they are in another file.
static std::string uniformBytes(const TensorProto &tensor) {
  if (tensor.data_location() == TensorProto::EXTERNAL || tensor.dims_size() > 16)
    return "";
  const std::string bytes = embeddedBytes(tensor);
  const auto type = findElementType(tensor.data_type());
  const size_t width = type ? size_t(type->bytes) : 0;
  if (!width || bytes.size() < width || bytes.size() % width)
    return "";
  return hasEqualElements(bytes, width) ? bytes.substr(0, width) : "";
}

/// The element that a value consists of, as bytes; empty: it differs, or an input decides.
static std::string findElement(const ValueIndex &values, StringRef value, int steps = 8) {
  if (const TensorProto *tensor = values.findTensor(value))
    return uniformBytes(*tensor);
  const NodeProto *node = values.find(value);
  if (!node || !steps)
    return "";
  if (node->op_type() == "ConstantOfShape") {
    for (const auto &attribute : node->attribute())
      if (attribute.name() == "value")
        return uniformBytes(attribute.t());
    return std::string(sizeof(float), '\0');
  }
  const bool moves = is_contained({"Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"},
                                  StringRef(node->op_type()));
  return moves && node->input_size() ? findElement(values, node->input(0), steps - 1) : "";
}

static bool isZeros(const ValueIndex &values, StringRef value) {
  const std::string element = findElement(values, value);
  return !element.empty() && all_of(element, [](char byte) { return byte == 0; });
}

/// Whether a sum is what the program computes there.
static bool isSum(const ValueIndex &values, const NodeProto &node) {
  if (node.op_type() != "ScatterElements" || !node.domain().empty() || node.input_size() != 3 ||
      node.output_size() != 1 || !findProgramNote(node).empty() || !isZeros(values, node.input(0)))
    return false;
  for (const auto &attribute : node.attribute())
    if (attribute.name() == "reduction" && attribute.s() != "none")
      return false;
  const std::string &result = node.output(0);
  const bool isUniform = !findElement(values, node.input(2)).empty();
  ArrayRef<const NodeProto *> readers = values.findReaders(result);
  return !readers.empty() && all_of(readers, [&](const NodeProto *reader) {
    return reader && reader->op_type() == "Add" && reader->input_size() == 2 &&
           (!isUniform || isZeros(values, reader->input(reader->input(0) == result)));
  });
}

void lowtide::restoreScatterSums(::onnx::GraphProto &graph) {
  const ValueIndex values(graph);
  SmallVector<int> sums;
  for (auto [i, node] : enumerate(graph.node()))
    if (isSum(values, node))
      sums.push_back(int(i));
  for (int index : sums) {
    auto &attributes = *graph.mutable_node(index)->mutable_attribute();
    attributes.erase(remove_if(attributes, [](const auto &attribute) { return attribute.name() == "reduction"; }),
                     attributes.end());
    auto &reduction = *attributes.Add();
    reduction.set_name("reduction");
    reduction.set_type(::onnx::AttributeProto::STRING);
    reduction.set_s("add");
  }
}
