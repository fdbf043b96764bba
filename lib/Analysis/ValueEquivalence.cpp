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

using namespace mlir;
using namespace lowtide;

namespace {

/// Numbers values of one function.
class Numbering {
public:
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
  void numberLoop(Operation &op, SmallVectorImpl<uint8_t> &key);

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
  // The same bytes under the same type are the same value, whatever else an op says of when they are read.
  if (facts && facts.getFacts().aliasing == Aliasing::View && op.getNumResults() == 1 &&
      op.getResult(0).getType() == op.getOperand(0).getType()) {
    set(op.getResult(0), get(op.getOperand(0)));
    return;
  }
  NamedAttrList attributes(op.getAttrDictionary());
  attributes.erase(recomputedAttrName);
  SmallVector<uint8_t> key;
  append(key, hash(llvm::arrayRefFromStringRef(op.getName().getStringRef())));
  append(key, hashText(Attribute(attributes.getDictionary(op.getContext()))));
  for (Value operand : op.getOperands())
    append(key, get(operand));
  if (isa<RepeatInterface>(op))
    numberLoop(op, key);
  for (OpResult result : op.getResults()) {
    SmallVector<uint8_t> own(key);
    append(own, hashText(result.getType()));
    append(own, {result.getResultNumber(), 0});
    set(result, hash(own));
  }
}

void Numbering::run(Block &block) {
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>())
      number(op);
}

void Numbering::numberLoop(Operation &op, SmallVectorImpl<uint8_t> &key) {
  Block &body = op.getRegion(0).front();
  for (BlockArgument argument : body.getArguments()) {
    SmallVector<uint8_t> own(key.begin(), key.end());
    append(own, {argument.getArgNumber(), 1});
    set(argument, hash(own));
  }
  run(body);
  for (Value handedOn : body.getTerminator()->getOperands())
    append(key, get(handedOn));
}

StepFingerprint lowtide::fingerprintStep(func::FuncOp step) {
  Numbering numbering;
  Builder b(step.getContext());
  auto label = [&](Attribute binding, unsigned position) {
    return binding ? binding : Attribute(b.getI64IntegerAttr(position));
  };
  for (BlockArgument arg : step.getArguments()) {
    unsigned i = arg.getArgNumber();
    numbering.set(arg, numbering.hashText(label(step.getArgAttr(i, "train.binding"), i)));
  }
  Block &block = step.getBody().front();
  numbering.run(block);
  StepFingerprint fingerprint;
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands()))
    fingerprint.results.push_back(
        {label(step.getResultAttr(i, "train.binding"), i), numbering.get(value), value.getLoc()});
  return fingerprint;
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
    outcome = emitError(result.loc) << what << " changed the value of " << result.binding << " in @"
                                    << step.getSymName() << ", which it must not";
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
