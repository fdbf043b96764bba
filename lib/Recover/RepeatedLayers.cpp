//===- RepeatedLayers.cpp - layers that a program runs twice on one value ---------===//
//
// Nothing is gained by that unless one of the two runs is without gradients (a target under `torch.no_grad`). Where the
// run without gradients came second, the exporter's optimizer keeps the nodes of the first, and no note tells.
// Arithmetic with a parameter that a line of code spells where it reads it, `exp(key + self.first - largest)`, is no
// such run: a block gives what it computes a name.
//
//===----------------------------------------------------------------------===//

#include "RepeatedLayers.h"

#include "BlockModes.h"
#include "Detached.h"
#include "ProgramNames.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

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
    for (auto [i, node] : enumerate(graph.node())) {
      for (const std::string &output : node.output())
        producers[output] = int(i);
      done.insert(describe(node, findProgramLine(node)));
    }
  }

  std::vector<std::string> run() const;

private:
  /// Whether all that read `value` in the program are known, and none is gone: another run made its own.
  bool isReadByNoOther(StringRef value) const {
    std::optional<int64_t> lost = names.countLostReaders(value);
    return lost && *lost <= 0;
  }
  /// An operation of this kind at a line of the program.
  static std::string describe(const NodeProto &node, const ProgramLine &line) {
    return (operationName(findProgramResult(node)) + "\n" + line.place + "\n" + line.code).str();
  }
  bool isLayerFor(const NodeProto &reader, const NodeProto &node) const;
  bool isMadeByLayer(int reader, StringRef value) const;

  const GraphProto &graph;
  Signature signature;
  ProgramNames names;
  StringMap<int> producers;
  StringSet<> done;
};
} // namespace

/// Whether a line of code writes the arithmetic that operations of this name do next to `parameter`.
static bool spells(StringRef code, StringRef operation, StringRef parameter) {
  const StringRef sign = StringSwitch<StringRef>(operation)
                             .Case("add", "+")
                             .Case("sub", "-")
                             .Case("mul", "*")
                             .Case("div", "/")
                             .Default("");
  auto isOfName = [](char c) { return isAlnum(c) || c == '_'; };
  for (size_t at = 0; !sign.empty() && (at = code.find(parameter, at)) != StringRef::npos; at += parameter.size()) {
    StringRef before = code.take_front(at), after = code.drop_front(at + parameter.size());
    if ((!before.empty() && isOfName(before.back())) || (!after.empty() && isOfName(after.front())))
      continue;
    // Through what holds the parameter, `self.block.`.
    before = before.rtrim("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.").rtrim();
    after = after.ltrim();
    if ((before.consume_back(sign) && !before.ends_with(sign)) ||
        (after.consume_front(sign) && !after.starts_with(sign) && !after.starts_with("=")))
      return true;
  }
  return false;
}

/// Whether a layer gives what `reader` reads, and not arithmetic that the line of `reader` does itself.
bool RepeatedLayers::isLayerFor(const NodeProto &reader, const NodeProto &node) const {
  StringRef result = findProgramResult(node);
  if (result.empty() || movesElements(result))
    return false;
  const ProgramLine line = findProgramLine(reader);
  // Of another operation of this kind at that line, the line tells nothing.
  const bool mayBeThere =
      !line.code.empty() && findProgramBlock(reader).empty() && !done.contains(describe(node, line));
  return any_of(node.input(), [&](const std::string &input) {
    const SignatureEntry *entry = signature.findTarget(input);
    return entry && entry->kind == SignatureEntry::Parameter &&
           !(mayBeThere && spells(line.code, operationName(result), leafOf(entry->target)));
  });
}

bool RepeatedLayers::isMadeByLayer(int reader, StringRef value) const {
  std::set<int> seen;
  SmallVector<int> worklist{producers.lookup(value)};
  while (!worklist.empty() && seen.size() < longestWay) {
    const int index = worklist.pop_back_val();
    const NodeProto &node = graph.node(index);
    // An operation of which no result is gone ran once.
    if (!seen.insert(index).second || isDetach(node) || isWithoutGradient(node) ||
        !names.mayRunAgain({index}, 1, reader))
      continue;
    if (isLayerFor(graph.node(reader), node))
      return true;
    for (const std::string &input : node.input())
      if (auto producer = producers.find(input); producer != producers.end() && isReadByNoOther(input))
        worklist.push_back(producer->second);
  }
  return false;
}

std::vector<std::string> RepeatedLayers::run() const {
  std::vector<std::string> found;
  for (auto [i, node] : enumerate(graph.node()))
    for (auto [operand, input] : enumerate(node.input())) {
      if (!producers.contains(input) || !isReadByNoOther(input) || isDetach(node))
        continue;
      std::string name = names.find(node, int(operand));
      if (name != input && names.isLost(name) && operationName(name) == operationName(input) &&
          !is_contained(found, name) && isMadeByLayer(int(i), input))
        found.push_back(std::move(name));
    }
  return found;
}

std::vector<std::string> lowtide::findRepeatedLayers(const GraphProto &graph) {
  RepeatedLayers layers(graph);
  return layers.run();
}
