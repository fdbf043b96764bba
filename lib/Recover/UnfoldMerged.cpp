//===- UnfoldMerged.cpp - what the exporter merged because it began equal --------===//
//
// Parameters that begin equal are one initializer; then the nodes that read them and the same value are equal, too, and
// become one node, and so does what follows: the modulations of two blocks that begin at zero, two tokens that one
// `Expand` spreads, a layer and its copy. The notes of whoever reads the result still name two values of the program.
// Where as many parameters are gone as values are named, each gets its nodes back.
//
// So do two functions of one parameter that begin equal: a gate at one half, and the rest of it.
//
//===----------------------------------------------------------------------===//

#include "Detached.h"
#include "ElementFunctions.h"
#include "ProgramNames.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "lowtide/Support/StableSort.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Nodes on the longest way from a merged parameter to where the program's values part: for layers of one kind, and for
/// others, which only their equal values make suspect.
static constexpr unsigned longestWay = 16, shortestWay = 2;
/// The same for modules that are copies as a whole.
static constexpr unsigned wholeWay = 4096;

/// `add_12` comes after `add_7` and `add`.
static bool isEarlier(StringRef a, StringRef b) {
  auto number = [](StringRef name) {
    StringRef stem = operationName(name);
    int64_t value = -1;
    StringRef plain = name.split('@').first;
    plain.drop_front(std::min(plain.size(), stem.size() + 1)).getAsInteger(10, value);
    return std::pair(value, name);
  };
  return number(a) < number(b);
}

/// Replaces whole words of a note.
static void replaceWord(std::string &text, const std::string &from, const std::string &to) {
  auto isWord = [](char c) { return isAlnum(c) || c == '_' || c == '.'; };
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
    size_t end = at + from.size();
    bool isWhole = (at == 0 || !isWord(text[at - 1])) && (end == text.size() || !isWord(text[end]));
    if (isWhole)
      text.replace(at, from.size(), to);
    at += isWhole ? to.size() : from.size();
  }
}

namespace {
using Entry = const SignatureEntry *;

/// The parameters that are left, with those that were merged with them: one per instance.
struct Merger {
  std::vector<std::pair<Entry, std::vector<Entry>>> parameters;
  size_t numInstances = 0;
  unsigned way = shortestWay;
};

class MergedNodes {
public:
  MergedNodes(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature)
      : graph(graph), proto(proto), signature(signature), names(proto, signature) {
    for (auto [i, node] : enumerate(proto.node()))
      for (auto [operand, input] : enumerate(node.input()))
        readers[input].push_back({int(i), int(operand)});
    for (const auto &value : proto.value_info())
      for (const std::string &name : findFoldedFrom(value)) {
        evaluated[value.name()].push_back(name);
        present.insert(name);
      }
  }

  bool run();

private:
  /// A read of a value of another instance than the first.
  struct Cut {
    int node, operand;
    size_t instance;
    std::string name;
  };

  std::vector<Entry> findVanished() const;
  std::vector<Merger> findCopies(ArrayRef<Entry> vanished) const;
  std::vector<Merger> findMergers(ArrayRef<Entry> vanished) const;
  bool findCuts(const Merger &merger, std::vector<Cut> &cuts, std::set<int> &nodes) const;
  void separate(const Merger &merger, ArrayRef<Cut> cuts, const std::set<int> &nodes);
  void doubtGradients(const Merger &merger, ArrayRef<Cut> cuts);
  bool separateTwins(int index);
  std::vector<Entry> findOthers(const std::string &tensor, Entry own) const;
  bool isTied(Entry owner) const;
  /// The parameter that the initializer is, or was evaluated from.
  Entry findParameter(StringRef tensor) const;
  /// The parameter that `node` reads as `input`: perhaps one that was merged with the initializer's.
  Entry findRead(const NodeProto &node, StringRef input) const;
  std::string copyTensor(const std::string &tensor, Entry from, Entry to);

  UnfoldingGraph &graph;
  GraphProto &proto;
  const Signature &signature;
  ProgramNames names;
  StringMap<SmallVector<std::pair<int, int>>> readers;
  StringMap<std::vector<std::string>> evaluated;
  StringSet<> present;
};
} // namespace

/// Parameters that are not in the file, in no form, and that no node's operation reads; nor does any in their module
/// read, under a name that is gone, what was evaluated: that may be theirs. Nor are they names of a tied parameter,
/// which the program reads in their module under another.
std::vector<Entry> MergedNodes::findVanished() const {
  std::vector<Entry> vanished;
  StringSet<> readers, tied;
  for (const NodeProto &node : proto.node())
    if (std::optional<std::string> module = findModulePath(node); module && !module->empty())
      for (const std::string &operand : findProgramOperands(node))
        if (Entry entry = signature.findPlaceholder(operand); entry && moduleOf(entry->target) != *module) {
          tied.insert((*module + "." + leafOf(entry->target)).str());
          // `head.decoder.weight` is read as a table: then `head.bias` is `head.decoder.bias`.
          tied.insert((moduleOf(moduleOf(entry->target)) + ".bias").str());
        }
  for (const NodeProto &node : proto.node())
    for (auto [operand, input] : enumerate(node.input()))
      if (std::optional<std::string> module = evaluated.contains(input) ? findModulePath(node) : std::nullopt)
        if (std::string name = names.find(node, int(operand)); !name.empty() && names.isLost(name))
          readers.insert(*module);
  for (const SignatureEntry &entry : signature.getEntries())
    if (entry.kind == SignatureEntry::Parameter && !graph.find(entry.target) && !present.contains(entry.target) &&
        !names.isMentioned(entry) && !readers.contains(moduleOf(entry.target)) && !tied.contains(entry.target))
      vanished.push_back(&entry);
  return vanished;
}

/// Whether a layer reads the parameter of another one as its own, and the numbers are not one number: then two
/// operations that the exporter merged had the same operands, and no other parameter began equal.
bool MergedNodes::isTied(Entry owner) const {
  const TensorProto *tensor = graph.find(owner->target);
  if (!tensor || tensor->dims_size() < 2 || none_of(proto.node(), [&](const NodeProto &node) {
        // Most notes need not be parsed.
        if (!findProgramNote(node).contains(owner->placeholder))
          return false;
        std::optional<std::string> module = findModulePath(node);
        if (!module || module->empty() || *module == moduleOf(owner->target) ||
            !signature.findTarget((*module + "." + leafOf(owner->target)).str()))
          return false;
        return is_contained(findProgramOperands(node), owner->placeholder);
      }))
    return false;
  const std::string bytes = graph.read(*tensor).value_or("");
  size_t count = 1;
  for (int64_t dim : tensor->dims())
    count *= static_cast<size_t>(std::max<int64_t>(1, dim));
  const size_t width = bytes.size() / count;
  return width && !hasEqualElements(bytes, width);
}

Entry MergedNodes::findParameter(StringRef tensor) const {
  if (Entry entry = signature.findTarget(tensor))
    return entry->kind == SignatureEntry::Parameter ? entry : nullptr;
  Entry found = nullptr;
  for (const std::string &name : evaluated.lookup(tensor))
    if (Entry entry = signature.findTarget(name); entry && entry->kind == SignatureEntry::Parameter) {
      if (found)
        return nullptr;
      found = entry;
    }
  return found;
}

Entry MergedNodes::findRead(const NodeProto &node, StringRef input) const {
  Entry entry = graph.find(input) ? findParameter(input) : nullptr;
  std::vector<std::string> operands = findProgramOperands(node);
  if (!entry || is_contained(operands, entry->placeholder))
    return entry;
  for (const std::string &operand : operands)
    if (Entry other = signature.findPlaceholder(operand);
        other && other->kind == SignatureEntry::Parameter && !graph.find(other->target) &&
        !present.contains(other->target) && leafOf(other->target) == leafOf(entry->target))
      return other;
  return entry;
}

/// How modules whose parameters were merged may belong together: `blocks.0.ada` and `blocks.1.ada`; two norms of one
/// block; by the names of their parameters only.
enum class Kinship { OneKind, Siblings, Namesakes };

static bool areKin(Kinship kinship, StringRef a, StringRef b) {
  switch (kinship) {
  case Kinship::OneKind:
    return withoutNumbers(a) == withoutNumbers(b);
  case Kinship::Siblings:
    return moduleOf(a) == moduleOf(b);
  case Kinship::Namesakes:
    return true;
  }
  llvm_unreachable("no such kinship");
}

/// Whether two paths of modules differ in one part only.
static bool differOnce(StringRef a, StringRef b) {
  SmallVector<StringRef> first, second;
  a.split(first, '.');
  b.split(second, '.');
  return first.size() == second.size() &&
         count_if(zip(first, second), [](auto pair) { return std::get<0>(pair) != std::get<1>(pair); }) == 1;
}

/// Modules that began as copies of others, with all that is in them: a teacher and its student.
std::vector<Merger> MergedNodes::findCopies(ArrayRef<Entry> vanished) const {
  // What is gone below each path, and all parameters below it, by the rest of their names.
  std::map<StringRef, std::map<StringRef, Entry>> gone, all;
  auto note = [](auto &below, Entry entry) {
    for (StringRef path = moduleOf(entry->target); !path.empty(); path = moduleOf(path))
      below[path][StringRef(entry->target).drop_front(path.size())] = entry;
  };
  for (Entry entry : vanished)
    note(gone, entry);
  for (const SignatureEntry &entry : signature.getEntries())
    if (entry.kind == SignatureEntry::Parameter)
      note(all, &entry);
  auto isAlike = [](const std::map<StringRef, Entry> &a, const std::map<StringRef, Entry> &b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](auto &x, auto &y) { return x.first == y.first; });
  };
  std::vector<Merger> mergers;
  // Several copies of one, as experts begin that were one layer.
  for (const auto &[other, owners] : all) {
    std::vector<const std::map<StringRef, Entry> *> instances;
    for (const auto &[path, entries] : gone)
      if (entries.size() >= 2 && isAlike(entries, all.find(path)->second) && isAlike(entries, owners) &&
          differOnce(path, other))
        instances.push_back(&entries);
    if (gone.count(other) || instances.size() < 2)
      continue;
    Merger merger;
    merger.numInstances = instances.size();
    merger.way = wholeWay;
    for (const auto &[rest, owner] : owners) {
      merger.parameters.push_back({owner, {}});
      for (const auto *instance : instances)
        merger.parameters.back().second.push_back(instance->find(rest)->second);
    }
    mergers.push_back(std::move(merger));
  }
  for (const auto &[path, entries] : gone) {
    if (entries.size() < 2 || !isAlike(entries, all.find(path)->second))
      continue;
    for (const auto &[other, owners] : all) {
      if (gone.count(other) || !isAlike(entries, owners))
        continue;
      // A weight and a bias are in layers of any kind; the place must be alike, too.
      bool isLayer = all_of(entries, [](const auto &entry) { return entry.first.count('.') == 1; });
      if (isLayer && !differOnce(path, other))
        continue;
      Merger merger;
      merger.numInstances = 1;
      merger.way = wholeWay;
      for (const auto &[rest, entry] : entries)
        merger.parameters.push_back({owners.find(rest)->second, {entry}});
      mergers.push_back(std::move(merger));
    }
  }
  // The largest copy first.
  sortStably(mergers, [](const Merger &a, const Merger &b) { return a.parameters.size() > b.parameters.size(); });
  return mergers;
}

/// Who may have been merged with whom, the likeliest first: layers by kinship, then parameters of one module.
std::vector<Merger> MergedNodes::findMergers(ArrayRef<Entry> vanished) const {
  MapVector<StringRef, std::map<StringRef, Entry>> modules;
  for (Entry entry : vanished)
    modules[moduleOf(entry->target)][leafOf(entry->target)] = entry;
  std::vector<Merger> mergers = findCopies(vanished);
  auto hasVanished = [&](StringRef module) { return modules.count(module) != 0; };
  std::set<std::pair<Kinship, std::vector<StringRef>>> done;
  for (Kinship kinship : {Kinship::OneKind, Kinship::Siblings, Kinship::Namesakes})
    for (const auto &[first, leaves] : modules) {
      // All that are gone and look like this one.
      std::vector<StringRef> instances;
      for (const auto &[module, others] : modules)
        if (others.size() == leaves.size() &&
            all_of(zip(leaves, others), [](auto pair) { return std::get<0>(pair).first == std::get<1>(pair).first; }) &&
            areKin(kinship, module, first))
          instances.push_back(module);
      if (!done.insert({kinship, instances}).second)
        continue;
      StringSet<> seen;
      for (const SignatureEntry &owner : signature.getEntries()) {
        StringRef module = moduleOf(owner.target);
        if (owner.kind != SignatureEntry::Parameter || hasVanished(module) || !seen.insert(module).second ||
            !areKin(kinship, module, first) || isTied(&owner))
          continue;
        Merger merger;
        merger.numInstances = instances.size();
        merger.way = kinship == Kinship::OneKind ? longestWay : shortestWay;
        for (const auto &[leaf, entry] : leaves)
          if (Entry left = signature.findTarget((module.empty() ? "" : module + ".").str() + leaf.str())) {
            merger.parameters.push_back({left, {}});
            for (StringRef instance : instances)
              merger.parameters.back().second.push_back(modules.find(instance)->second.at(leaf));
          }
        if (merger.parameters.size() == leaves.size())
          mergers.push_back(std::move(merger));
      }
    }
  for (const auto &[module, leaves] : modules) {
    std::vector<Entry> gone;
    for (Entry entry : vanished)
      if (moduleOf(entry->target) == module)
        gone.push_back(entry);
    for (const SignatureEntry &owner : signature.getEntries())
      if (owner.kind == SignatureEntry::Parameter && moduleOf(owner.target) == module && !is_contained(gone, &owner))
        mergers.push_back({{{&owner, gone}}, gone.size()});
  }
  return mergers;
}

/// The instance that the reader's module belongs to: `blocks.3.mlp` to that of `blocks.3.ada`.
static std::optional<size_t> findInstance(const Merger &merger, StringRef reader) {
  auto [left, gone] = merger.parameters.front();
  SmallVector<StringRef> first, path;
  StringRef(left->target).split(first, '.');
  reader.split(path, '.');
  for (auto [i, entry] : enumerate(gone)) {
    SmallVector<StringRef> parts;
    StringRef(entry->target).split(parts, '.');
    size_t at = 0;
    while (at < parts.size() && at < first.size() && parts[at] == first[at])
      ++at;
    // The parameter's own name tells no module.
    if (at + 1 < parts.size() && at < path.size() &&
        ArrayRef(path).take_front(at + 1) == ArrayRef(parts).take_front(at + 1))
      return i;
  }
  return std::nullopt;
}

/// Where the program's values part after the nodes that read the parameters that are left, and the nodes up to there.
bool MergedNodes::findCuts(const Merger &merger, std::vector<Cut> &cuts, std::set<int> &nodes) const {
  std::map<int, unsigned> open; // nodes and how far they are
  std::map<std::string, int> producers;
  for (auto [i, node] : enumerate(proto.node())) {
    std::vector<std::string> operands = findProgramOperands(node);
    auto reads = [&](Entry entry) {
      return any_of(node.input(), [&](const std::string &input) {
        auto isOperand = [&](const std::string &name) { return is_contained(operands, name); };
        return findRead(node, input) == entry &&
               (isOperand(entry->placeholder) || isOperand(input) || any_of(evaluated.lookup(input), isOperand));
      });
    };
    if (any_of(merger.parameters, [&](const auto &pair) { return reads(pair.first); }))
      open[int(i)] = 0;
  }
  std::set<int> seen;
  std::vector<std::string> parted;
  // Nodes are in order: what is added comes later.
  while (!open.empty()) {
    auto [index, depth] = *open.begin();
    open.erase(open.begin());
    if (!seen.insert(index).second || depth > merger.way)
      continue;
    for (const std::string &value : proto.node(index).output()) {
      producers[value] = index;
      std::map<std::string, std::map<std::string, SmallVector<std::pair<int, int>>>> byStem;
      SmallVector<int> unnamed;
      for (auto [node, operand] : readers.lookup(value)) {
        std::string name = names.find(proto.node(node), operand);
        byStem[operationName(name).str()][name].push_back({node, operand});
      }
      for (auto &[stem, byName] : byStem) {
        if (byName.size() == 1 || stem.empty()) {
          for (auto &[name, reads] : byName)
            for (auto [node, operand] : reads)
              open.try_emplace(node, depth + 1);
          continue;
        }
        if (byName.size() != merger.numInstances + 1)
          return false;
        SmallVector<std::string> ordered;
        for (auto &[name, reads] : byName)
          ordered.push_back(name);
        llvm::sort(ordered, isEarlier);
        // All but the first are lost.
        if (any_of(drop_begin(ordered), [&](const std::string &name) { return !names.isLost(name); }))
          return false;
        parted.push_back(value);
        for (auto [i, name] : enumerate(drop_begin(ordered)))
          for (auto [node, operand] : byName[name]) {
            std::optional<std::string> module = findModulePath(proto.node(node));
            cuts.push_back({node, operand, findInstance(merger, module.value_or("")).value_or(i), name});
          }
      }
    }
  }
  // Back from there.
  while (!parted.empty()) {
    std::string value = std::move(parted.back());
    parted.pop_back();
    auto producer = producers.find(value);
    if (producer != producers.end() && nodes.insert(producer->second).second)
      append_range(parted, proto.node(producer->second).input());
  }
  // Other parameters on the way would be read twice.
  auto readsOther = [&](int index) {
    return any_of(proto.node(index).input(), [&](StringRef input) {
      Entry entry = findRead(proto.node(index), input);
      return entry && none_of(merger.parameters, [&](const auto &pair) { return pair.first == entry; });
    });
  };
  return !cuts.empty() && none_of(cuts, [&](const Cut &cut) { return nodes.count(cut.node); }) &&
         none_of(nodes, readsOther) && all_of(cuts, [&](const Cut &cut) {
           // Otherwise the program computed the last value twice, of the same ones.
           return names.mayRunAgain(nodes, &cut == &cuts.back() ? merger.numInstances : 1, cut.node);
         });
}

/// Another tensor with the values of `tensor`, of parameter `to`.
std::string MergedNodes::copyTensor(const std::string &tensor, Entry from, Entry to) {
  const TensorProto &whole = *graph.find(tensor);
  std::string name = tensor == from->target ? to->target : tensor + "@" + to->target;
  if (graph.find(name))
    return name;
  std::optional<std::string> bytes = graph.read(whole);
  if (!bytes)
    return tensor;
  SmallVector<int64_t> dims(whole.dims().begin(), whole.dims().end());
  if (tensor == from->target)
    graph.addInitializer(name, dims, whole.data_type(), std::move(*bytes),
                         {"", "it began equal to " + tensor + ", and the exporter merged the two", true});
  else
    graph.addCopy(whole, name, std::move(*bytes), from->target, to->target);
  return name;
}

void MergedNodes::separate(const Merger &merger, ArrayRef<Cut> cuts, const std::set<int> &nodes) {
  std::map<std::pair<std::string, size_t>, std::string> apart;
  for (const Cut &cut : cuts)
    apart[{proto.node(cut.node).input(cut.operand), cut.instance}] = cut.name;
  for (const Cut &cut : cuts)
    proto.mutable_node(cut.node)->set_input(cut.operand, cut.name);
  auto nameOf = [&](const std::string &value, size_t instance) {
    auto [at, isNew] = apart.try_emplace({value, instance});
    if (isNew)
      at->second = value + "@" + merger.parameters.front().second[instance]->target;
    return at->second;
  };
  std::set<std::string> made;
  for (int index : nodes)
    for (const std::string &value : proto.node(index).output())
      made.insert(value);
  // From the back, so that positions stay.
  for (int index : reverse(nodes))
    for (size_t instance = 0; instance != merger.numInstances; ++instance) {
      NodeProto copy = proto.node(index);
      for (std::string &input : *copy.mutable_input()) {
        if (made.count(input)) {
          input = nameOf(input, instance);
          continue;
        }
        // A tensor that is merged with another's is told by the copy's notes.
        Entry entry = findRead(proto.node(index), input) == findParameter(input) ? findParameter(input) : nullptr;
        for (const auto &[left, gone] : merger.parameters)
          if (entry == left)
            input = copyTensor(input, left, gone[instance]);
      }
      for (std::string &output : *copy.mutable_output())
        output = nameOf(output, instance);
      for (auto &prop : *copy.mutable_metadata_props())
        for (const auto &[left, gone] : merger.parameters) {
          replaceWord(*prop.mutable_value(), left->placeholder, gone[instance]->placeholder);
          if (StringRef module = moduleOf(left->target); !module.empty())
            replaceWord(*prop.mutable_value(), module.str(), moduleOf(gone[instance]->target).str());
        }
      copy.set_name(copy.name() + "_apart");
      graph.insertNode(index + 1, std::move(copy));
    }
}

/// Parameters of the module of `own` that are in the file as `tensor` only, as the notes of its readers say.
std::vector<Entry> MergedNodes::findOthers(const std::string &tensor, Entry own) const {
  std::vector<Entry> others;
  for (auto [node, operand] : readers.lookup(tensor)) {
    const auto &inputs = proto.node(node).input();
    if (count_if(inputs, [&](const std::string &input) { return graph.find(input) != nullptr; }) != 1)
      continue;
    for (const std::string &name : findProgramOperands(proto.node(node)))
      if (Entry entry = signature.findPlaceholder(name);
          entry && entry != own && entry->kind == SignatureEntry::Parameter && !graph.find(entry->target) &&
          !present.contains(entry->target) && moduleOf(entry->target) == moduleOf(own->target) &&
          !is_contained(others, entry))
        others.push_back(entry);
  }
  return others;
}

/// Two parameters of a cell that began equal, each applied to the same value somewhere: one node there, but each has
/// nodes of its own elsewhere, so that neither is gone. The reader of the second names another value.
bool MergedNodes::separateTwins(int index) {
  if (proto.node(index).output_size() != 1)
    return false;
  const std::string value = proto.node(index).output(0);
  std::map<std::string, SmallVector<std::pair<int, int>>> byName;
  bool isReadItself = false;
  for (auto [node, operand] : readers.lookup(value)) {
    std::string name = names.find(proto.node(node), operand);
    isReadItself |= name == value;
    if (name != value && names.isLost(name) && operationName(name) == operationName(value))
      byName[name].push_back({node, operand});
  }
  if (byName.size() != 1 || !isReadItself)
    return false;
  auto &[name, reads] = *byName.begin();
  for (const std::string &input : proto.node(index).input()) {
    Entry own = graph.find(input) ? findParameter(input) : nullptr;
    if (!own || input != own->target || !is_contained(findProgramOperands(proto.node(index)), own->placeholder))
      continue;
    std::vector<Entry> others = findOthers(input, own);
    if (others.size() != 1)
      continue;
    NodeProto copy = proto.node(index);
    copy.set_output(0, name);
    copy.set_name(copy.name() + "_apart");
    for (auto &prop : *copy.mutable_metadata_props())
      replaceWord(*prop.mutable_value(), own->placeholder, others.front()->placeholder);
    for (auto [node, operand] : reads)
      proto.mutable_node(node)->set_input(operand, name);
    graph.insertNode(index + 1, std::move(copy));
    graph.addDoubt(
        {FindingKind::ReaderApart, input, {others.front()->target}, {{"value", name}, {"other value", value}}});
    return true;
  }
  return false;
}

/// A copy that is not detached may still be computed without gradients: nodes in such a block that were merged with
/// others have no note of it.
void MergedNodes::doubtGradients(const Merger &merger, ArrayRef<Cut> cuts) {
  if (all_of(cuts, [&](const Cut &cut) { return isDetach(proto.node(cut.node)); }))
    return;
  const auto &[left, gone] = merger.parameters.front();
  graph.addDoubt({FindingKind::CopyTrained,
                  gone.front()->target,
                  {},
                  {{"module", moduleOf(gone.front()->target).str()}, {"other module", moduleOf(left->target).str()}}});
}

/// Takes one group apart; false: there is none.
bool MergedNodes::run() {
  for (int i = 0, e = proto.node_size(); i != e; ++i)
    if (separateTwins(i))
      return true;
  std::vector<Entry> vanished = findVanished();
  if (vanished.empty())
    return false;
  for (const Merger &merger : findMergers(vanished)) {
    std::vector<Cut> cuts;
    std::set<int> nodes;
    if (!findCuts(merger, cuts, nodes))
      continue;
    if (merger.way == wholeWay)
      doubtGradients(merger, cuts);
    separate(merger, cuts, nodes);
    return true;
  }
  return false;
}

void lowtide::unfoldMergedReaders(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  while (MergedNodes(graph, proto, signature).run()) {
  }
}
