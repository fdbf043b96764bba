//===- FunctionBody.cpp - what the standard says an operator is -----------------===//
//
// A model of one node is written, ONNX's inliner puts the function in the node's
// place, and the importer reads the result as it reads every model.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Import/FunctionBody.h"

#include "OnnxLibrary.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "lowtide/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Inverse of `convertAttribute`, for what a function body may depend on.
static bool writeAttribute(NamedAttribute named, AttributeProto &to) {
  to.set_name(named.getName().str());
  return llvm::TypeSwitch<Attribute, bool>(named.getValue())
      .Case([&](IntegerAttr value) {
        to.set_type(AttributeProto::INT);
        to.set_i(value.getValue().getSExtValue());
        return true;
      })
      .Case([&](FloatAttr value) {
        to.set_type(AttributeProto::FLOAT);
        to.set_f(static_cast<float>(value.getValueAsDouble()));
        return true;
      })
      .Case([&](StringAttr value) {
        to.set_type(AttributeProto::STRING);
        to.set_s(value.str());
        return true;
      })
      .Case([&](DenseI64ArrayAttr value) {
        to.set_type(AttributeProto::INTS);
        for (int64_t element : value.asArrayRef())
          to.add_ints(element);
        return true;
      })
      .Case([&](DenseF32ArrayAttr value) {
        to.set_type(AttributeProto::FLOATS);
        for (float element : value.asArrayRef())
          to.add_floats(element);
        return true;
      })
      .Case([&](ArrayAttr value) {
        to.set_type(AttributeProto::STRINGS);
        for (Attribute element : value)
          if (auto text = dyn_cast<StringAttr>(element))
            to.add_strings(text.str());
        return static_cast<size_t>(to.strings_size()) == value.size();
      })
      .Default(false);
}

static int32_t onnxType(Type element) {
  for (int32_t type = 1; type <= TensorProto::BFLOAT16; ++type)
    if (convertElementType(type, element.getContext()) == element)
      return type;
  return TensorProto::UNDEFINED;
}

/// The versions of operator sets that the node's model imports.
static void writeOpsets(lowtide::onnx::NodeOp node, ModelProto &model) {
  auto import = [&](StringRef domain, int64_t version) {
    auto &opset = *model.add_opset_import();
    opset.set_domain(domain.str());
    opset.set_version(version);
  };
  auto function = node->getParentOfType<func::FuncOp>();
  auto standard = function->getAttrOfType<IntegerAttr>("onnx.opset");
  import("", node.getDomain().empty() || !standard ? node.getVersion() : standard.getInt());
  if (!node.getDomain().empty())
    import(node.getDomain(), node.getVersion());
}

bool lowtide::hasFunctionBody(StringRef domain, StringRef op, int64_t version) {
  return hasSchemaFunction(domain.str(), op.str(), static_cast<int>(version));
}

OwningOpRef<ModuleOp> lowtide::buildFunctionBody(lowtide::onnx::NodeOp node, ArrayRef<Type> operandTypes,
                                                 ArrayRef<unsigned> wanted) {
  if (!node.getBodies().empty() || wanted.empty())
    return {};
  ModelProto model;
  model.set_ir_version(10);
  writeOpsets(node, model);
  auto &graph = *model.mutable_graph();
  graph.set_name(node.getOpType().str());
  NodeProto &proto = *graph.add_node();
  proto.set_op_type(node.getOpType().str());
  proto.set_domain(node.getDomain().str());
  proto.set_name(node.getNodeLabel().str());
  for (auto [i, type] : llvm::enumerate(operandTypes)) {
    auto tensor = dyn_cast_or_null<RankedTensorType>(type);
    if (!tensor) {
      proto.add_input("");
      continue;
    }
    auto &input = *graph.add_input();
    input.set_name("operand" + std::to_string(i));
    auto &stated = *input.mutable_type()->mutable_tensor_type();
    stated.set_elem_type(onnxType(tensor.getElementType()));
    for (int64_t extent : tensor.getShape())
      stated.mutable_shape()->add_dim()->set_dim_value(extent);
    proto.add_input(input.name());
  }
  for (unsigned i = 0; i < node.getNumResults(); ++i) {
    bool isWanted = llvm::is_contained(wanted, i);
    proto.add_output(isWanted ? "result" + std::to_string(i) : "");
    if (isWanted)
      graph.add_output()->set_name(proto.output(i));
  }
  for (NamedAttribute attribute : node.getAttrs())
    if (!writeAttribute(attribute, *proto.add_attribute()))
      return {};
  if (!inlineSchemaFunction(model, proto.domain(), proto.op_type()))
    return {};

  OnnxFile file(*node.getContext(), node.getOpType());
  file.getReport().mute();
  std::string bytes = model.SerializeAsString();
  if (failed(file.loadBytes(ArrayRef<char>(bytes.data(), bytes.size()))))
    return {};
  auto module = importOnnx(file, ImportOptions());
  if (failed(module))
    return {};
  (*module)->walk([&](Operation *op) { op->setLoc(node.getLoc()); });
  return std::move(*module);
}
