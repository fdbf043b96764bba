//===- OnnxGraph.cpp - nodes and values as protobuf messages --------------===//
//
// Names of nodes say of which layer they are; constants are shared.
//
//===----------------------------------------------------------------------===//

#include "OnnxGraph.h"
#include "ElementBytes.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Export/Export.h"
#include "lowtide/Export/FormBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::AttributeProto;

void lowtide::describeValue(StringRef name, RankedTensorType type, ::onnx::ValueInfoProto &info) {
  info.set_name(name.str());
  ::onnx::TypeProto_Tensor *tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(static_cast<int32_t>(getOnnxDataType(type.getElementType())));
  tensor->mutable_shape(); // rank 0 has a shape too
  for (int64_t extent : type.getShape())
    tensor->mutable_shape()->add_dim()->set_dim_value(extent);
}

static void fillTensor(DenseElementsAttr values, StringRef name, ::onnx::TensorProto &tensor) {
  tensor.set_name(name.str());
  tensor.set_data_type(static_cast<int32_t>(getOnnxDataType(values.getElementType())));
  for (int64_t extent : values.getType().getShape())
    tensor.add_dims(extent);
  tensor.set_raw_data(getElementBytes(values));
}

static void fillAttribute(NamedAttribute attribute, AttributeProto &proto) {
  proto.set_name(attribute.getName().str());
  llvm::TypeSwitch<Attribute>(attribute.getValue())
      .Case([&](IntegerAttr value) {
        proto.set_type(AttributeProto::INT);
        proto.set_i(value.getInt());
      })
      .Case([&](FloatAttr value) {
        proto.set_type(AttributeProto::FLOAT);
        proto.set_f(static_cast<float>(value.getValueAsDouble()));
      })
      .Case([&](StringAttr value) {
        proto.set_type(AttributeProto::STRING);
        proto.set_s(value.str());
      })
      .Case([&](DenseI64ArrayAttr values) {
        proto.set_type(AttributeProto::INTS);
        for (int64_t value : values.asArrayRef())
          proto.add_ints(value);
      })
      .Case([&](DenseF32ArrayAttr values) {
        proto.set_type(AttributeProto::FLOATS);
        for (float value : values.asArrayRef())
          proto.add_floats(value);
      })
      .Case([&](DenseElementsAttr values) {
        proto.set_type(AttributeProto::TENSOR);
        fillTensor(values, "", *proto.mutable_t());
      })
      .Case([&](ArrayAttr values) {
        proto.set_type(AttributeProto::STRINGS);
        for (auto value : values.getAsRange<StringAttr>())
          proto.add_strings(value.str());
      });
}

/// Outermost and innermost name of a place: the layer, and the node of the user's file.
static std::pair<StringRef, StringRef> findPlace(Location loc) {
  StringRef layer, node;
  while (true) {
    if (auto name = dyn_cast<NameLoc>(loc)) {
      node = name.getName();
      if (layer.empty())
        layer = node;
      loc = name.getChildLoc();
    } else if (auto fused = dyn_cast<FusedLoc>(loc); fused && !fused.getLocations().empty()) {
      loc = fused.getLocations().front();
    } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
      loc = call.getCallee();
    } else {
      return {layer, node};
    }
  }
}

std::string OnnxGraphWriter::uniqueName(const Twine &wanted) {
  std::string name = wanted.str(), base = name;
  while (!taken.insert(name).second)
    name = base + "_" + std::to_string(++numbers[base]);
  return name;
}

void OnnxGraphWriter::writeConstant(onnx::ConstantOp op) {
  std::string &known = constants[op.getValue()];
  if (known.empty()) {
    known = uniqueName("const_" + Twine(constants.size() - 1));
    fillTensor(cast<DenseElementsAttr>(op.getValue()), known, *main.add_initializer());
  }
  names[op.getResult()] = known;
}

void OnnxGraphWriter::writeSubgraph(Region &region, StringRef name, ::onnx::GraphProto &graph) {
  graph.set_name(name.str());
  Block &block = region.front();
  for (BlockArgument argument : block.getArguments()) {
    names[argument] = uniqueName(name + ".in");
    describeValue(names[argument], cast<RankedTensorType>(argument.getType()), *graph.add_input());
  }
  for (Value value : block.getTerminator()->getOperands()) {
    names[value] = uniqueName(name + ".out");
    describeValue(names[value], cast<RankedTensorType>(value.getType()), *graph.add_output());
  }
  writeNodes(block, graph);
}

void OnnxGraphWriter::writeNode(onnx::NodeOp op, ::onnx::GraphProto &graph) {
  auto [layer, node] = findPlace(op.getLoc());
  std::string label = uniqueName(layer.empty() ? op.getOpType() : (layer + "/" + op.getOpType()).str());
  ::onnx::NodeProto proto;
  proto.set_name(label);
  proto.set_op_type(op.getOpType().str());
  proto.set_domain(op.getDomain().str());
  for (Value input : op.getInputs())
    proto.add_input(isa<NoneType>(input.getType()) ? std::string() : names[input]);
  // ONNX Runtime takes a loop's outputs as they are numbered: those that nothing reads have names, too.
  const bool namesAll = !op.getBodies().empty();
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    std::string &name = names[result];
    if (name.empty() && (i == 0 || namesAll || !result.use_empty())) {
      name = i == 0 ? label : uniqueName(label + ":" + Twine(i));
      if (auto type = dyn_cast<RankedTensorType>(result.getType()))
        describeValue(name, type, *graph.add_value_info());
    }
    proto.add_output(name);
  }
  while (proto.output_size() > 1 && proto.output(proto.output_size() - 1).empty())
    proto.mutable_output()->RemoveLast();
  for (NamedAttribute attribute : op.getAttrs())
    fillAttribute(attribute, *proto.add_attribute());
  for (auto [i, region] : llvm::enumerate(op.getBodies())) {
    AttributeProto *attribute = proto.add_attribute();
    attribute->set_name(cast<StringAttr>((*op.getSubgraphs())[i]).str());
    attribute->set_type(AttributeProto::GRAPH);
    writeSubgraph(region, label + "." + attribute->name(), *attribute->mutable_g());
  }
  if (!layer.empty())
    addMetadata(proto, "lowtide.layer", layer);
  if (node != layer)
    addMetadata(proto, "lowtide.node", node);
  if (op->hasAttr(recomputedAttrName))
    addMetadata(proto, "lowtide.recomputed", "true");
  if (auto param = op->getAttrOfType<StringAttr>(gradientAttrName))
    addMetadata(proto, "lowtide.gradient", param.getValue());
  *graph.add_node() = std::move(proto);
  ++numNodes;
}

void OnnxGraphWriter::writeNodes(Block &block, ::onnx::GraphProto &graph) {
  for (Operation &op : block) {
    if (auto constant = dyn_cast<onnx::ConstantOp>(op))
      writeConstant(constant);
    else if (auto node = dyn_cast<onnx::NodeOp>(op))
      writeNode(node, graph);
  }
}

void OnnxGraphWriter::writeFunction(func::FuncOp function, int64_t opset, ::onnx::FunctionProto &proto) {
  proto.set_name(function.getSymName().str());
  proto.set_domain("lowtide");
  ::onnx::OperatorSetIdProto *import = proto.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
  ::onnx::GraphProto graph;
  OnnxGraphWriter writer(graph);
  Block &body = function.getBody().front();
  for (BlockArgument argument : body.getArguments()) {
    writer.name(argument, writer.uniqueName("in" + Twine(argument.getArgNumber())));
    proto.add_input(writer.nameOf(argument));
  }
  for (auto [i, result] : llvm::enumerate(body.getTerminator()->getOperands())) {
    writer.name(result, writer.uniqueName("out" + Twine(i)));
    proto.add_output(writer.nameOf(result));
  }
  writer.writeNodes(body, graph);
  for (::onnx::TensorProto &tensor : *graph.mutable_initializer()) {
    ::onnx::NodeProto &node = *proto.add_node();
    node.set_op_type("Constant");
    node.add_output(tensor.name());
    AttributeProto &value = *node.add_attribute();
    value.set_name("value");
    value.set_type(AttributeProto::TENSOR);
    *value.mutable_t() = std::move(tensor);
  }
  for (::onnx::NodeProto &node : *graph.mutable_node()) {
    node.clear_metadata_props(); // several layers share the function
    *proto.add_node() = std::move(node);
  }
}
