//===- LostPlaces.cpp - nodes whose module is not noted ---------------------------===//
//
// The exporter's rules write some nodes without notes: the `Split` of a bias that attention takes apart for its queries
// and keys. Whose bias it is, where fresh layers' equal ones were merged, the module of what reads the parts tells.
//
//===----------------------------------------------------------------------===//

#include "LostPlaces.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

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

void lowtide::restorePlaces(GraphProto &graph) {
  if (!isOfCurrentExporter(graph))
    return;
  StringMap<SmallVector<const NodeProto *>> readers;
  for (const NodeProto &node : graph.node())
    for (const std::string &input : node.input())
      readers[input].push_back(&node);
  // From the end, so that what reads a node has its place before it.
  for (NodeProto &node : reverse(*graph.mutable_node())) {
    if (findScopes(node) || findModulePath(node))
      continue;
    const NodeProto *first = nullptr;
    bool agree = true;
    for (const std::string &output : node.output())
      for (const NodeProto *reader : readers.lookup(output)) {
        first = first ? first : reader;
        agree = agree && findScopes(*reader) && findModulePath(*reader) == findModulePath(*first);
      }
    if (!first || !agree || !findModulePath(*first))
      continue;
    auto &scopes = *node.add_metadata_props();
    scopes.set_key(moduleScopesKey.str());
    scopes.set_value(*findScopes(*first));
  }
}
