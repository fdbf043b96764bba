//===- WellFormed.cpp - what every model must satisfy
//------------------------------===//
//
// One walk over the graph with a stack of scopes:
//  - a name is defined once, before it is read; a graph sees the names of the
//  graphs around it;
//  - operator arity and attribute types follow the schema, where the standard
//  has one;
//  - tensors hold as much data as their shapes say; external data are described
//  by known keys.
// All errors are collected. Nothing here recurses deeper than `subgraphDepth`.
//
//===----------------------------------------------------------------------===//

#include "WellFormed.h"

#include "ExternalData.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include "onnx/defs/schema.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

uint64_t lowtide::countNodes(const GraphProto &graph, uint64_t stop) {
  uint64_t count = 0;
  for (const NodeProto &node : graph.node()) {
    ++count;
    for (const AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        count += countNodes(attribute.g(), stop);
      for (const GraphProto &inner : attribute.graphs())
        count += countNodes(inner, stop);
    }
    if (count > stop)
      break;
  }
  return count;
}

LogicalResult lowtide::checkTensor(const TensorProto &tensor, StringRef where, const ImportLimits &limits,
                                   Report &report) {
  std::string what = "tensor " + quoteName(tensor.name());
  auto fail = [&](FailureKind kind, const Twine &message) {
    report.errorAt(kind, where, what + message);
    return failure();
  };
  const ElementType *type = findElementType(tensor.data_type());
  if (!type)
    return fail(FailureKind::BadInput,
                " has element type " + Twine(tensor.data_type()) + ", which ONNX does not define");
  if (!type->bytes)
    return fail(FailureKind::Unsupported, Twine(" has element type ") + type->name + ", which is not supported");
  if (unsigned(tensor.dims_size()) > limits.rank)
    return fail(FailureKind::BadInput, " has rank " + Twine(tensor.dims_size()) + ", limit " + Twine(limits.rank));
  for (int64_t dim : tensor.dims())
    if (dim < 0)
      return fail(FailureKind::BadInput, " has a dimension of " + Twine(dim));
  if (tensor.has_segment())
    return fail(FailureKind::Unsupported, " is split into segments, which is not supported");
  if (std::string mismatch = findSizeMismatch(tensor); !mismatch.empty())
    return fail(FailureKind::BadInput, " has " + mismatch);
  if (tensor.data_location() == TensorProto::EXTERNAL)
    return success(parseExternalRange(tensor, report).has_value());
  if (tensor.external_data_size())
    return fail(FailureKind::BadInput, " names external data but holds its data itself");
  return success();
}

namespace {
class GraphChecker {
public:
  GraphChecker(const ModelProto &model, const ImportLimits &limits, Report &report) : limits(limits), report(report) {
    for (const auto &opset : model.opset_import())
      opsets[normalize(opset.domain())] = opset.version();
    for (const auto &function : model.functions())
      functions.insert(function.domain() + "\n" + function.name());
  }

  void checkGraph(const GraphProto &graph, unsigned depth);

private:
  using Scope = StringMap<const NodeProto *>;

  static StringRef normalize(StringRef domain) { return domain == "ai.onnx" ? "" : domain; }
  void error(StringRef where, const Twine &message, const Twine &note = "") {
    report.errorAt(FailureKind::BadInput, where, message, note);
  }
  bool isVisible(StringRef name) const {
    return any_of(scopes, [&](const Scope &scope) { return scope.contains(name); });
  }
  void checkName(StringRef name, StringRef what);
  void define(StringRef name, const NodeProto *by, StringRef what);
  void checkValueType(const ::onnx::ValueInfoProto &value, StringRef what);
  void checkNode(const NodeProto &node, const GraphProto &graph, unsigned depth);
  void checkOperands(const NodeProto &node, const GraphProto &graph);
  void checkAttributes(const NodeProto &node, const ::onnx::OpSchema *schema, unsigned depth);
  void checkAttributeValue(const NodeProto &node, const AttributeProto &attribute);
  void reportUndefined(const NodeProto &node, StringRef name, const GraphProto &graph);

  const ImportLimits &limits;
  Report &report;
  StringMap<int64_t> opsets;
  StringSet<> functions;
  SmallVector<Scope, 4> scopes;
};
} // namespace

void GraphChecker::checkName(StringRef name, StringRef what) {
  if (name.size() > limits.nameBytes)
    error(name.take_front(64),
          what + " has a name of " + Twine(name.size()) + " bytes, limit " + Twine(limits.nameBytes));
}

void GraphChecker::define(StringRef name, const NodeProto *by, StringRef what) {
  checkName(name, what);
  for (const Scope &scope : scopes) {
    auto previous = scope.find(name);
    if (previous == scope.end())
      continue;
    error(by ? nodeLabel(*by) : name, what + " " + quoteName(name) + " is defined twice",
          previous->second ? "the other definition is " + describeNode(*previous->second)
                           : std::string("the other definition is an input or an initializer"));
    return;
  }
  scopes.back()[name] = by;
}

void GraphChecker::checkValueType(const ::onnx::ValueInfoProto &value, StringRef what) {
  if (!value.has_type() || !value.type().has_tensor_type())
    return;
  const auto &tensor = value.type().tensor_type();
  const ElementType *type = findElementType(tensor.elem_type());
  if (!type)
    error(value.name(), what + " " + quoteName(value.name()) + " has element type " + Twine(tensor.elem_type()) +
                            ", which ONNX does not define");
  if (unsigned(tensor.shape().dim_size()) > limits.rank)
    error(value.name(), what + " " + quoteName(value.name()) + " has rank " + Twine(tensor.shape().dim_size()) +
                            ", limit " + Twine(limits.rank));
  SmallVector<int64_t> dims;
  for (const auto &dim : tensor.shape().dim()) {
    if (dim.has_dim_param())
      checkName(dim.dim_param(), "a symbolic dimension");
    if (!dim.has_dim_value())
      continue;
    dims.push_back(dim.dim_value());
    if (dim.dim_value() < 0)
      error(value.name(), what + " " + quoteName(value.name()) + " has a dimension of " + Twine(dim.dim_value()));
  }
  std::optional<int64_t> elements = checkedElements(dims);
  if (all_of(dims, [](int64_t dim) { return dim >= 0; }) &&
      (!elements || (type && type->bytes && !checkedBytes(*elements, tensor.elem_type()))))
    error(value.name(), what + " " + quoteName(value.name()) + " has a size that leaves 63 bits");
}

void GraphChecker::checkGraph(const GraphProto &graph, unsigned depth) {
  if (depth > limits.subgraphDepth)
    return error(graph.name(), "graphs are nested deeper than " + Twine(limits.subgraphDepth));
  scopes.emplace_back();
  if (graph.sparse_initializer_size())
    report.errorAt(FailureKind::Unsupported, graph.sparse_initializer(0).values().name(),
                   "sparse initializers are not supported", "store the tensor densely");
  StringSet<> initialized;
  for (const TensorProto &tensor : graph.initializer()) {
    if (tensor.name().empty())
      error(graph.name(), "an initializer has no name");
    initialized.insert(tensor.name());
    define(tensor.name(), nullptr, "initializer");
    (void)checkTensor(tensor, tensor.name(), limits, report);
  }
  for (const auto &input : graph.input()) {
    if (input.name().empty())
      error(graph.name(), "an input has no name");
    // Before IR 4 every initializer was listed as an input, too.
    if (initialized.contains(input.name()))
      initialized.erase(input.name());
    else
      define(input.name(), nullptr, "input");
    checkValueType(input, "input");
    if (depth == 0 && !input.type().has_tensor_type())
      report.errorAt(FailureKind::Unsupported, input.name(), "input " + quoteName(input.name()) + " is not a tensor");
  }
  for (const auto &value : graph.value_info())
    checkValueType(value, "value");
  for (const NodeProto &node : graph.node())
    checkNode(node, graph, depth);
  if (graph.output_size() == 0 && depth == 0)
    error(graph.name(), "the graph has no outputs");
  StringSet<> outputs;
  for (const auto &output : graph.output()) {
    checkValueType(output, "output");
    if (!isVisible(output.name()))
      error(output.name(), "output " + quoteName(output.name()) + " is computed by no node");
    if (!outputs.insert(output.name()).second && depth == 0)
      error(output.name(), "output " + quoteName(output.name()) + " is listed twice");
  }
  scopes.pop_back();
}

/// Operators of the standard domain that the standard has not, or has only later: onnxruntime keeps its norms there,
/// and tf2onnx leaves TensorFlow's Erfc, of which every GELU of Keras is made.
static bool isExtension(StringRef op) {
  return op == "LayerNormalization" || op == "SimplifiedLayerNormalization" || op == "Erfc";
}

void GraphChecker::checkNode(const NodeProto &node, const GraphProto &graph, unsigned depth) {
  checkName(node.name(), "a node");
  checkName(node.op_type(), "an operator");
  if (node.op_type().empty())
    return error(nodeLabel(node), "a node has no operator");
  checkOperands(node, graph);

  const ::onnx::OpSchema *schema = nullptr;
  auto opset = opsets.find(normalize(node.domain()));
  if (functions.contains(node.domain() + "\n" + node.op_type())) {
    // A call: the inliner matches its operands.
  } else if (opset == opsets.end()) {
    error(nodeLabel(node),
          describeNode(node) + " is of domain " + quoteName(node.domain()) + ", which the model does not import");
  } else {
    schema = ::onnx::OpSchemaRegistry::Schema(node.op_type(), opset->second, node.domain());
    if (!schema && normalize(node.domain()).empty() && !isExtension(node.op_type()))
      report.errorAt(FailureKind::Unsupported, nodeLabel(node),
                     describeNode(node) + " is no operator of opset " + Twine(opset->second));
  }
  if (schema) {
    auto checkCount = [&](int count, int least, int most, StringRef what) {
      if (count < least || count > most)
        error(nodeLabel(node), describeNode(node) + " has " + Twine(count) + " " + what + ", its operator takes " +
                                   Twine(least) +
                                   (most == least     ? Twine("")
                                    : most == INT_MAX ? Twine(" or more")
                                                      : " to " + Twine(most)));
    };
    checkCount(node.input_size(), schema->min_input(), schema->max_input(), "inputs");
    checkCount(node.output_size(), schema->min_output(), schema->max_output(), "outputs");
  }
  checkAttributes(node, schema, depth);
  for (const std::string &output : node.output())
    if (!output.empty())
      define(output, &node, "value");
}

void GraphChecker::checkOperands(const NodeProto &node, const GraphProto &graph) {
  for (const std::string &name : node.input())
    if (!name.empty() && !isVisible(name))
      reportUndefined(node, name, graph);
}

/// Tells a dangling name from one that is defined too late, and that from a
/// cycle.
void GraphChecker::reportUndefined(const NodeProto &node, StringRef name, const GraphProto &graph) {
  // The search below is linear in the graph; nothing reads its thousandth result.
  if (report.getNumErrors() > limits.errors)
    return error(nodeLabel(node), "");
  StringMap<const NodeProto *> producers;
  for (const NodeProto &other : graph.node())
    for (const std::string &output : other.output())
      producers[output] = &other;
  const NodeProto *producer = producers.lookup(name);
  if (!producer)
    return error(nodeLabel(node), describeNode(node) + " reads " + quoteName(name) + ", which nothing defines");
  SmallPtrSet<const NodeProto *, 16> reached;
  SmallVector<const NodeProto *> work{producer};
  while (!work.empty()) {
    const NodeProto *current = work.pop_back_val();
    if (!reached.insert(current).second)
      continue;
    if (current == &node)
      return error(nodeLabel(node), describeNode(node) + " reads " + quoteName(name) + ", which depends on it: a cycle",
                   quoteName(name) + " is computed by " + describeNode(*producer));
    for (const std::string &input : current->input())
      if (const NodeProto *next = producers.lookup(input))
        work.push_back(next);
  }
  error(nodeLabel(node),
        describeNode(node) + " reads " + quoteName(name) + ", which " + describeNode(*producer) +
            " computes only later",
        "nodes must be listed in topological order");
}

/// Whether the operator's newest version has the attribute, and this value by default: versions before did the same.
/// ONNX's converter, through which PyTorch's current exporter writes opsets below 18, leaves such attributes.
static bool isDefaultOfNewest(const NodeProto &node, const AttributeProto &attribute) {
  const ::onnx::OpSchema *newest = ::onnx::OpSchemaRegistry::Schema(node.op_type(), node.domain());
  if (!newest)
    return false;
  auto known = newest->attributes().find(attribute.name());
  if (known == newest->attributes().end())
    return false;
  AttributeProto plain = attribute;
  plain.clear_doc_string();
  return plain.SerializeAsString() == known->second.default_value.SerializeAsString();
}

void GraphChecker::checkAttributes(const NodeProto &node, const ::onnx::OpSchema *schema, unsigned depth) {
  StringSet<> names;
  for (const AttributeProto &attribute : node.attribute()) {
    auto complain = [&](const Twine &message) {
      error(nodeLabel(node), describeNode(node) + ": attribute " + quoteName(attribute.name()) + message);
    };
    if (attribute.name().empty() || attribute.name().size() > limits.nameBytes)
      complain(" has no name or too long a one");
    if (!names.insert(attribute.name()).second)
      complain(" occurs twice");
    if (!attribute.ref_attr_name().empty())
      complain(" refers to a function's attribute outside of any function");
    if (schema) {
      auto known = schema->attributes().find(attribute.name());
      if (known == schema->attributes().end()) {
        if (!isDefaultOfNewest(node, attribute))
          complain(" is not one of its operator's");
      } else if (known->second.type != attribute.type())
        complain(" has type " + AttributeProto::AttributeType_Name(attribute.type()) + ", its operator expects " +
                 AttributeProto::AttributeType_Name(known->second.type));
    }
    checkAttributeValue(node, attribute);
    if (attribute.has_g())
      checkGraph(attribute.g(), depth + 1);
    for (const GraphProto &inner : attribute.graphs())
      checkGraph(inner, depth + 1);
  }
  if (schema)
    for (const auto &[name, known] : schema->attributes())
      if (known.required && !names.contains(name))
        error(nodeLabel(node), describeNode(node) + " lacks attribute " + quoteName(name));
}

void GraphChecker::checkAttributeValue(const NodeProto &node, const AttributeProto &attribute) {
  bool present = true;
  switch (attribute.type()) {
  case AttributeProto::TENSOR:
    present = attribute.has_t();
    if (present)
      (void)checkTensor(attribute.t(), nodeLabel(node), limits, report);
    break;
  case AttributeProto::TENSORS:
    for (const TensorProto &tensor : attribute.tensors())
      (void)checkTensor(tensor, nodeLabel(node), limits, report);
    break;
  case AttributeProto::GRAPH:
    present = attribute.has_g();
    break;
  case AttributeProto::SPARSE_TENSOR:
  case AttributeProto::SPARSE_TENSORS:
    report.errorAt(FailureKind::Unsupported, nodeLabel(node),
                   describeNode(node) + ": attribute " + quoteName(attribute.name()) +
                       " is a sparse tensor, which is not supported");
    break;
  default:
    break;
  }
  if (!present || attribute.type() == AttributeProto::UNDEFINED)
    error(nodeLabel(node), describeNode(node) + ": attribute " + quoteName(attribute.name()) + " has no value");
}

/// Whether nodes read parameters or buffers that the program's signature lists and the file does not hold, as PyTorch's
/// current exporter writes it with export_params=False: without values, and without shapes.
static LogicalResult checkParameters(const GraphProto &graph, Report &report) {
  StringSet<> read, known;
  for (const NodeProto &node : graph.node()) {
    read.insert(node.input().begin(), node.input().end());
    known.insert(node.output().begin(), node.output().end());
  }
  for (const TensorProto &tensor : graph.initializer())
    known.insert(tensor.name());
  for (const auto &input : graph.input())
    known.insert(input.name());
  SmallVector<StringRef> gone;
  const Signature signature(graph);
  for (const SignatureEntry &entry : signature.getEntries())
    if (read.contains(entry.target) && !known.contains(entry.target))
      gone.push_back(entry.target);
  if (gone.empty())
    return success();
  report.errorAt(
      FailureKind::BadInput, gone.front(),
      "the file has neither values nor shapes of " + Twine(gone.size()) +
          (gone.size() == 1 ? " parameter or buffer of the program" : " parameters and buffers of the program"),
      "export with export_params=True (weights can be drawn anew all the same: --init=random:1)");
  return failure();
}

LogicalResult lowtide::checkWellFormed(const ModelProto &model, const ImportLimits &limits, Report &report) {
  unsigned before = report.getNumErrors();
  int64_t newestIR = ::onnx::Version::IR_VERSION;
  if (model.ir_version() < 1)
    report.error(FailureKind::BadInput, "the file states no IR version: it is no ONNX model, or an empty one");
  else if (model.ir_version() > newestIR)
    report.error(FailureKind::Unsupported,
                 "IR version " + Twine(model.ir_version()) + " is newer than the newest that is supported, " +
                     Twine(newestIR),
                 "export the model with an older opset_version, or convert it "
                 "with onnx.version_converter");
  if (!model.has_graph())
    report.error(FailureKind::BadInput, "the model has no graph");
  StringSet<> domains;
  bool standard = false;
  for (const auto &opset : model.opset_import()) {
    StringRef domain = opset.domain() == "ai.onnx" ? StringRef("") : StringRef(opset.domain());
    if (!domains.insert(domain).second)
      report.error(FailureKind::BadInput, "operator set " + quoteName(domain) + " is imported in two versions",
                   "convert the models that were joined to one version first: onnx.version_converter");
    if (opset.version() < 1 || opset.version() > INT_MAX)
      report.error(FailureKind::BadInput,
                   "operator set " + quoteName(domain) + " is imported in version " + Twine(opset.version()));
    if (!domain.empty())
      continue;
    standard = true;
    const auto &known = ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    auto range = known.find("");
    if (range != known.end() && opset.version() > range->second.second)
      report.error(FailureKind::Unsupported,
                   "opset " + Twine(opset.version()) + " is newer than the newest that is supported, " +
                       Twine(range->second.second),
                   "export with opset_version=" + Twine(range->second.second) + " or older");
  }
  bool needsStandard = model.opset_import_size() == 0 || llvm::any_of(model.graph().node(), [](const auto &node) {
                         return node.domain().empty() || node.domain() == "ai.onnx";
                       });
  if (!standard && needsStandard && model.has_graph() && model.ir_version() >= 3)
    report.error(FailureKind::BadInput, "the model does not say which opset it uses");
  if (report.getNumErrors() != before)
    return failure();

  if (countNodes(model.graph(), limits.nodes) > limits.nodes) {
    report.error(FailureKind::BadInput, "the model has more than " + Twine(limits.nodes) + " nodes");
    return failure();
  }
  if (failed(checkParameters(model.graph(), report)))
    return failure();
  GraphChecker(model, limits, report).checkGraph(model.graph(), 0);
  return success(report.getNumErrors() == before);
}
