//===- Functions.cpp - bounds on local functions
//-----------------------------------===//
//
// Functions are inlined by ONNX's library, which trusts them. A call graph with
// a cycle would not end, and a chain of n functions that each call the next one
// twice expands to 2^n nodes: both are found here, in time linear in the file.
//
//===----------------------------------------------------------------------===//

#include "WellFormed.h"

#include "lowtide/OnnxModel/NodeNames.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::FunctionProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

namespace {
class FunctionChecker {
public:
  FunctionChecker(const ModelProto &model, Report &report) : report(report) {
    for (const FunctionProto &function : model.functions())
      if (!functions.try_emplace(key(function.domain(), function.name(), function.overload()), &function).second)
        report.errorAt(FailureKind::BadInput, function.name(),
                       "function " + quoteName(function.name()) + " is defined twice");
  }

  /// Nodes that the nodes of `list` expand to; saturates.
  template <typename Nodes> uint64_t expansion(const Nodes &list, unsigned depth) {
    uint64_t total = 0;
    for (const NodeProto &node : list) {
      total = SaturatingAdd(total, uint64_t(1));
      auto callee = functions.find(key(node.domain(), node.op_type(), node.overload()));
      if (callee != functions.end()) {
        checkCall(node, *callee->second);
        total = SaturatingAdd(total, expansionOf(*callee->second, depth));
      }
      for (const auto &attribute : node.attribute()) {
        if (attribute.has_g())
          total = SaturatingAdd(total, inGraph(attribute.g(), depth));
        for (const auto &inner : attribute.graphs())
          total = SaturatingAdd(total, inGraph(inner, depth));
      }
    }
    return total;
  }

  /// Also of functions that nothing calls.
  void checkAll() {
    for (const auto &entry : functions)
      (void)expansionOf(*entry.second, 0);
  }

private:
  void checkCall(const NodeProto &node, const FunctionProto &callee) {
    if (node.input_size() > callee.input_size() || node.output_size() > callee.output_size())
      report.errorAt(FailureKind::BadInput, nodeLabel(node),
                     describeNode(node) + " has " + Twine(node.input_size()) + " inputs and " +
                         Twine(node.output_size()) + " outputs, its function has " + Twine(callee.input_size()) +
                         " and " + Twine(callee.output_size()));
  }

  static std::string key(StringRef domain, StringRef name, StringRef overload) {
    return (domain + "\n" + name + "\n" + overload).str();
  }

  uint64_t inGraph(const ::onnx::GraphProto &graph, unsigned depth) {
    if (depth > maxDepth) {
      tooDeep(graph.name());
      return 0;
    }
    return expansion(graph.node(), depth + 1);
  }

  uint64_t expansionOf(const FunctionProto &function, unsigned depth) {
    auto known = sizes.find(&function);
    if (known != sizes.end())
      return known->second;
    if (depth > maxDepth) {
      tooDeep(function.name());
      return 0;
    }
    if (!active.insert(&function).second) {
      if (reportedCycles.insert(&function).second)
        report.errorAt(FailureKind::BadInput, function.name(),
                       "function " + quoteName(function.name()) + " calls itself, directly or through others");
      return 0;
    }
    uint64_t size = expansion(function.node(), depth + 1);
    active.erase(&function);
    sizes[&function] = size;
    return size;
  }

  void tooDeep(StringRef name) {
    if (!reportedDepth)
      report.errorAt(FailureKind::BadInput, name, "functions and graphs are nested deeper than " + Twine(maxDepth));
    reportedDepth = true;
  }

  /// Chains of calls are legitimate and longer than nests of graphs; each level
  /// costs stack.
  static constexpr unsigned maxDepth = 256;
  Report &report;
  StringMap<const FunctionProto *> functions;
  DenseMap<const FunctionProto *, uint64_t> sizes;
  SmallPtrSet<const FunctionProto *, 8> active, reportedCycles;
  bool reportedDepth = false;
};
} // namespace

LogicalResult lowtide::checkFunctions(const ModelProto &model, const ImportLimits &limits, Report &report) {
  if (model.functions_size() == 0)
    return success();
  unsigned before = report.getNumErrors();
  if (uint64_t(model.functions_size()) > limits.functions) {
    report.error(FailureKind::BadInput,
                 "the model has " + Twine(model.functions_size()) + " functions, limit " + Twine(limits.functions));
    return failure();
  }
  FunctionChecker checker(model, report);
  uint64_t written = countNodes(model.graph(), limits.nodes);
  for (const FunctionProto &function : model.functions())
    written = SaturatingAdd(written, uint64_t(function.node_size()));
  checker.checkAll();
  uint64_t expanded = checker.expansion(model.graph().node(), 0);
  uint64_t bound =
      std::min(limits.nodes, std::max(limits.expansionFloor, SaturatingMultiply(written, limits.expansionFactor)));
  if (expanded > bound)
    report.error(FailureKind::BadInput, "inlining the model's functions makes " + Twine(expanded) + " nodes of " +
                                            Twine(written) + ", limit " + Twine(bound));
  return success(report.getNumErrors() == before);
}
