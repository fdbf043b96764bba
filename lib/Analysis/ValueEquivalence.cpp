//===- ValueEquivalence.cpp - two steps compute the same values -----------===//
//
// Hash-consing by 128-bit hashes. A kernel's results have the numbers of what its body yields, with its operands'
// numbers for the block arguments. In the body of a loop the block arguments are symbols made of the loop's operands;
// the results have numbers made of those and of what the body hands on.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/ValueEquivalence.h"
#include "lowtide/Analysis/StepProblem.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <set>

using namespace mlir;
using namespace lowtide;

namespace {

/// Numbers values of one function.
class Numbering {
public:
  explicit Numbering(std::vector<ValueNode> &nodes) : nodes(nodes) {}

  ValueNumber get(Value value) const { return numbers.lookup(value); }
  void set(Value value, ValueNumber number) { numbers[value] = number; }
  void run(Block &block);
  static ValueNumber hash(ArrayRef<uint8_t> bytes) {
    llvm::XXH128_hash_t hash = llvm::xxh3_128bits(bytes);
    return {hash.low64, hash.high64};
  }
  /// Number of a printed attribute or type.
  template <typename T> ValueNumber hashText(T entity) {
    auto [it, fresh] = texts.try_emplace(entity.getAsOpaquePointer());
    if (fresh) {
      std::string text;
      llvm::raw_string_ostream(text) << entity;
      it->second = hash(llvm::arrayRefFromStringRef(text));
    }
    return it->second;
  }

private:
  void append(SmallVectorImpl<uint8_t> &key, ValueNumber number) {
    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(&number);
    key.append(bytes, bytes + sizeof(number));
  }
  void number(Operation &op);
  void numberLoop(Operation &op, SmallVectorImpl<uint8_t> &key, DictionaryAttr attributes);
  ValueNode &record(Operation &op, DictionaryAttr attributes) {
    ValueNode &node = nodes.emplace_back(ValueNode{op.getName(), attributes, op.getLoc(), {}, {}, {}});
    for (Value operand : op.getOperands())
      node.operands.push_back(get(operand));
    return node;
  }

  std::vector<ValueNode> &nodes;
  llvm::DenseMap<Value, ValueNumber> numbers;
  llvm::DenseMap<const void *, ValueNumber> texts;
};

} // namespace

void Numbering::number(Operation &op) {
  auto facts = dyn_cast<FactsInterface>(op);
  if (facts && facts.getFacts().family == OpFamily::Fusion) {
    Block &body = op.getRegion(0).front();
    for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), op.getOperands()))
      set(argument, get(operand));
    run(body);
    for (auto [result, yielded] : llvm::zip_equal(op.getResults(), body.getTerminator()->getOperands()))
      set(result, get(yielded));
    return;
  }
  // The same bytes under the same type are the same value, whatever else an op says of when they are read, and so are
  // the same numbers in another memory.
  if (StepStorage::isMove(&op) || (StepStorage::isView(&op) && op.getNumResults() == 1 &&
                                   op.getResult(0).getType() == op.getOperand(0).getType())) {
    set(op.getResult(0), get(op.getOperand(0)));
    return;
  }
  NamedAttrList kept(op.getAttrDictionary());
  kept.erase(recomputedAttrName);
  DictionaryAttr attributes = kept.getDictionary(op.getContext());
  SmallVector<uint8_t> key;
  append(key, hash(llvm::arrayRefFromStringRef(op.getName().getStringRef())));
  append(key, hashText(Attribute(attributes)));
  for (Value operand : op.getOperands())
    append(key, get(operand));
  if (isa<RepeatInterface>(op))
    numberLoop(op, key, attributes);
  ValueNode &node = record(op, attributes);
  if (isa<RepeatInterface>(op))
    for (Value handedOn : op.getRegion(0).front().getTerminator()->getOperands())
      node.operands.push_back(get(handedOn));
  for (OpResult result : op.getResults()) {
    SmallVector<uint8_t> own(key);
    append(own, hashText(result.getType()));
    append(own, {result.getResultNumber(), 0});
    set(result, hash(own));
    node.results.push_back(get(result));
    node.types.push_back(result.getType());
  }
}

void Numbering::run(Block &block) {
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>())
      number(op);
}

void Numbering::numberLoop(Operation &op, SmallVectorImpl<uint8_t> &key, DictionaryAttr attributes) {
  Block &body = op.getRegion(0).front();
  ValueNode &start = record(op, attributes);
  for (BlockArgument argument : body.getArguments()) {
    SmallVector<uint8_t> own(key.begin(), key.end());
    append(own, {argument.getArgNumber(), 1});
    set(argument, hash(own));
    start.results.push_back(get(argument));
    start.types.push_back(argument.getType());
  }
  run(body);
  for (Value handedOn : body.getTerminator()->getOperands())
    append(key, get(handedOn));
}

StepFingerprint lowtide::fingerprintStep(func::FuncOp step) {
  StepFingerprint fingerprint;
  Numbering numbering(fingerprint.nodes);
  Builder b(step.getContext());
  auto label = [&](Attribute binding, unsigned position) {
    return binding ? binding : Attribute(b.getI64IntegerAttr(position));
  };
  for (BlockArgument arg : step.getArguments()) {
    unsigned i = arg.getArgNumber();
    Attribute symbol = label(step.getArgAttr(i, bindingAttrName), i);
    numbering.set(arg, numbering.hashText(symbol));
    fingerprint.arguments.emplace_back(numbering.get(arg), symbol);
  }
  Block &block = step.getBody().front();
  numbering.run(block);
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands()))
    fingerprint.results.push_back(
        {label(step.getResultAttr(i, bindingAttrName), i), numbering.get(value), value.getLoc()});
  return fingerprint;
}

/// An attribute as part of a sentence: a long one is cut.
static std::string quote(Attribute attribute) {
  if (!attribute)
    return "absent";
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  constexpr size_t width = 80;
  return text.size() <= width ? text : text.substr(0, width) + "…";
}

namespace {

/// Value graphs of two sides, to find where they part.
class Difference {
public:
  Difference(const StepFingerprint &before, const StepFingerprint &after) : sides{&before, &after} {}

  /// Notes below an error that a result has another value: `numbers` are the two.
  void explain(InFlightDiagnostic &error, ValueNumber before, ValueNumber after) const;

private:
  using Key = std::pair<uint64_t, uint64_t>;
  static Key key(ValueNumber number) { return {number.low, number.high}; }
  /// The first operation that `result` needs and whose results the other side does not have; null: none.
  const ValueNode *findFirst(unsigned side, ValueNumber result) const;
  /// "nn.exp", "the argument #train.batch<"x">".
  std::string describe(unsigned side, ValueNumber number) const;
  /// In what two operations of one name differ.
  std::string compare(const ValueNode &before, const ValueNode &after) const;

  const StepFingerprint *sides[2];
};

} // namespace

const ValueNode *Difference::findFirst(unsigned side, ValueNumber result) const {
  std::set<Key> wanted{key(result)}, known;
  for (const ValueNode &node : sides[1 - side]->nodes)
    for (ValueNumber number : node.results)
      known.insert(key(number));
  const ValueNode *first = nullptr;
  for (const ValueNode &node : llvm::reverse(sides[side]->nodes)) {
    if (llvm::none_of(node.results, [&](ValueNumber number) { return wanted.count(key(number)); }))
      continue;
    for (ValueNumber operand : node.operands)
      wanted.insert(key(operand));
    if (llvm::any_of(node.results, [&](ValueNumber number) { return !known.count(key(number)); }))
      first = &node;
  }
  return first;
}

std::string Difference::describe(unsigned side, ValueNumber number) const {
  for (const auto &[argument, symbol] : sides[side]->arguments)
    if (argument == number)
      return "the argument " + quote(symbol);
  for (const ValueNode &node : sides[side]->nodes)
    if (llvm::is_contained(node.results, number))
      return node.name.getStringRef().str();
  return "another value";
}

std::string Difference::compare(const ValueNode &before, const ValueNode &after) const {
  if (before.name != after.name)
    return (before.name.getStringRef() + " and " + after.name.getStringRef() + " are other operations").str();
  for (const ValueNode *node : {&before, &after})
    for (NamedAttribute attribute : node->attributes)
      if (Attribute first = before.attributes.get(attribute.getName()),
          second = after.attributes.get(attribute.getName());
          first != second)
        return "attribute " + attribute.getName().str() + ": " + quote(first) + ", then " + quote(second);
  if (before.operands.size() != after.operands.size())
    return std::to_string(before.operands.size()) + " operands, then " + std::to_string(after.operands.size());
  for (auto [i, first, second] : llvm::enumerate(before.operands, after.operands))
    if (!(first == second))
      return "operand " + std::to_string(i) + ": " + describe(0, first) + ", then " + describe(1, second);
  return before.types != after.types ? "their types differ" : "they are other results of one operation";
}

void Difference::explain(InFlightDiagnostic &error, ValueNumber before, ValueNumber after) const {
  const ValueNode *first = findFirst(0, before), *second = findFirst(1, after);
  if (!first && !second) {
    error.attachNote() << "both sides compute the same values; what is returned as one was returned as another: "
                       << describe(0, before) << ", then " << describe(1, after);
    return;
  }
  auto note = [&](const ValueNode *node, StringRef when) {
    if (node)
      error.attachNote(node->loc) << "the first operation that differs, " << when << ": " << node->name;
    else
      error.attachNote() << "every operation " << when << " is on the other side, too";
  };
  note(first, "before");
  note(second, "after");
  if (first && second)
    error.attachNote() << "they differ: " << compare(*first, *second);
}

LogicalResult lowtide::compareFingerprints(const StepFingerprint &before, const StepFingerprint &after,
                                           func::FuncOp step, StringRef what) {
  llvm::DenseMap<Attribute, const StepFingerprint::Result *> find;
  for (const StepFingerprint::Result &result : before.results)
    find[result.binding] = &result;
  LogicalResult outcome = success();
  for (const StepFingerprint::Result &result : after.results) {
    auto it = find.find(result.binding);
    if (it != find.end() && it->second->number == result.number)
      continue;
    InFlightDiagnostic error = emitError(result.loc) << what << " changed the value of " << result.binding << " in @"
                                                     << step.getSymName() << ", which it must not";
    if (it != find.end())
      Difference(before, after).explain(error, it->second->number, result.number);
    outcome = error;
  }
  if (before.results.size() != after.results.size())
    return step.emitError() << what << " changed the number of results from " << before.results.size() << " to "
                            << after.results.size() << ", which it must not";
  return outcome;
}

namespace {

/// Compares fingerprints around exact passes.
class EquivalenceCheck : public PassInstrumentation {
public:
  explicit EquivalenceCheck(bool &violated) : violated(violated) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (!isExact(pass))
      return;
    auto &kept = fingerprints[{pass, op}];
    forEachStep(op, [&](func::FuncOp step) { kept[step.getSymName()] = fingerprintStep(step); });
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    auto kept = fingerprints.find({pass, op});
    if (kept == fingerprints.end())
      return;
    bool anyLeft = false;
    forEachStep(op, [&](func::FuncOp step) {
      anyLeft = true;
      auto before = kept->second.find(step.getSymName());
      if (before == kept->second.end())
        return;
      if (failed(compareFingerprints(before->second, fingerprintStep(step), step, pass->getArgument())))
        violated = true;
      kept->second.erase(before);
    });
    // A pass that leaves none has made a plan of all of them, at which verify-plan looks.
    if (anyLeft)
      for (const auto &[name, fingerprint] : kept->second) {
        emitError(op->getLoc()) << pass->getArgument() << " took @" << name << " away, which it must not";
        violated = true;
      }
    fingerprints.erase(kept);
  }

  void runAfterPassFailed(Pass *pass, Operation *op) override { fingerprints.erase({pass, op}); }

private:
  static bool isExact(Pass *pass) {
    const PassInfo *info = PassInfo::lookup(pass->getArgument());
    StringRef summary = info ? info->getPassDescription() : StringRef();
    return summary.ends_with("(exact)") || summary.starts_with("exact:");
  }
  static void forEachStep(Operation *op, llvm::function_ref<void(func::FuncOp)> visit) {
    if (auto step = dyn_cast<func::FuncOp>(op)) {
      if (step.getBody().hasOneBlock())
        visit(step);
    } else if (auto module = dyn_cast<ModuleOp>(op)) {
      for (auto step : module.getOps<func::FuncOp>())
        if (step.getBody().hasOneBlock())
          visit(step);
    }
  }

  bool &violated;
  std::map<std::pair<Pass *, Operation *>, llvm::StringMap<StepFingerprint>> fingerprints;
};

} // namespace

void lowtide::addEquivalenceChecks(PassManager &passes, bool &violated) {
  passes.addInstrumentation(std::make_unique<EquivalenceCheck>(violated));
}
