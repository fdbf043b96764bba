//===- GraphImporter.cpp - builds the IR of one graph
//------------------------------------===//
//
// Inputs and large initializers become arguments, small initializers and
// `Constant` nodes become `onnx.constant`, every other node becomes
// `onnx.node`. Where an exporter merged equal tensors, each use reads the
// argument of its own parameter.
//
//===----------------------------------------------------------------------===//

#include "GraphImporter.h"

#include "Attributes.h"
#include "FixedInputs.h"
#include "WellFormed.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "lowtide/Dialect/ONNX/ONNX.h"
#include "lowtide/Recover/Recover.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

GraphImporter::GraphImporter(OnnxFile &file, ArrayRef<InitializerInfo> infos, const DimBinding &dims,
                             const ImportOptions &options)
    : file(file), infos(infos), dims(dims), options(options), context(&file.getContext()), builder(context) {
  for (auto [i, info] : llvm::enumerate(infos))
    for (const InitializerUse &use : info.uses)
      infoOfUse[{use.node, use.operand}] = i;
}

LogicalResult GraphImporter::unsupported(StringRef where, const Twine &message) {
  file.getReport().errorAt(FailureKind::Unsupported, where, message);
  return failure();
}

Location GraphImporter::locate(StringRef name) { return NameLoc::get(StringAttr::get(context, name)); }

/// The module's path around the node's own name, where the exporter says from
/// which module the node came.
Location GraphImporter::locate(const NodeProto &node) {
  Location own = locate(nodeLabel(node));
  std::optional<std::string> module = findModulePath(node);
  if (!module || module->empty())
    return own;
  return NameLoc::get(StringAttr::get(context, *module), own);
}

SmallVector<StringRef> GraphImporter::noteTypes(const GraphProto &graph) {
  SmallVector<StringRef> noted;
  auto note = [&](const auto &values) {
    for (const ::onnx::ValueInfoProto &value : values)
      if (RankedTensorType type = dims.getStatedType(value))
        if (Type &stated = statedTypes[value.name()]; !stated) {
          stated = type;
          noted.push_back(value.name());
        }
  };
  note(graph.value_info());
  note(graph.output());
  return noted;
}

Type GraphImporter::typeOf(StringRef name) {
  if (Type type = statedTypes.lookup(name))
    return type;
  return onnx::ValueType::get(context);
}

Value GraphImporter::lookup(StringRef name) {
  for (Scope &scope : llvm::reverse(scopes))
    if (Value value = scope.lookup(name))
      return value;
  return {};
}

Value GraphImporter::resolve(const NodeProto &node, int index) {
  if (node.input(index).empty())
    return none;
  auto info = infoOfUse.find({&node, index});
  if (info != infoOfUse.end())
    return infoValues[info->second];
  return lookup(node.input(index));
}

const InitializerInfo *GraphImporter::findTable(const NodeProto &node) {
  if (auto info = infoOfUse.find({&node, 0}); info != infoOfUse.end())
    return &infos[info->second];
  Value value = node.input_size() ? lookup(node.input(0)) : Value();
  // Files in 16 bits convert the table first.
  if (auto cast = value ? value.getDefiningOp<onnx::NodeOp>() : onnx::NodeOp(); cast && cast.getOpType() == "Cast")
    if (auto at = llvm::find(infoValues, cast->getOperand(0)); at != infoValues.end())
      return &infos[at - infoValues.begin()];
  return nullptr;
}

FailureOr<OwningOpRef<ModuleOp>> GraphImporter::run() {
  const GraphProto &graph = file.getModel().graph();
  OwningOpRef<ModuleOp> module = ModuleOp::create(locate(graph.name().empty() ? "model" : graph.name()));
  noteTypes(graph);
  scopes.emplace_back();
  func::FuncOp function = createFunction(*module);
  if (!function)
    return failure();
  none = onnx::NoneOp::create(builder, function.getLoc(), builder.getNoneType());
  if (failed(importFixedInputs()) || failed(importSmallInitializers()) || failed(importNodes(graph)) ||
      failed(finishFunction(function)))
    return failure();
  if (none.use_empty())
    none.getDefiningOp()->erase();
  importImages(function);
  return module;
}

/// Which reads of a shared initializer are this tensor's, so that it can get one of its own.
void GraphImporter::noteUses(const InitializerInfo &info, SmallVectorImpl<NamedAttribute> &attrs) {
  SmallVector<Attribute> nodes;
  SmallVector<int64_t> operands;
  for (const InitializerUse &use : info.uses) {
    auto named = llvm::find_if(use.node->output(), [](const std::string &name) { return !name.empty(); });
    if (named == use.node->output().end())
      continue;
    nodes.push_back(builder.getStringAttr(file.nameInFile(*named)));
    operands.push_back(use.operand);
  }
  attrs.push_back(builder.getNamedAttr("onnx.use_nodes", builder.getArrayAttr(nodes)));
  attrs.push_back(builder.getNamedAttr("onnx.use_operands", builder.getDenseI64ArrayAttr(operands)));
}

func::FuncOp GraphImporter::createFunction(ModuleOp module) {
  const ::onnx::ModelProto &model = file.getModel();
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Location> locations;
  SmallVector<StringRef> inputNames;
  auto add = [&](RankedTensorType type, StringRef name, ArrayRef<NamedAttribute> attrs) {
    types.push_back(type);
    attributes.push_back(builder.getDictionaryAttr(attrs));
    locations.push_back(locate(name));
  };
  for (const auto &input : model.graph().input()) {
    if (file.findInitializer(input.name()))
      continue;
    Type element = convertElementType(input.type().tensor_type().elem_type(), context);
    if (!element) {
      (void)unsupported(input.name(), "input " + quoteName(input.name()) + " has element type " +
                                          elementTypeName(input.type().tensor_type().elem_type()) +
                                          ", which is not supported");
      return {};
    }
    if (options.fixed.count(input.name()))
      continue;
    SmallVector<NamedAttribute> attrs{builder.getNamedAttr("onnx.input", builder.getStringAttr(input.name()))};
    if (std::optional<int64_t> batchDim = dims.getBatchDim(input))
      attrs.push_back(builder.getNamedAttr("onnx.batch_dim", builder.getI64IntegerAttr(*batchDim)));
    add(RankedTensorType::get(*dims.getInputShape(input), element), input.name(), attrs);
    inputNames.push_back(input.name());
  }
  llvm::StringMap<unsigned> sharers;
  for (const InitializerInfo &info : infos)
    ++sharers[info.tensor];
  for (const InitializerInfo &info : infos) {
    if (info.inIR || info.viewOf)
      continue;
    SmallVector<NamedAttribute> attrs;
    auto attr = [&](StringRef name, Attribute value) { attrs.push_back(builder.getNamedAttr(name, value)); };
    attr("onnx.initializer", builder.getStringAttr(file.nameInFile(info.tensor)));
    attr("onnx.role", builder.getStringAttr(stringifyRole(info.role)));
    attr("onnx.parameter", builder.getStringAttr(info.name));
    if (!info.tied.empty()) {
      SmallVector<StringRef> names(info.tied.begin(), info.tied.end());
      attr("onnx.tied", builder.getStrArrayAttr(names));
    }
    if (!info.transposed.empty())
      attr("onnx.transposed", builder.getDenseI64ArrayAttr(info.transposed));
    if (info.sourceShape)
      attr("onnx.source_shape", builder.getDenseI64ArrayAttr(*info.sourceShape));
    if (info.sourceRows)
      attr("onnx.source_rows", builder.getDenseI64ArrayAttr({info.sourceRows->first, info.sourceRows->second}));
    if (sharers[info.tensor] > 1 || (info.unfolded && info.unfolded->tensor.empty()))
      noteUses(info, attrs);
    add(RankedTensorType::get(info.dims, convertElementType(info.dataType, context)), info.name, attrs);
  }

  builder.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(builder, module.getLoc(), "model", builder.getFunctionType(types, {}));
  function.setAllArgAttrs(attributes);
  function->setAttr("onnx.opset", builder.getI64IntegerAttr(file.getOpset()));
  function->setAttr("onnx.ir_version", builder.getI64IntegerAttr(model.ir_version()));
  SmallVector<NamedAttribute> opsets;
  for (const auto &opset : model.opset_import())
    if (!opset.domain().empty())
      opsets.push_back(builder.getNamedAttr(opset.domain(), builder.getI64IntegerAttr(opset.version())));
  if (!opsets.empty())
    function->setAttr("onnx.opsets", builder.getDictionaryAttr(opsets));
  std::string producer =
      model.producer_name() + (model.producer_version().empty() ? "" : " " + model.producer_version());
  function->setAttr("onnx.producer", builder.getStringAttr(producer));
  function->setAttr("onnx.graph", builder.getStringAttr(model.graph().name()));

  Block *entry = builder.createBlock(&function.getBody(), {}, types, locations);
  size_t next = 0;
  for (StringRef name : inputNames)
    define(name, entry->getArgument(next++));
  for (const InitializerInfo &info : infos)
    infoValues.push_back(info.inIR || info.viewOf ? Value() : Value(entry->getArgument(next++)));
  // Graph outputs and local reads by name see the first of several infos.
  for (auto [i, info] : llvm::enumerate(infos))
    if (infoValues[i] && !lookup(info.tensor))
      define(info.tensor, infoValues[i]);
  return function;
}

LogicalResult GraphImporter::importFixedInputs() {
  for (const auto &input : file.getModel().graph().input()) {
    auto fixed = options.fixed.find(input.name());
    if (fixed == options.fixed.end() || file.findInitializer(input.name()))
      continue;
    Type element = convertElementType(input.type().tensor_type().elem_type(), context);
    FailureOr<DenseElementsAttr> value =
        buildFixedInput(file, input.name(), fixed->second, RankedTensorType::get(*dims.getInputShape(input), element));
    if (failed(value))
      return failure();
    define(input.name(), onnx::ConstantOp::create(builder, locate(input.name()), *value));
  }
  return success();
}

LogicalResult GraphImporter::importSmallInitializers() {
  for (auto [i, info] : llvm::enumerate(infos)) {
    if (info.viewOf)
      importView(i);
    if (!info.inIR)
      continue;
    std::optional<std::string> bytes = file.tryReadInitializer(info.tensor);
    if (!bytes)
      return unsupported(info.tensor, "initializer " + quoteName(info.tensor) + " cannot be read");
    DenseElementsAttr value =
        buildElements(info.dims, info.dataType, ArrayRef<char>(bytes->data(), bytes->size()), context);
    infoValues[i] = onnx::ConstantOp::create(builder, locate(info.tensor), value);
    if (!lookup(info.tensor))
      define(info.tensor, infoValues[i]);
  }
  return success();
}

/// The transpose or the reshape that the exporter evaluated becomes a node again.
void GraphImporter::importView(size_t index) {
  const InitializerInfo &info = infos[index];
  Type type = RankedTensorType::get(info.dims, convertElementType(info.dataType, context));
  SmallVector<Value> operands{infoValues[*info.viewOf]};
  SmallVector<NamedAttribute> attributes;
  const bool isTransposed = !info.transposed.empty();
  if (isTransposed) {
    attributes.push_back(builder.getNamedAttr("perm", builder.getDenseI64ArrayAttr(info.transposed)));
  } else {
    auto shape = DenseElementsAttr::get(RankedTensorType::get(int64_t(info.dims.size()), builder.getI64Type()),
                                        ArrayRef<int64_t>(info.dims));
    operands.push_back(onnx::ConstantOp::create(builder, locate(info.tensor), shape));
  }
  auto node = onnx::NodeOp::create(builder, locate(info.tensor), type, isTransposed ? "Transpose" : "Reshape", "",
                                   file.getOpset(), builder.getDictionaryAttr(attributes),
                                   builder.getStrArrayAttr({info.tensor}), ArrayAttr(), operands, 0);
  infoValues[index] = node.getResult(0);
  if (!lookup(info.tensor))
    define(info.tensor, infoValues[index]);
}

LogicalResult GraphImporter::importNodes(const GraphProto &graph) {
  bool good = true;
  for (const NodeProto &node : graph.node())
    good &= succeeded(node.op_type() == "Constant" && node.domain().empty() ? importConstant(node) : importNode(node));
  return success(good);
}

/// The tensor that a `Constant` node stands for, whichever attribute holds it.
static DenseElementsAttr convertConstant(const AttributeProto &attribute, Builder &b, std::string &fault) {
  auto i64 = b.getI64Type();
  auto f32 = b.getF32Type();
  StringRef name = attribute.name();
  if (name == "value")
    return convertTensor(attribute.t(), b.getContext(), fault);
  if (name == "value_int")
    return DenseElementsAttr::get(RankedTensorType::get({}, i64), attribute.i());
  if (name == "value_float")
    return DenseElementsAttr::get(RankedTensorType::get({}, f32), attribute.f());
  if (name == "value_ints")
    return DenseElementsAttr::get(RankedTensorType::get({attribute.ints_size()}, i64),
                                  ArrayRef<int64_t>(attribute.ints().data(), attribute.ints_size()));
  if (name == "value_floats")
    return DenseElementsAttr::get(RankedTensorType::get({attribute.floats_size()}, f32),
                                  ArrayRef<float>(attribute.floats().data(), attribute.floats_size()));
  fault = ("has attribute '" + name + "', which is not supported").str();
  return {};
}

LogicalResult GraphImporter::importConstant(const NodeProto &node) {
  if (node.attribute_size() != 1 || node.output_size() != 1 || node.output(0).empty()) {
    file.getReport().errorAt(FailureKind::BadInput, nodeLabel(node),
                             describeNode(node) + " must have one attribute and one output");
    return failure();
  }
  std::string fault;
  DenseElementsAttr value = convertConstant(node.attribute(0), builder, fault);
  if (!value)
    return unsupported(nodeLabel(node), describeNode(node) + " " + fault);
  define(node.output(0), onnx::ConstantOp::create(builder, locate(node), value));
  return success();
}

LogicalResult GraphImporter::importNode(const NodeProto &node) {
  SmallVector<Value> operands;
  for (int i = 0, e = node.input_size(); i != e; ++i)
    operands.push_back(resolve(node, i));
  // Trailing absent operands say nothing.
  while (!operands.empty() && operands.back() == none)
    operands.pop_back();
  if (llvm::is_contained(operands, Value())) // an earlier node failed
    return failure();

  SmallVector<NamedAttribute> attributes;
  SmallVector<const GraphProto *> graphs;
  SmallVector<StringRef> graphNames;
  for (const AttributeProto &attribute : node.attribute()) {
    if (attribute.type() == AttributeProto::GRAPH) {
      graphs.push_back(&attribute.g());
      graphNames.push_back(attribute.name());
      continue;
    }
    std::string fault;
    Attribute value = convertAttribute(attribute, builder, fault);
    if (!value)
      return unsupported(nodeLabel(node),
                         describeNode(node) + ": attribute " + quoteName(attribute.name()) + " " + fault);
    attributes.push_back(builder.getNamedAttr(attribute.name(), value));
  }
  auto note = [&](StringRef name, int64_t value) {
    attributes.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(value)));
  };
  const NodeNotes notes = findNodeNotes(file, node, findTable(node));
  if (notes.paddingRow)
    note(paddingRowAttrName, *notes.paddingRow);
  if (notes.isDetached)
    note(detachedAttrName, 1);
  if (notes.trains)
    note(trainsAttrName, *notes.trains);
  if (notes.ties != Ties::AsOperator)
    note(tiesAttrName, int64_t(notes.ties));
  SmallVector<Type> types;
  SmallVector<StringRef> outputs(node.output().begin(), node.output().end());
  for (StringRef output : outputs)
    types.push_back(typeOf(output));

  int64_t version = 1;
  StringRef domain = node.domain() == "ai.onnx" ? StringRef("") : StringRef(node.domain());
  for (const auto &opset : file.getModel().opset_import())
    if (opset.domain() == domain || (domain.empty() && opset.domain() == "ai.onnx"))
      version = opset.version();
  auto op =
      onnx::NodeOp::create(builder, locate(node), types, node.op_type(), domain, version,
                           builder.getDictionaryAttr(attributes), builder.getStrArrayAttr(outputs),
                           graphs.empty() ? ArrayAttr() : builder.getStrArrayAttr(graphNames), operands, graphs.size());
  for (auto [graph, region] : llvm::zip_equal(graphs, op.getBodies()))
    if (failed(importSubgraph(*graph, region)))
      return failure();
  for (auto [name, value] : llvm::zip_equal(outputs, op.getResults()))
    if (!name.empty())
      define(name, value);
  return success();
}

LogicalResult GraphImporter::importSubgraph(const GraphProto &graph, Region &region) {
  OpBuilder::InsertionGuard guard(builder);
  // What it defines may have the name of another value, outside or in another subgraph: the type of one says nothing of
  // the other.
  SmallVector<std::pair<StringRef, Type>> hidden;
  auto hide = [&](StringRef name) {
    if (auto stated = statedTypes.find(name); stated != statedTypes.end()) {
      hidden.push_back({stated->getKey(), stated->second});
      stated->second = {};
    }
  };
  for (const auto &input : graph.input())
    hide(input.name());
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      hide(output);
  SmallVector<StringRef> noted = noteTypes(graph);
  scopes.emplace_back();
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (const auto &input : graph.input()) {
    RankedTensorType stated = dims.getStatedType(input);
    types.push_back(stated ? Type(stated) : onnx::ValueType::get(context));
    locations.push_back(locate(input.name()));
  }
  Block *block = builder.createBlock(&region, {}, types, locations);
  for (auto [input, argument] : llvm::zip_equal(graph.input(), block->getArguments()))
    define(input.name(), argument);
  if (failed(importLocalInitializers(graph)) || failed(importNodes(graph)))
    return failure();
  SmallVector<Value> values;
  for (const auto &output : graph.output())
    values.push_back(lookup(output.name()));
  onnx::YieldOp::create(builder, locate(graph.name()), values);
  scopes.pop_back();
  for (StringRef name : noted)
    statedTypes[name] = {};
  for (auto [name, type] : hidden)
    statedTypes[name] = type;
  return success();
}

/// Initializers of a subgraph are part of its text: they are never trained.
LogicalResult GraphImporter::importLocalInitializers(const GraphProto &graph) {
  for (const TensorProto &tensor : graph.initializer()) {
    std::string fault;
    int64_t elements = checkedElements({tensor.dims().data(), size_t(tensor.dims_size())}).value_or(INT64_MAX);
    DenseElementsAttr value;
    if (elements > file.getLimits().constantIntegers)
      fault = "has " + std::to_string(elements) + " elements inside a subgraph; the limit there is " +
              std::to_string(file.getLimits().constantIntegers);
    else
      value = convertTensor(tensor, context, fault);
    if (!value)
      return unsupported(tensor.name(), "initializer " + quoteName(tensor.name()) + " " + fault);
    define(tensor.name(), onnx::ConstantOp::create(builder, locate(tensor.name()), value));
  }
  return success();
}

/// Values of the graph that the program assigns to buffers which the model takes as arguments. Counters of batch norms
/// are kept with checkpoints (StateDictionary.cpp).
SmallVector<std::pair<Value, StringRef>> GraphImporter::findAssigned() {
  SmallVector<std::pair<Value, StringRef>> assigned;
  Signature signature(file.getModel().graph());
  for (const SignatureEntry &entry : signature.getEntries()) {
    if (entry.assigned.empty() || leafOf(entry.target) == "num_batches_tracked")
      continue;
    auto info = llvm::find_if(infos, [&](const InitializerInfo &other) {
      return other.name == entry.target && other.role == InitializerRole::State && !other.viewOf;
    });
    Value value = info == infos.end() ? Value() : lookup(entry.assigned);
    if (value && infoValues[size_t(info - infos.begin())] && value != infoValues[size_t(info - infos.begin())])
      assigned.push_back({value, info->name});
  }
  return assigned;
}

LogicalResult GraphImporter::finishFunction(func::FuncOp function) {
  SmallVector<Value> results;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  for (const auto &output : file.getModel().graph().output()) {
    Value value = lookup(output.name());
    if (!value)
      return failure();
    results.push_back(value);
    types.push_back(value.getType());
    attributes.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr("onnx.output", builder.getStringAttr(output.name()))));
  }
  for (auto [value, buffer] : findAssigned()) {
    results.push_back(value);
    types.push_back(value.getType());
    attributes.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr(assignsAttrName, builder.getStringAttr(buffer))));
  }
  func::ReturnOp::create(builder, function.getLoc(), results);
  function.setType(builder.getFunctionType(function.getArgumentTypes(), types));
  function.setAllResultAttrs(attributes);
  return success();
}
