//===- LostDraws.cpp - random numbers that an exporter drew once instead of twice ===//
//
// To an optimizer, two `Dropout` nodes that read the same value are equal: it keeps one, and with it one of everything
// that was computed of the two. Notes remain:
//  1. Readers name the values that are gone: `sub(%linear_1, %linear_3)` reads one value of the file twice.
//  2. Each operation says how many read its result. A value with fewer readers in the file than in the program was read
//     by the other operation, too, so that the two part there and not before.
//  3. A layer that ran twice ran on two values.
//  4. Results of one kind are numbered: where no number of a dropout is missing, there was one, and what is computed of
//     it was computed twice of the same draw.
//
// The same holds for batch norms that run twice on one value: the second run updates the running statistics once more.
//
//===----------------------------------------------------------------------===//

#include "LostDraws.h"

#include "ProgramNames.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/NodeOrder.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Whether each evaluation gives other numbers, or updates a state: a batch norm in training form.
static bool draws(const NodeProto &node) {
  if (!node.domain().empty())
    return false;
  std::string program = findProgramOperator(node);
  return node.op_type() == "Dropout" ||
         (node.op_type() == "BatchNormalization" && StringRef(program).contains("_native_batch_norm_legit") &&
          !StringRef(program).contains("_no_training"));
}

/// `linear_3` → 3, `linear` → 0.
static int64_t numberOf(StringRef name) {
  StringRef plain = name.split('@').first, stem = operationName(plain);
  int64_t number = 0;
  plain.drop_front(std::min(plain.size(), stem.size() + 1)).getAsInteger(10, number);
  return number;
}

/// Values that are taken apart in one file at most, and of which it is asked whether they may be.
static constexpr size_t mostParted = 256, mostAsked = 4096;
/// Nodes that are added to one file at most.
static constexpr size_t mostCopies = size_t(1) << 20;

namespace {
class MergedDraws {
public:
  explicit MergedDraws(GraphProto &graph) : graph(graph), signature(graph), names(graph, signature) {
    for (auto [i, node] : enumerate(graph.node())) {
      for (const std::string &output : node.output())
        producers[output] = int(i);
      for (auto [operand, input] : enumerate(node.input()))
        readers[input].push_back({int(i), int(operand)});
    }
  }

  Recovered run();

private:
  /// A value that several of the program's became, with those that are gone, in the program's order.
  struct Parted {
    std::string value;
    std::vector<std::pair<std::string, SmallVector<std::pair<int, int>>>> lost;
  };

  std::vector<Parted> findParted() const;
  /// Nodes from what draws to the value, both included, that the program runs again; empty: it does not draw again.
  std::set<int> findWay(const std::string &value) const;
  bool mayDrawAgain(const Parted &parted) const;
  bool isDrawnAgain(int node) const;
  /// Where the program's values part, the second is not computed of this one.
  bool isPartedBelow(StringRef value) const { return names.countLostReaders(value).value_or(0) > 0; }
  int findRunBefore(StringRef name) const;
  void copyWay(const std::set<int> &way, size_t instance, StringRef name);
  void finish();

  GraphProto &graph;
  Signature signature;
  ProgramNames names;
  StringMap<int> producers;
  StringMap<SmallVector<std::pair<int, int>>> readers;
  /// Nodes that draw, or read what such nodes made and the program ran again.
  std::set<int> random;
  /// What values are called in the instances after the first.
  std::map<std::pair<std::string, size_t>, std::string> renamed;
  std::set<std::pair<int, size_t>> copied;
  /// New nodes, by the node that they follow.
  std::map<int, std::vector<NodeProto>> added;
};
} // namespace

std::vector<MergedDraws::Parted> MergedDraws::findParted() const {
  std::vector<Parted> found;
  for (const NodeProto &node : graph.node())
    for (const std::string &value : node.output()) {
      if (value.empty())
        continue;
      std::map<std::pair<int64_t, std::string>, SmallVector<std::pair<int, int>>> byName;
      for (auto [reader, operand] : readers.lookup(value)) {
        std::string name = names.find(graph.node(reader), operand);
        if (name != value && names.isLost(name) && operationName(name) == operationName(value))
          byName[{numberOf(name), name}].push_back({reader, operand});
      }
      // Otherwise it is what an operation that did nothing left.
      if (byName.empty() || names.countLostReaders(value).value_or(0) > 0)
        continue;
      Parted parted{value, {}};
      for (auto &[key, reads] : byName)
        parted.lost.push_back({key.second, std::move(reads)});
      found.push_back(std::move(parted));
    }
  return found;
}

std::set<int> MergedDraws::findWay(const std::string &value) const {
  std::set<int> way;
  SmallVector<int> worklist{producers.lookup(value)};
  while (!worklist.empty()) {
    int node = worklist.pop_back_val();
    if (!random.count(node) || !way.insert(node).second)
      continue;
    for (const std::string &input : graph.node(node).input())
      if (auto producer = producers.find(input); producer != producers.end() && !isPartedBelow(input))
        worklist.push_back(producer->second);
  }
  return way;
}

/// Whether as many results of each kind of operation are gone as the program would have had to make the lost values.
bool MergedDraws::mayDrawAgain(const Parted &parted) const {
  const std::set<int> way = findWay(parted.value);
  for (auto [i, lost] : enumerate(parted.lost))
    for (auto [reader, operand] : lost.second)
      if (!names.mayRunAgain(way, i + 1, reader))
        return false;
  return true;
}

/// Whether the program runs `node`, which draws, more than once: an operation that is gone read what it reads, or what
/// that was made of.
bool MergedDraws::isDrawnAgain(int node) const {
  SmallVector<int> worklist{node};
  std::set<int> seen;
  while (!worklist.empty()) {
    int index = worklist.pop_back_val();
    if (!seen.insert(index).second)
      continue;
    const NodeProto &at = graph.node(index);
    for (const std::string &input : at.input())
      if (auto producer = producers.find(input); producer != producers.end()) {
        if (names.countLostReaders(input).value_or(0) > 0)
          return true;
        worklist.push_back(producer->second);
      }
  }
  return false;
}

/// The last node that the program ran before it made `name`, among those of its kind that made another value. Updates
/// of a state keep their order.
int MergedDraws::findRunBefore(StringRef name) const {
  int last = -1;
  for (const auto &producer : producers)
    if (operationName(producer.first()) == operationName(name) && numberOf(producer.first()) < numberOf(name))
      last = std::max(last, producer.second);
  return last;
}

void MergedDraws::copyWay(const std::set<int> &way, size_t instance, StringRef name) {
  const bool updates = any_of(way, [&](int index) { return graph.node(index).op_type() == "BatchNormalization"; });
  const int before = updates ? findRunBefore(name) : -1;
  auto nameOf = [&](const std::string &value) -> std::string {
    auto known = renamed.find({value, instance});
    return known != renamed.end() ? known->second : value + "@draw" + std::to_string(instance + 2);
  };
  std::set<std::string> made;
  for (int index : way)
    for (const std::string &output : graph.node(index).output())
      made.insert(output);
  for (int index : way) {
    if (!copied.insert({index, instance}).second)
      continue;
    NodeProto copy = graph.node(index);
    for (std::string &input : *copy.mutable_input())
      if (made.count(input))
        input = nameOf(input);
    for (std::string &output : *copy.mutable_output())
      if (!output.empty())
        output = nameOf(output);
    copy.set_name(copy.name() + "@draw" + std::to_string(instance + 2));
    added[std::max(index, before)].push_back(std::move(copy));
  }
}

void MergedDraws::finish() { insertAfter(graph, std::move(added)); }

Recovered MergedDraws::run() {
  // Nodes are in order.
  for (auto [i, node] : enumerate(graph.node()))
    if (draws(node) || any_of(node.input(), [&](const std::string &input) {
          auto producer = producers.find(input);
          return producer != producers.end() && random.count(producer->second) && !isPartedBelow(input);
        }))
      random.insert(int(i));
  Recovered result;
  std::vector<Parted> all = findParted();
  std::vector<std::set<int>> ways;
  llvm::erase_if(all, [&](const Parted &parted) { return !random.count(producers[parted.value]); });
  if (all.size() <= mostAsked)
    llvm::erase_if(all, [&](const Parted &parted) { return !mayDrawAgain(parted); });
  if (all.size() > mostParted) {
    for (const Parted &parted : all)
      result.unknown.push_back(parted.lost.front().first);
    return result;
  }
  size_t copies = 0;
  for (const Parted &parted : all) {
    ways.push_back(findWay(parted.value));
    copies += ways.back().size() * parted.lost.size();
  }
  if (copies > mostCopies) {
    for (const Parted &parted : all)
      result.unknown.push_back(parted.lost.front().first);
    return result;
  }
  // Values of which as many are gone belong together; among others, nothing tells which is which.
  auto isKnown = [&](size_t index) {
    for (auto [other, way] : enumerate(ways))
      if (all[other].lost.size() != all[index].lost.size() &&
          any_of(way, [&](int node) { return ways[index].count(node) != 0; }))
        return false;
    // No program runs a layer twice on one value.
    return any_of(ways[index],
                  [&](int node) {
                    return !draws(graph.node(node)) && any_of(graph.node(node).input(), [&](const std::string &input) {
                      const SignatureEntry *entry = signature.findTarget(input);
                      return entry && entry->kind == SignatureEntry::Parameter;
                    });
                  }) ||
           any_of(ways[index], [&](int node) {
             return draws(graph.node(node)) &&
                    (is_contained(graph.node(node).output(), all[index].value) || isDrawnAgain(node));
           });
  };
  SmallVector<size_t> known;
  for (auto [i, parted] : enumerate(all))
    if (isKnown(i))
      known.push_back(i);
    else
      for (const auto &lost : parted.lost)
        result.unknown.push_back(lost.first);
  for (size_t i : known)
    for (auto [instance, lost] : enumerate(all[i].lost))
      renamed[{all[i].value, instance}] = lost.first;
  for (size_t i : known)
    for (auto [instance, lost] : enumerate(all[i].lost)) {
      copyWay(ways[i], instance, lost.first);
      result.restored.push_back(lost.first);
    }
  for (size_t i : known)
    for (const auto &[name, reads] : all[i].lost)
      for (auto [node, operand] : reads)
        graph.mutable_node(node)->set_input(operand, name);
  if (!known.empty())
    finish();
  return result;
}

Recovered lowtide::restoreDraws(GraphProto &graph) {
  if (none_of(graph.node(), draws))
    return {};
  return MergedDraws(graph).run();
}
