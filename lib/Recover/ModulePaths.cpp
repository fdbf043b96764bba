//===- ModulePaths.cpp - where a module is, in files of PyTorch's old exporter ---===//

#include "ModulePaths.h"

#include "Classifier.h"

#include "lowtide/Recover/Evidence.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Whether the parts of `scope` occur in `module`, in this order, and more with them.
static bool skipsModules(StringRef scope, StringRef module) {
  SmallVector<StringRef> called, parts;
  scope.split(called, '.');
  module.split(parts, '.');
  size_t at = 0;
  for (StringRef part : parts)
    at += at != called.size() && called[at] == part;
  return at == called.size() && parts.size() > called.size();
}

void ModulePaths::learn(StringRef scope, StringRef module) {
  while (!scope.empty() && leafOf(scope) == leafOf(module)) {
    auto [known, isNew] = paths.try_emplace(scope, module);
    if (!isNew && known->second != module)
      known->second.clear();
    scope = moduleOf(scope), module = moduleOf(module);
  }
}

ModulePaths::ModulePaths(const GraphProto &graph) {
  // The one scope in which a name is read; empty: several.
  StringMap<std::string> scopes;
  StringSet<> copies;
  for (const NodeProto &node : graph.node())
    if (node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1)
      copies.insert(node.output(0));
  auto isName = [](StringRef name) { return name.contains('.') && !isInventedName(name); };
  forEachRead(graph, [&](StringRef name, InitializerUse use) {
    bool isCopied = use.node->op_type() == "Identity" && use.node->output_size() && isName(use.node->output(0));
    std::optional<std::string> scope = findScope(use.node->name());
    if (!scope || isCopied || !isName(name))
      return;
    auto [known, isNew] = scopes.try_emplace(name, *scope);
    if (!isNew && known->second != *scope)
      known->second.clear();
  });
  auto visit = [&](StringRef name) {
    std::string scope = scopes.lookup(name);
    StringRef module = moduleOf(name);
    if (!scope.empty() && (scope == module || skipsModules(scope, module)))
      learn(scope, module);
  };
  for (const auto &tensor : graph.initializer())
    visit(tensor.name());
  for (const auto &copy : copies)
    visit(copy.getKey());
}

std::string ModulePaths::find(StringRef scope) const {
  for (StringRef known = scope; !known.empty(); known = moduleOf(known))
    if (auto found = paths.find(known); found != paths.end())
      return found->second.empty() ? scope.str() : found->second + scope.drop_front(known.size()).str();
  return scope.str();
}

std::optional<std::string> ModulePaths::findOfValue(StringRef name) const {
  if (findEvaluatedOperator(name).empty())
    return std::nullopt;
  std::optional<std::string> scope = findScope(name);
  return scope ? std::optional(find(*scope)) : std::nullopt;
}

void ModulePaths::annotate(GraphProto &graph) const {
  for (NodeProto &node : *graph.mutable_node()) {
    std::optional<std::string> scope = findScope(node.name());
    if (!scope || findModulePath(node) != scope)
      continue;
    std::string path = find(*scope);
    if (path == *scope)
      continue;
    auto *note = node.add_metadata_props();
    note->set_key(moduleScopesKey.str());
    note->set_value("['" + path + "', '" + StringRef(node.name()).rsplit('/').second.str() + "']");
  }
}
