//===- RepeatedLayers.cpp - layers that a program runs twice on one value ---------===//
//
// Nothing is gained by that unless one of the two runs is without gradients (a target under `torch.no_grad`). Where the
// run without gradients came second, the exporter's optimizer keeps the nodes of the first, and no note tells.
//
//===----------------------------------------------------------------------===//

#include "RepeatedLayers.h"

#include "BlockModes.h"
#include "Detached.h"
#include "ProgramNames.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Nodes that are followed from one value at most.
static constexpr size_t longestWay = 256;

namespace {
class RepeatedLayers {
public:
  explicit RepeatedLayers(const GraphProto &graph) : graph(graph), signature(graph), names(graph, signature) {
    for (auto [i, node] : enumerate(graph.node()))
      for (const std::string &output : node.output())
        producers[output] = int(i);
  }

  std::vector<std::string> run() const;

private:
  /// Whether all that read `value` in the program are known, and none is gone: another run made its own.
  bool isReadByNoOther(StringRef value) const {
    std::optional<int64_t> lost = names.countLostReaders(value);
    return lost && *lost <= 0;
  }
  bool isLayer(const NodeProto &node) const {
    StringRef result = findProgramResult(node);
    return !result.empty() && !movesElements(result) && any_of(node.input(), [&](const std::string &input) {
      const SignatureEntry *entry = signature.findTarget(input);
      return entry && entry->kind == SignatureEntry::Parameter;
    });
  }
  bool isMadeByLayer(StringRef value) const;

  const GraphProto &graph;
  Signature signature;
  ProgramNames names;
  StringMap<int> producers;
};
} // namespace

bool RepeatedLayers::isMadeByLayer(StringRef value) const {
  std::set<int> seen;
  SmallVector<int> worklist{producers.lookup(value)};
  while (!worklist.empty() && seen.size() < longestWay) {
    const int index = worklist.pop_back_val();
    const NodeProto &node = graph.node(index);
    if (!seen.insert(index).second || isDetach(node) || isWithoutGradient(node))
      continue;
    if (isLayer(node))
      return true;
    for (const std::string &input : node.input())
      if (auto producer = producers.find(input); producer != producers.end() && isReadByNoOther(input))
        worklist.push_back(producer->second);
  }
  return false;
}

std::vector<std::string> RepeatedLayers::run() const {
  std::vector<std::string> found;
  for (const NodeProto &node : graph.node())
    for (auto [operand, input] : enumerate(node.input())) {
      if (!producers.contains(input) || !isReadByNoOther(input) || isDetach(node))
        continue;
      std::string name = names.find(node, int(operand));
      if (name != input && names.isLost(name) && operationName(name) == operationName(input) &&
          !is_contained(found, name) && isMadeByLayer(input))
        found.push_back(std::move(name));
    }
  return found;
}

std::vector<std::string> lowtide::findRepeatedLayers(const GraphProto &graph) {
  RepeatedLayers layers(graph);
  return layers.run();
}
