//===- LostPlaces.cpp - nodes whose module is not noted ---------------------------===//
//
// The exporter's rules write some nodes without notes: the `Split` of a bias that attention takes apart for its queries
// and keys. Whose bias it is, where fresh layers' equal ones were merged, the module of what reads the parts tells. Two
// such nodes read the same tensor then and became one, too: each module gets its own again.
//
//===----------------------------------------------------------------------===//

#include "LostPlaces.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <optional>
#include <vector>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

static const std::string *findScopes(const NodeProto &node) {
  for (const auto &prop : node.metadata_props())
    if (prop.key() == moduleScopesKey)
      return &prop.value();
  return nullptr;
}

static void setScopes(NodeProto &node, const std::string &value) {
  auto &scopes = *node.add_metadata_props();
  scopes.set_key(moduleScopesKey.str());
  scopes.set_value(value);
}

namespace {
struct Read {
  NodeProto *node;
  int operand;
};

/// The readers of one module, and the scopes of one of them.
struct Readers {
  std::string module, scopes;
  SmallVector<Read> reads;
};
} // namespace

/// Who reads the results of `node`, by module; nullopt: some reader's module is not known, or nothing reads them.
static std::optional<std::vector<Readers>> findReaders(const NodeProto &node,
                                                       const StringMap<SmallVector<Read>> &reads) {
  std::vector<Readers> modules;
  for (const std::string &output : node.output())
    for (Read read : reads.lookup(output)) {
      const std::string *scopes = findScopes(*read.node);
      std::optional<std::string> module = findModulePath(*read.node);
      if (!scopes || !module)
        return std::nullopt;
      auto at = find_if(modules, [&](const Readers &readers) { return readers.module == *module; });
      if (at == modules.end())
        at = modules.insert(at, {*module, *scopes, {}});
      at->reads.push_back(read);
    }
  return modules.empty() ? std::nullopt : std::optional(std::move(modules));
}

/// A copy of the node for the readers of one module.
static NodeProto copyFor(const NodeProto &node, const Readers &readers) {
  NodeProto copy = node;
  copy.set_name(node.name() + "@" + readers.module);
  for (std::string &output : *copy.mutable_output()) {
    const std::string name = output + "@" + readers.module;
    for (Read read : readers.reads)
      if (read.node->input(read.operand) == output)
        read.node->set_input(read.operand, name);
    output = name;
  }
  setScopes(copy, readers.scopes);
  return copy;
}

void lowtide::restorePlaces(GraphProto &graph) {
  if (!isOfCurrentExporter(graph))
    return;
  StringSet<> initializers;
  for (const auto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  StringMap<SmallVector<Read>> reads;
  for (NodeProto &node : *graph.mutable_node())
    for (auto [operand, input] : enumerate(node.input()))
      reads[input].push_back({&node, int(operand)});
  std::vector<std::pair<int, NodeProto>> copies; // and what they come after, the last first
  // From the end, so that what reads a node has its place before it.
  for (int i = graph.node_size(); i-- > 0;) {
    NodeProto &node = *graph.mutable_node(i);
    if (findScopes(node) || findModulePath(node))
      continue;
    std::optional<std::vector<Readers>> modules = findReaders(node, reads);
    const bool readsTensors =
        node.input_size() && all_of(node.input(), [&](StringRef name) { return initializers.contains(name); });
    if (!modules || (modules->size() != 1 && !readsTensors))
      continue;
    for (const Readers &readers : drop_begin(*modules))
      copies.emplace_back(i, copyFor(node, readers));
    setScopes(node, modules->front().scopes);
  }
  if (copies.empty())
    return;
  GraphProto old;
  old.mutable_node()->Swap(graph.mutable_node());
  for (auto [i, node] : enumerate(*old.mutable_node())) {
    *graph.add_node() = std::move(node);
    for (; !copies.empty() && copies.back().first == int(i); copies.pop_back())
      *graph.add_node() = std::move(copies.back().second);
  }
}
