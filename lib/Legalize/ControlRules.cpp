//===- ControlRules.cpp - branches ------------------------------------------===//
//
// Rules for If, and the operators that are known and refused. Of an If whose condition is computed from data both
// branches are computed, as torch.vmap does with torch.cond.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// The branch of that name; null: there is none.
Block *findBranch(NodeView &n, StringRef wanted) {
  std::optional<ArrayAttr> names = n.op.getSubgraphs();
  for (auto [i, name] : llvm::enumerate(names ? names->getValue() : ArrayRef<Attribute>()))
    if (cast<StringAttr>(name).getValue() == wanted)
      return &n.op.getBodies()[i].front();
  return nullptr;
}

/// What the branch computes, in `results`.
LogicalResult takeBranch(NodeView &n, StringRef name, SmallVectorImpl<Meaning> &results) {
  Block *body = findBranch(n, name);
  if (!body)
    return n.reject("the branch '" + name + "' is missing");
  n.context.legalizeBlock(*body);
  auto yield = cast<onnx::YieldOp>(body->getTerminator());
  for (auto [r, value] : llvm::enumerate(yield.getValues())) {
    if (r >= results.size())
      break;
    results[r] = n.context.lookup(value);
    if (!results[r] && !n.context.failed()) // otherwise collected inside the branch
      return n.reject("the branch does not compute result " + Twine(r));
  }
  return success();
}

/// `a` where the condition holds, `b` elsewhere; what is chosen alone has a gradient.
Expr choose(NodeView &n, Value condition, Expr a, Expr b) {
  Expr flag = nn::reshape(n.wrap(condition), {});
  return nn::select(nn::broadcast(flag, a.shape(), {}), a, b);
}

/// The branch, computed whether it is taken or not. Where it is not, it reads ones and the first rows: what it makes of
/// them is not chosen, and no gradient of theirs, which may be NaN, reaches what it would have read.
LogicalResult takeGuarded(NodeView &n, StringRef name, Value condition, bool taken, SmallVectorImpl<Meaning> &results) {
  Block *body = findBranch(n, name);
  if (!body)
    return n.reject("the branch '" + name + "' is missing");
  llvm::SetVector<Value> read;
  getUsedValuesDefinedAbove(*body->getParent(), read);
  auto guard = [&](Value value) -> Value {
    // Nothing flows back into constants and buffers, and rules ask what they are.
    StringRef role = n.context.roleOf(value);
    if (LegalizeContext::constantOf(value) || (!role.empty() && role != "parameter"))
      return value;
    Expr x = n.wrap(value), other = x.like(isa<FloatType>(x.elementType()) ? 1.0 : 0.0);
    return (taken ? choose(n, condition, x, other) : choose(n, condition, other, x)).get();
  };
  SmallVector<std::pair<Value, Meaning>> whole;
  for (Value value : read) {
    Meaning meaning = n.context.lookup(value), guarded = meaning;
    if (meaning.tensor)
      guarded.tensor = guard(meaning.tensor);
    if (meaning.sequence)
      for (Value &element : *guarded.sequence)
        element = guard(element);
    whole.emplace_back(value, std::move(meaning));
    n.context.bind(value, std::move(guarded));
  }
  LogicalResult done = takeBranch(n, name, results);
  for (auto &[value, meaning] : whole)
    n.context.bind(value, meaning);
  return done;
}

/// Both branches are computed, and the condition chooses between what they give.
LogicalResult computeBoth(NodeView &n) {
  Expr condition = n.in(0);
  if (!condition || countOf(condition.shape()) != 1 || !condition.elementType().isInteger(1))
    return n.reject("the condition is not one truth value");
  LegalizeContext::Mark before = n.context.mark();
  SmallVector<Meaning> taken(n.results.size()), other(n.results.size());
  if (failed(takeGuarded(n, "then_branch", condition.get(), true, taken)) ||
      failed(takeGuarded(n, "else_branch", condition.get(), false, other)))
    return failure();
  if (n.context.failed())
    return success();
  if (n.context.getUpdates().size() != before.updates.size() ||
      llvm::any_of(llvm::zip(n.context.getUpdates(), before.updates),
                   [](auto pair) { return std::get<0>(pair).count != std::get<1>(pair).count; }))
    return n.refuse("the condition is computed from data, and a branch updates running statistics: move the layer that "
                    "does out of the branch, or fix the input that decides it (--set <input>=<value>)");
  for (auto [r, pair] : llvm::enumerate(llvm::zip(taken, other))) {
    auto &[yes, no] = pair;
    if (!n.wants(r))
      continue;
    if (!yes.tensor || !no.tensor)
      return n.refuse("the condition is computed from data, and result " + Twine(r) +
                      " is a sequence: only tensors are chosen; fix the input that decides it (--set <input>=<value>)");
    Expr a = n.wrap(yes.tensor), b = n.wrap(no.tensor);
    if (a.type() != b.type()) {
      std::string types;
      llvm::raw_string_ostream(types) << a.type() << " and " << b.type();
      return n.refuse("the condition is computed from data, and its branches give result " + Twine(r) +
                      " different shapes (" + types + "): fix the input that decides it (--set <input>=<value>)");
    }
    n.set(r, a.get() == b.get() ? a : choose(n, condition.get(), a, b));
  }
  if (n.context.noteOnce("If"))
    emitWarning(n.getLoc())
        << "'If': its condition is computed from data: both branches are computed, and one is chosen; parameters that "
           "only the other one reads have gradients of zero, as torch.cond gives them (a plain 'if' gives none): "
           "momentum and weight decay move them";
  return success();
}

/// A condition known when compiling: the branch takes the node's place.
LogicalResult ifRule(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  std::optional<Shape> condition = n.constantInts(0);
  if (!condition || condition->size() != 1)
    return computeBoth(n);
  return takeBranch(n, condition->front() ? "then_branch" : "else_branch", n.results);
}

} // namespace

void lowtide::addControlRules(RuleTable &t) { t.add("If", ifRule); }

void lowtide::addRefusals(RuleTable &t) {
  for (StringRef name : {"StringNormalizer", "TfIdfVectorizer", "RegexFullMatch", "StringConcat", "StringSplit"})
    t.addRefusal(name, "strings are not tensors here");
  for (StringRef name : {"Unique", "NonMaxSuppression"})
    t.addRefusal(name, "the shape of its result depends on data; every shape must be known when compiling");
  for (StringRef name : {"Optional", "OptionalGetElement", "OptionalHasElement"})
    t.addRefusal(name, "optional values are not implemented");
  for (StringRef name : {"MaxRoiPool", "ImageDecoder", "Multinomial"})
    t.addRefusal(name, "it is not implemented");
}
