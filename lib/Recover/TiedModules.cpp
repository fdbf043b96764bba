//===- TiedModules.cpp - tensors that several modules call their weight ----------===//

#include "TiedModules.h"

#include "Classifier.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;

namespace {

/// Whether `layer` is a call of `module` itself: `enc.shared` where an encoder calls the module `shared`, `fc_1` of a
/// second call. What else it is called there, the file does not tell.
bool isCallOf(StringRef layer, StringRef module) {
  StringRef called = leafOf(layer), number = called.rsplit('_').second;
  if (!number.empty() && llvm::all_of(number, isDigit))
    called = called.drop_back(number.size() + 1);
  return called == leafOf(module) || leafOf(layer) == leafOf(module);
}

/// Which modules of the file are layers, by the names of their nodes.
class WeightedLayers {
public:
  WeightedLayers(const ModelView &file, ArrayRef<InitializerInfo> infos) {
    for (const NodeProto &node : file.getModel().graph().node()) {
      for (const std::string &operand : node.input())
        readers[operand].push_back(&node);
      if (std::optional<std::string> path = findModulePath(node)) {
        addParents(*path);
        if (operandLeaf(node, 1) == "weight")
          products.insert(*path);
      }
    }
    for (const InitializerInfo &info : infos) {
      if (info.viewOf)
        continue;
      addParents(moduleOf(info.name));
      if (leafOf(info.name) != "bias")
        holders.insert(moduleOf(info.name));
    }
  }

  /// The layer whose weight, or bias (`leaf`), an initializer is where `use` reads it, a weight as it stands or
  /// transposed; empty: nothing tells.
  std::string find(const InitializerUse &use, StringRef leaf) const {
    std::optional<std::string> path = findModulePath(*use.node);
    if (!path || path->empty() || parents.contains(*path))
      return "";
    const bool isIt = leaf == "bias" ? products.contains(*path) && operandLeaf(*use.node, use.operand) == "bias"
                                     : !holders.contains(*path) && readsWeight(*use.node, use.operand, *path);
    return isIt ? *path : "";
  }

private:
  /// Whatever contains a module is no layer.
  void addParents(StringRef path) {
    for (StringRef parent = moduleOf(path); !parent.empty() && parents.insert(parent).second;)
      parent = moduleOf(parent);
  }

  bool readsWeight(const NodeProto &node, int operand, StringRef path) const {
    if (node.op_type() != "Transpose")
      return operandLeaf(node, operand) == "weight";
    auto all = readers.find(node.output(0));
    return all != readers.end() && llvm::all_of(all->second, [&](const NodeProto *reader) {
             return findModulePath(*reader) == path && reader->input_size() > 1 && reader->input(1) == node.output(0) &&
                    operandLeaf(*reader, 1) == "weight";
           });
  }

  StringMap<SmallVector<const NodeProto *>> readers;
  StringSet<> parents, holders, products;
};

} // namespace

void lowtide::nameTiedModules(const ModelView &file, std::vector<InitializerInfo> &infos) {
  if (file.getModel().producer_name() != "pytorch")
    return;
  const WeightedLayers layers(file, infos);
  StringSet<> known;
  for (const InitializerInfo &info : infos)
    if (!info.viewOf)
      known.insert(info.name);
  auto tie = [&](InitializerInfo &info, const std::string &name) {
    if (!known.insert(name).second)
      return;
    if (info.tied.empty())
      info.tied.push_back(info.name);
    info.tied.push_back(name);
    info.reason.add(RoleReason::Tied);
  };
  for (InitializerInfo &info : infos) {
    InitializerInfo &whole = info.viewOf ? infos[*info.viewOf] : info;
    const std::string leaf = leafOf(whole.name).str();
    if (whole.role != InitializerRole::Parameter || (leaf != "weight" && leaf != "bias") || isInventedName(whole.name))
      continue;
    for (const InitializerUse &use : info.uses)
      if (std::string layer = layers.find(use, leaf); !layer.empty() && !isCallOf(layer, moduleOf(whole.name)))
        tie(whole, layer + "." + leaf);
  }
  // What the exporter evaluated of a tensor goes by its name.
  for (InitializerInfo &info : infos)
    if (info.viewOf && is_contained(infos[*info.viewOf].tied, info.name))
      info.name = infos[*info.viewOf].name;
}

void lowtide::reportEvaluatedTies(ModelView &file, ArrayRef<InitializerInfo> infos) {
  std::vector<std::string> names;
  for (const InitializerInfo &info : infos)
    if (info.role == InitializerRole::Parameter && info.tied.size() > 1 && !info.transposed.empty() && !info.viewOf &&
        !is_contained(info.tied, info.tensor))
      names.push_back(join(info.tied, " = "));
  if (!names.empty())
    file.getReport().add(
        {FindingKind::LayersTied, names.front(), names, {{"export in training form", "export with optimize=False"}}});
}
