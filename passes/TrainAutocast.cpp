//===- TrainAutocast.cpp - 16-bit storage, f32 arithmetic -----------------===//
//
// Reads the flag and the overrides, rewrites every entry point (Autocast.h), and says what runs in which precision.
//
//===----------------------------------------------------------------------===//

#include "Autocast.h"
#include "LayerNames.h"
#include "StepPass.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Dialect/Train/TrainOptions.h"
#include "lowtide/Interfaces/ExportNames.h"
#include "lowtide/Support/DiagnosticFigures.h"
#include "lowtide/Support/Failure.h"
#include "lowtide/Support/OptionChoices.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINAUTOCAST
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

namespace {
/// `PATTERN[,PATTERN]=f32` or `=<the 16-bit type>`.
struct OverrideRule {
  train::GroupRule layers; ///< its patterns
  PrecisionOverride precision = PrecisionOverride::None;
  SmallVector<bool> matched; ///< its patterns that mean a layer
};

/// What the table says about ops of one kind.
struct TableRow {
  unsigned ops = 0;
  PrecisionPolicy policy = PrecisionPolicy::Follow;
  PrecisionOverride told = PrecisionOverride::None;
};
} // namespace

static StringRef describe(PrecisionPolicy policy) {
  switch (policy) {
  case PrecisionPolicy::Low:
    return "16-bit operands, sums in f32";
  case PrecisionPolicy::High:
    return "f32: sums, norms, losses, functions";
  case PrecisionPolicy::Follow:
    return "as its operands are kept; arithmetic in f32";
  }
  return "";
}

namespace {
struct TrainAutocast : StepPass<lowtide::impl::TrainAutocastBase<TrainAutocast>> {
  using StepPass::StepPass;

  /// An error of a flag, which has no place.
  InFlightDiagnostic refuse() { return emitError(UnknownLoc::get(&getContext())); }

  LogicalResult readPrecision() {
    if (failed(checkOptions(
            getOperation(),
            {{"precision", precision}, {"frozen-weights", frozenWeights}, {"precision-override", precisionOverrides}})))
      return failure();
    StringRef name = precision;
    pure = !name.consume_front("mixed-");
    Builder b(&getContext());
    narrow = name == "bf16" ? FloatType(b.getBF16Type()) : FloatType(b.getF16Type());
    narrowName = name.str();
    return success();
  }

  /// Whether frozen weights are bound in 16 bits.
  LogicalResult readFrozenWeights() {
    // What has no codes, and is only read in 16 bits, is held in these.
    const bool isCoded = isCodedStorage(frozenWeights);
    if (isCoded || frozenWeights == "auto" || frozenWeights == "f32" || frozenWeights == narrowName) {
      narrowsFrozen = frozenWeights != "f32";
      return success();
    }
    return refuse() << "frozen-weights: '" << frozenWeights << "' is neither f32 nor " << narrowName
                    << ", in which a step of precision " << precision << " reads weights";
  }

  LogicalResult readOverrides() {
    for (StringRef text : llvm::split(StringRef(precisionOverrides), ';')) {
      if (text.trim().empty())
        continue;
      auto [patterns, type] = text.rsplit('=');
      OverrideRule rule;
      rule.layers.text = text.str();
      if (type == "f32")
        rule.precision = PrecisionOverride::Wide;
      else if (type == narrowName)
        rule.precision = PrecisionOverride::Narrow;
      else
        return refuse() << "precision-override: '" << text
                        << "' is not of the form PATTERN,PATTERN=TYPE with TYPE f32 or " << narrowName;
      if (llvm::Error error = train::parsePatterns(patterns, rule.layers.patterns))
        return refuse() << "precision-override: " << llvm::toString(std::move(error));
      rule.matched.resize(rule.layers.patterns.size());
      rules.push_back(std::move(rule));
    }
    return success();
  }

  PrecisionOverride findOverride(Operation *op) {
    // What goes back into the file is as exact as the parameters are.
    if (isExportEntry(op->getParentOfType<func::FuncOp>().getSymName()))
      return PrecisionOverride::Wide;
    if (rules.empty())
      return PrecisionOverride::None;
    auto [entry, isNew] = overrideOf.try_emplace(op->getLoc(), PrecisionOverride::None);
    if (isNew)
      for (const std::string &name : getLayerNames(op->getLoc()))
        for (OverrideRule &rule : rules) {
          for (auto [i, pattern] : llvm::enumerate(rule.layers.patterns))
            rule.matched[i] = rule.matched[i] || train::matchesLayer(pattern, name);
          if (entry->second == PrecisionOverride::None && rule.layers.matches(name))
            entry->second = rule.precision;
        }
    return entry->second;
  }

  /// Refuses what is not a step: its values have no number of elements.
  LogicalResult checkValues(func::FuncOp step) {
    auto check = [&](Value value) {
      auto tensor = dyn_cast<RankedTensorType>(value.getType());
      if (tensor && tensor.hasStaticShape())
        return success();
      return LogicalResult(emitError(value.getLoc())
                           << "@" << step.getSymName() << " holds a " << value.getType()
                           << "; train-autocast takes steps, whose values are tensors of static shape");
    };
    for (BlockArgument argument : step.getArguments())
      if (failed(check(argument)))
        return failure();
    for (Operation &op : step.getBody().front())
      for (Value result : op.getResults())
        if (failed(check(result)))
          return failure();
    return success();
  }

  void collect(func::FuncOp step, llvm::MapVector<std::pair<StringRef, int>, TableRow> &table) {
    for (Operation &op : step.getBody().front().without_terminator()) {
      auto facts = dyn_cast<FactsInterface>(op);
      bool computesFloats =
          llvm::any_of(op.getOperandTypes(), [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); });
      if (!facts || !computesFloats)
        continue;
      PrecisionOverride told = findOverride(&op);
      TableRow &row = table[{op.getName().getStringRef(), static_cast<int>(told)}];
      ++row.ops;
      row.policy = facts.getFacts().precision;
      row.told = told;
    }
  }

  void report(func::FuncOp step, const Autocast &cast,
              const llvm::MapVector<std::pair<StringRef, int>, TableRow> &table) {
    InFlightDiagnostic remark = step.emitRemark("@")
                                << step.getSymName() << " in " << precision << ": " << cast.numNarrowed
                                << " values rounded, " << cast.numRemade
                                << " recomputed after the loss, saved activations " << cast.savedBytesBefore
                                << " bytes → " << cast.savedBytes << " bytes";
    attachFigures(remark, {{"saved_bytes_before", cast.savedBytesBefore}, {"saved_bytes", cast.savedBytes}});
    for (PrecisionPolicy policy : {PrecisionPolicy::Low, PrecisionPolicy::High, PrecisionPolicy::Follow}) {
      SmallVector<std::string> kinds;
      for (const auto &[key, row] : table)
        if (row.policy == policy && row.told == PrecisionOverride::None)
          kinds.push_back((key.first + " ×" + Twine(row.ops)).str());
      if (!kinds.empty())
        remark.attachNote(UnknownLoc::get(&getContext())) << describe(policy) << ": " << llvm::join(kinds, ", ");
    }
    for (PrecisionOverride told : {PrecisionOverride::Wide, PrecisionOverride::Narrow}) {
      SmallVector<std::string> kinds;
      for (const auto &[key, row] : table)
        if (row.told == told)
          kinds.push_back((key.first + " ×" + Twine(row.ops)).str());
      if (!kinds.empty())
        remark.attachNote(UnknownLoc::get(&getContext()))
            << (told == PrecisionOverride::Wide ? "f32" : "16 bits") << ", as told: " << llvm::join(kinds, ", ");
    }
  }

  /// Frozen weights that every step which binds them only reads rounded: one binding has one type in all of them.
  llvm::DenseSet<Attribute> findRoundedConstants() {
    llvm::DenseSet<Attribute> found, readWide;
    for (func::FuncOp step : findSteps()) {
      Autocast cast(step, narrow, pure, [&](Operation *op) { return findOverride(op); });
      llvm::DenseSet<Attribute> rounded;
      for (BindingInterface binding : cast.findRoundedConstants())
        rounded.insert(binding);
      for (unsigned i = 0; i < step.getNumArguments(); ++i)
        if (Attribute binding = step.getArgAttr(i, train::bindingAttrName); binding && !step.getArgument(i).use_empty())
          (rounded.contains(binding) ? found : readWide).insert(binding);
    }
    for (Attribute binding : readWide)
      found.erase(binding);
    return found;
  }

  /// Where parameters stay f32, so does what checkpoints hold of the others.
  void keepOriginals(func::FuncOp step, const llvm::DenseSet<Attribute> &stored) {
    Builder b(&getContext());
    train::SignatureGrowth growth(step);
    for (unsigned i = 0; i < step.getNumArguments(); ++i)
      if (stored.contains(train::getArgBinding(step, i)))
        growth.setArgAttr(i, train::codedAttrName,
                          b.getDictionaryAttr(b.getNamedAttr("keeps_original", b.getUnitAttr())));
    growth.finish();
  }

  void runOnSteps() override {
    if (failed(readPrecision()))
      return signalPassFailure();
    if (!isNarrow(precision))
      return;
    if (failed(readFrozenWeights()) || failed(readOverrides())) {
      setFailure(getOperation(), FailureKind::Usage);
      return signalPassFailure();
    }
    for (func::FuncOp step : findSteps())
      if (failed(checkValues(step)))
        return signalPassFailure();
    const llvm::DenseSet<Attribute> stored = narrowsFrozen ? findRoundedConstants() : llvm::DenseSet<Attribute>();
    for (func::FuncOp step : findSteps()) {
      llvm::MapVector<std::pair<StringRef, int>, TableRow> table;
      collect(step, table);
      Autocast cast(step, narrow, pure, [&](Operation *op) { return findOverride(op); });
      cast.run(stored);
      if (!pure)
        keepOriginals(step, stored);
      numNarrowed += cast.numNarrowed;
      numWidened += cast.numWidened;
      numRemade += cast.numRemade;
      if (failed(checkTypesAgree(step,
                                 "cannot be cast to " + precision +
                                     ": train-autocast takes a step before its kernels and library calls are formed")))
        return signalPassFailure();
      report(step, cast, table);
    }
    for (const OverrideRule &rule : rules)
      for (auto [matched, pattern] : llvm::zip_equal(rule.matched, rule.layers.patterns))
        if (!matched) {
          refuse() << "precision-override: " << train::describeUnmatched(pattern) << " among the layers";
          setFailure(getOperation(), FailureKind::Usage);
          return signalPassFailure();
        }
  }

  SmallVector<func::FuncOp> findSteps() {
    return llvm::filter_to_vector(getOperation().getOps<func::FuncOp>(),
                                  [](func::FuncOp step) { return !step.isExternal() && step.getBody().hasOneBlock(); });
  }

  FloatType narrow;
  std::string narrowName;
  bool pure = false, narrowsFrozen = false;
  std::vector<OverrideRule> rules;
  llvm::DenseMap<Location, PrecisionOverride> overrideOf;
};
} // namespace
