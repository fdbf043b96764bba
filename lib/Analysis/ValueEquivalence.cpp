//===- ValueEquivalence.cpp - two steps compute the same values -----------===//
//
// Hash-consing by 128-bit hashes. A kernel's results have the numbers of what its body yields, with its operands'
// numbers for the block arguments. In the body of a loop the block arguments are symbols made of the loop's operands;
// the results have numbers made of those and of what the body hands on.
//
// Where loops may be cut anew (UnrolledLoops), their rounds are numbered one after the other. A value is then the list
// of its rows (dimension 0): whoever reads rows a to b reads those, whichever loops laid them down, in whatever pieces.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/ValueEquivalence.h"
#include "lowtide/Analysis/BudgetFlips.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Interfaces/RepeatSyntax.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <map>
#include <set>

using namespace mlir;
using namespace lowtide;

namespace {

/// Numbers values of one function.
class Numbering {
public:
  Numbering(std::vector<ValueNode> &nodes, UnrolledLoops unrolled) : nodes(nodes), unrolled(unrolled) {}

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
  /// Number of a type, whichever memory the tensor lies in.
  ValueNumber hashType(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return hashText(tensor && getSpace(tensor) != Space::Device ? tensor.dropEncoding() : type);
  }
  void append(SmallVectorImpl<uint8_t> &key, ValueNumber number) {
    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(&number);
    key.append(bytes, bytes + sizeof(number));
  }
  void number(Operation &op);
  void numberLoop(Operation &op, SmallVectorImpl<uint8_t> &key, DictionaryAttr attributes);

  bool isUnrolled(Operation &loop) const {
    return unrolled == (loop.hasTrait<OpTrait::IsIsolatedFromAbove>() ? UnrolledLoops::Steps : UnrolledLoops::Parts);
  }
  using Rows = std::vector<ValueNumber>;
  void unroll(RepeatInterface loop);
  void numberView(Operation &op);
  Rows listRows(Value value);
  void setRows(Value value, Rows rows);

  ValueNode &record(Operation &op, DictionaryAttr attributes) {
    ValueNode &node = nodes.emplace_back(ValueNode{op.getName(), attributes, op.getLoc(), {}, {}, {}});
    for (Value operand : op.getOperands())
      node.operands.push_back(get(operand));
    return node;
  }

  std::vector<ValueNode> &nodes;
  const UnrolledLoops unrolled;
  /// Loops around what is numbered now whose rounds are numbered one by one: too many to be spoken of.
  unsigned depth = 0;
  llvm::DenseMap<Value, ValueNumber> numbers;
  /// Of values that loops have laid down or cut.
  llvm::DenseMap<Value, Rows> rowsOf;
  /// What all rows of a value are together: by their number as a list.
  std::map<std::pair<uint64_t, uint64_t>, ValueNumber> wholes;
  /// What a view is of, by its number.
  struct Origin {
    ValueNumber root;
    Type type;
    OperationName view;
  };
  std::map<std::pair<uint64_t, uint64_t>, Origin> origins;
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
  if (unrolled != UnrolledLoops::None && StepStorage::isView(&op) && op.getNumResults() == 1)
    return numberView(op);
  if (auto loop = dyn_cast<RepeatInterface>(op); loop && isUnrolled(op))
    return unroll(loop);
  NamedAttrList kept(op.getAttrDictionary());
  kept.erase(recomputedAttrName);
  kept.erase(flipsAttrName);
  DictionaryAttr attributes = kept.getDictionary(op.getContext());
  SmallVector<uint8_t> key;
  append(key, hash(llvm::arrayRefFromStringRef(op.getName().getStringRef())));
  append(key, hashText(Attribute(attributes)));
  for (Value operand : op.getOperands())
    append(key, get(operand));
  if (isa<RepeatInterface>(op))
    numberLoop(op, key, attributes);
  if (depth) {
    for (OpResult result : op.getResults()) {
      SmallVector<uint8_t> own(key);
      append(own, hashType(result.getType()));
      append(own, {result.getResultNumber(), 0});
      set(result, hash(own));
      rowsOf.erase(result);
    }
    return;
  }
  ValueNode &node = record(op, attributes);
  if (isa<RepeatInterface>(op))
    for (Value handedOn : op.getRegion(0).front().getTerminator()->getOperands())
      node.operands.push_back(get(handedOn));
  for (OpResult result : op.getResults()) {
    SmallVector<uint8_t> own(key);
    append(own, hashType(result.getType()));
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

/// A row is a value of extent 1 itself, or a number made of the value's and of where it lies in it.
Numbering::Rows Numbering::listRows(Value value) {
  if (auto known = rowsOf.find(value); known != rowsOf.end())
    return known->second;
  const int64_t extent = cast<RankedTensorType>(value.getType()).getDimSize(0);
  if (extent == 1)
    return {get(value)};
  Rows rows;
  SmallVector<uint8_t> all;
  for (int64_t i = 0; i < extent; ++i) {
    SmallVector<uint8_t> key;
    append(key, get(value));
    append(key, {uint64_t(i), 2});
    rows.push_back(hash(key));
    append(all, rows.back());
  }
  const ValueNumber list = hash(all);
  wholes[{list.low, list.high}] = get(value);
  return rows;
}

void Numbering::setRows(Value value, Rows rows) {
  if (rows.size() == 1) {
    set(value, rows.front());
    rowsOf.erase(value);
    return;
  }
  SmallVector<uint8_t> all;
  for (ValueNumber row : rows)
    append(all, row);
  const ValueNumber list = hash(all);
  auto whole = wholes.find({list.low, list.high});
  set(value, whole == wholes.end() ? list : whole->second);
  rowsOf[value] = std::move(rows);
}

/// A view of a view is one of what that is of, and that itself under its own type.
void Numbering::numberView(Operation &op) {
  Value from = op.getOperand(0), to = op.getResult(0);
  Origin origin{get(from), from.getType(), op.getName()};
  if (auto known = origins.find({origin.root.low, origin.root.high});
      known != origins.end() && known->second.view == op.getName())
    origin = known->second;
  rowsOf.erase(to);
  if (to.getType() == origin.type)
    return set(to, origin.root);
  SmallVector<uint8_t> key;
  append(key, hash(llvm::arrayRefFromStringRef(op.getName().getStringRef())));
  append(key, origin.root);
  append(key, hashText(to.getType()));
  const ValueNumber number = hash(key);
  set(to, number);
  origins.insert({{number.low, number.high}, origin});
}

void Numbering::unroll(RepeatInterface loop) {
  Block &body = loop->getRegion(0).front();
  Operation *end = body.getTerminator();
  const unsigned sliced = loop.getNumSliced(), carried = loop.getNumCarried();
  const auto rounds = uint64_t(loop.getRounds());
  std::vector<Rows> wholes(sliced), laid(loop->getNumResults() - carried);
  for (unsigned i = 0; i < sliced; ++i)
    wholes[i] = listRows(loop->getOperand(i));
  std::vector<std::vector<Rows>> made(laid.size(), std::vector<Rows>(rounds));
  auto assign = [&](Value to, Value from) {
    set(to, get(from));
    rowsOf.erase(to);
    if (auto rows = rowsOf.find(from); rows != rowsOf.end())
      rowsOf[to] = Rows(rows->second);
  };
  for (unsigned i = sliced; i < loop->getNumOperands(); ++i)
    assign(body.getArgument(i), loop->getOperand(i));
  ++depth;
  for (uint64_t round = 0; round < rounds; ++round) {
    const uint64_t part = isReversed(loop) ? rounds - 1 - round : round;
    for (unsigned i = 0; i < sliced; ++i) {
      const size_t extent = wholes[i].size() / rounds;
      const auto begin = wholes[i].begin();
      setRows(body.getArgument(i), Rows(begin + part * extent, begin + (part + 1) * extent));
    }
    run(body);
    for (unsigned i = 0; i < laid.size(); ++i)
      made[i][part] = listRows(end->getOperand(carried + i));
    // All are read before any is handed on.
    SmallVector<std::pair<ValueNumber, std::optional<Rows>>> handedOn;
    for (unsigned i = 0; i < carried; ++i) {
      auto rows = rowsOf.find(end->getOperand(i));
      handedOn.push_back({get(end->getOperand(i)), rows == rowsOf.end() ? std::nullopt : std::optional(rows->second)});
    }
    for (unsigned i = 0; i < carried; ++i)
      for (Value to : {Value(body.getArgument(sliced + i)), Value(loop->getResult(i))}) {
        set(to, handedOn[i].first);
        rowsOf.erase(to);
        if (handedOn[i].second)
          rowsOf[to] = *handedOn[i].second;
      }
  }
  --depth;
  for (unsigned i = 0; i < laid.size(); ++i) {
    for (Rows &rows : made[i])
      laid[i].insert(laid[i].end(), rows.begin(), rows.end());
    setRows(loop->getResult(carried + i), std::move(laid[i]));
  }
  if (depth)
    return;
  ValueNode &node = record(*loop, loop->getAttrDictionary());
  for (OpResult result : loop->getResults()) {
    node.results.push_back(get(result));
    node.types.push_back(result.getType());
  }
}

StepFingerprint lowtide::fingerprintStep(func::FuncOp step, UnrolledLoops unrolled) {
  StepFingerprint fingerprint;
  Numbering numbering(fingerprint.nodes, unrolled);
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
    forEachStep(op,
                [&](func::FuncOp step) { kept[step.getSymName()] = fingerprintStep(step, getUnrolledLoops(pass)); });
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
      if (failed(compareFingerprints(before->second, fingerprintStep(step, getUnrolledLoops(pass)), step,
                                     pass->getArgument())))
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
    return summary.ends_with("(exact)") || summary.starts_with("exact:") ||
           getUnrolledLoops(pass) != UnrolledLoops::None;
  }
  /// Those that a pass may cut anew.
  static UnrolledLoops getUnrolledLoops(Pass *pass) {
    const PassInfo *info = PassInfo::lookup(pass->getArgument());
    StringRef summary = info ? info->getPassDescription() : StringRef();
    return summary.ends_with("(exact, round by round)") ? UnrolledLoops::Steps
           : summary.ends_with("(exact, part by part)") ? UnrolledLoops::Parts
                                                        : UnrolledLoops::None;
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
