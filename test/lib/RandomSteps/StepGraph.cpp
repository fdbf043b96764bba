//===- StepGraph.cpp - a forward graph that can be cut smaller --*- C++ -*-===//
//
// Text of the graph, and removal of what nothing reads.
//
//===----------------------------------------------------------------------===//
#include "StepGraph.h"
#include "llvm/Support/FormatVariadic.h"

using namespace lowtide::test;

int64_t TensorShape::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

std::string TensorShape::text() const {
  std::string text = "tensor<";
  for (int64_t dim : dims)
    text += std::to_string(dim) + "x";
  return text + element + ">";
}

/// Every use that the graph itself makes: loss, outputs, updates.
template <typename Visit> static void visitRoots(const StepGraph &graph, Visit visit) {
  visit(graph.loss);
  for (Use use : graph.outputs)
    visit(use);
  for (const auto &[state, value] : graph.updates)
    visit(value);
}

bool StepGraph::isUsed(unsigned node) const {
  bool used = false;
  visitRoots(*this, [&](Use use) { used |= use.node == node; });
  for (const Node &reader : nodes)
    for (Use use : reader.operands)
      used |= use.node == node;
  for (const auto &[state, value] : updates)
    used |= state == node;
  return used;
}

void StepGraph::removeDead() {
  std::vector<bool> needed(nodes.size());
  visitRoots(*this, [&](Use use) { needed[use.node] = true; });
  for (const auto &[state, value] : updates)
    needed[state] = true;
  for (size_t i = nodes.size(); i-- > 0;)
    if (needed[i])
      for (Use use : nodes[i].operands)
        needed[use.node] = true;
  std::vector<unsigned> number(nodes.size());
  std::vector<Node> kept;
  for (size_t i = 0; i < nodes.size(); ++i) {
    number[i] = static_cast<unsigned>(kept.size());
    if (!needed[i])
      continue;
    for (Use &use : nodes[i].operands)
      use.node = number[use.node];
    kept.push_back(std::move(nodes[i]));
  }
  nodes = std::move(kept);
  loss.node = number[loss.node];
  for (Use &use : outputs)
    use.node = number[use.node];
  for (auto &[state, value] : updates) {
    state = number[state];
    value.node = number[value.node];
  }
}

unsigned StepGraph::countOps() const {
  unsigned count = 0;
  for (const Node &node : nodes)
    count += node.kind == Node::Kind::Op;
  return count;
}

std::string lowtide::test::leafName(const StepGraph &graph, unsigned node) {
  switch (graph.nodes[node].kind) {
  case Node::Kind::Param:
    return "p" + std::to_string(node);
  case Node::Kind::Batch:
    return "x" + std::to_string(node);
  case Node::Kind::State:
    return "s" + std::to_string(node);
  default:
    return graph.nodes[node].text;
  }
}

static std::string nameOf(const StepGraph &graph, Use use) {
  if (graph.nodes[use.node].kind != Node::Kind::Op)
    return "%" + leafName(graph, use.node);
  std::string name = "%v" + std::to_string(use.node);
  return graph.nodes[use.node].results.size() > 1 ? name + "#" + std::to_string(use.result) : name;
}

static std::string writeLine(const StepGraph &graph, const Node &node) {
  std::string line;
  for (size_t i = 0; i < node.text.size(); ++i) {
    if (node.text[i] == '$')
      line += nameOf(graph, node.operands[node.text[++i] - '0']);
    else
      line += node.text[i];
  }
  return line;
}

/// What an argument is bound to.
static std::string bindingOf(const StepGraph &graph, unsigned number) {
  const Node &node = graph.nodes[number];
  std::string name = "\"" + leafName(graph, number) + "\"";
  std::string range = llvm::formatv(", test.low = {0:F4} : f64, test.high = {1:F4} : f64", node.low, node.high);
  switch (node.kind) {
  case Node::Kind::Param:
    return "train.binding = #train.param<" + name + ">, onnx.initializer = " + name + range;
  case Node::Kind::Batch:
    return "train.binding = #train.batch<" + name + ">" + range;
  case Node::Kind::State:
    return "train.binding = #train.state<" + name + ">";
  default:
    return "train.binding = #train.scalar<" + name + ">";
  }
}

std::string StepGraph::text(const StepSettings &settings) const {
  std::string text = llvm::formatv(
      "module attributes {{test.settings = {{optimizer = \"{0}\", lr = \"{1}\", precision = \"{2}\", loss_scale = "
      "\"{3}\", clip_norm = {4:F4} : f64, micro_batches = {5} : i64, loss_head = {6}, seed = {7} : i64}} {{\n",
      settings.optimizer, settings.lr, settings.precision, settings.lossScale, settings.clipNorm, settings.microBatches,
      settings.lossHead ? "true" : "false", settings.seed);
  text += "func.func @forward(";
  const char *separator = "";
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (nodes[i].kind != Node::Kind::Op) {
      text += separator + nameOf(*this, {i, 0}) + ": " + nodes[i].results[0].text() + " {" + bindingOf(*this, i) + "}";
      separator = ",\n                   ";
    }
  text += ")\n    -> (tensor<f32> {train.binding = #train.metric<\"loss\">}";
  std::string values = nameOf(*this, loss), types = "tensor<f32>";
  auto addResult = [&](Use use, const std::string &binding) {
    text += ",\n        " + shape(use).text() + " {train.binding = " + binding + "}";
    values += ", " + nameOf(*this, use);
    types += ", " + shape(use).text();
  };
  for (unsigned i = 0; i < outputs.size(); ++i)
    addResult(outputs[i], "#train.output<\"y" + std::to_string(i) + "\">");
  for (const auto &[state, value] : updates)
    addResult(value, "#train.state<\"" + leafName(*this, state) + "\">");
  text += ") {\n";
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (nodes[i].kind == Node::Kind::Op) {
      std::string count = nodes[i].results.size() > 1 ? ":" + std::to_string(nodes[i].results.size()) : "";
      text += "  %v" + std::to_string(i) + count + " = " + writeLine(*this, nodes[i]) + "\n";
    }
  return text + "  return " + values + " : " + types + "\n}\n}\n";
}
