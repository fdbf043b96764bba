//===- ControlRules.cpp - control flow decided when compiling -------------===//
//
// Rules for If, and the operators that are known and refused.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;

namespace {

/// A condition known when compiling: the branch takes the node's place.
LogicalResult ifRule(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  std::optional<Shape> condition = n.constantInts(0);
  if (!condition || condition->size() != 1)
    return n.refuse("the condition is computed from data; only conditions known when compiling are taken: fix the "
                    "input that decides it (--set <input>=<value>), or compute both branches and choose with Where");
  StringRef wanted = condition->front() ? "then_branch" : "else_branch";
  std::optional<ArrayAttr> names = n.op.getSubgraphs();
  for (auto [i, name] : llvm::enumerate(names ? names->getValue() : ArrayRef<Attribute>())) {
    if (cast<StringAttr>(name).getValue() != wanted)
      continue;
    Block &body = n.op.getBodies()[i].front();
    n.context.legalizeBlock(body);
    auto yield = cast<onnx::YieldOp>(body.getTerminator());
    for (auto [r, value] : llvm::enumerate(yield.getValues())) {
      if (r >= n.results.size())
        break;
      n.results[r] = n.context.lookup(value);
      if (!n.results[r]) // collected inside the branch
        return n.context.failed() ? success() : n.reject("the branch does not compute result " + Twine(r));
    }
    return success();
  }
  return n.reject("the branch '" + wanted + "' is missing");
}

} // namespace

void lowtide::addControlRules(RuleTable &t) { t.add("If", ifRule); }

void lowtide::addRefusals(RuleTable &t) {
  for (StringRef name : {"StringNormalizer", "TfIdfVectorizer", "RegexFullMatch", "StringConcat", "StringSplit"})
    t.addRefusal(name, "strings are not tensors here");
  for (StringRef name : {"Unique", "Compress", "NonMaxSuppression"})
    t.addRefusal(name, "the shape of its result depends on data; every shape must be known when compiling");
  for (StringRef name : {"Optional", "OptionalGetElement", "OptionalHasElement", "SequenceMap"})
    t.addRefusal(name, "optional values and maps over sequences are not implemented");
  for (StringRef name : {"MaxRoiPool", "ImageDecoder", "Multinomial"})
    t.addRefusal(name, "it is not implemented");
}
