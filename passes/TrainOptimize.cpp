//===- TrainOptimize.cpp - adds the optimizer to a step ---------*- C++ -*-===//
//
// Builds @train from @gradient: one update per parameter, in place, as early as
// it may be.
//
//===----------------------------------------------------------------------===//

#include "HiddenMatrices.h"
#include "StepBytes.h"
#include "StepPass.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/LossScaling.h"
#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Dialect/Train/TrainOptions.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Support/Failure.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINOPTIMIZE
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

/// The last op that reads the bytes of `value`, through views too; the
/// terminator does not count.
static Operation *findLastReader(Value value) {
  Operation *last = nullptr;
  SmallVector<Value> names = {value};
  while (!names.empty()) {
    for (Operation *user : names.pop_back_val().getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>())
        continue;
      if (!last || last->isBeforeInBlock(user))
        last = user;
      if (auto facts = dyn_cast<FactsInterface>(user); facts && facts.getFacts().aliasing == Aliasing::View)
        names.append(user->result_begin(), user->result_end());
    }
  }
  return last;
}

namespace {
class UpdateWriter {
public:
  UpdateWriter(func::FuncOp step, const train::TrainOptions &options)
      : step(step), growth(step), context(step.getContext()), options(options) {
    if (!options.fallback.empty())
      hiddenMatrices = findHiddenMatrices(step);
    std::optional<unsigned> loss = train::findResult<train::MetricAttr>(step, "loss");
    bool isDouble = loss && getElementTypeOrSelf(step.getFunctionType().getResult(*loss)).isF64();
    Builder b(context);
    lr = train::getOrAppendScalar(step, rateScalar,
                                  RankedTensorType::get({}, isDouble ? b.getF64Type() : b.getF32Type()));
    stepNumber = scheduled = train::getOrAppendScalar(step, stepScalar, RankedTensorType::get({}, b.getI64Type()));
    if (std::optional<unsigned> result = train::findResult<train::OutputAttr>(step, train::finiteName))
      finite = step.getBody().front().getTerminator()->getOperand(*result);
    // Steps that made no update do not count for bias corrections.
    if (std::optional<unsigned> skipped = train::findArg<train::StateAttr>(step, train::skippedName)) {
      OpBuilder builder = OpBuilder::atBlockBegin(&step.getBody().front());
      nn::Expr number(builder, step.getLoc(), stepNumber);
      stepNumber = number - number.with(step.getArgument(*skipped));
    }
  }

  /// Adds the update of argument `number`, whose gradient is result `gradient`.
  LogicalResult add(unsigned number, Value gradient) {
    BlockArgument param = step.getArgument(number);
    auto binding = cast<train::ParamAttr>(train::getArgBinding(step, number));
    const train::GroupRule *group = options.findGroup(train::listNames(step, number));
    const bool isHiddenMatrix = !hiddenMatrices.empty() && hiddenMatrices[number];
    const train::OptimizerInfo optimizer =
        *train::findOptimizer(context, options.chooseOptimizer(group, isHiddenMatrix));
    std::map<std::string, double> values = options.resolve(context, optimizer.name, group);
    if (!optimizer.traits.fallback.empty() && cast<RankedTensorType>(param.getType()).getRank() != 2)
      return emitError(param.getLoc()) << "group: " << optimizer.name << " updates matrices, and '"
                                       << binding.getName().getValue() << "' is " << param.getType()
                                       << "; give its group optimizer=" << optimizer.traits.fallback;
    ++counts[optimizer.name];

    OpBuilder builder(context);
    setInsertionPoint(builder, param, gradient);
    // A file may hold its parameters, and so their gradients, in 16 bits: updates compute in the width of their state.
    RankedTensorType wide = train::getStateType(param.getType());
    if (gradient.getType() != wide)
      gradient = nn::cast(nn::Expr(builder, param.getLoc(), gradient), wide.getElementType());
    train::UpdateOperands operands{param, gradient, lr, stepNumber, {}, {}};
    if (std::optional<double> rate = options.findRate(optimizer.name, group);
        rate && options.schedule.endsAtOneRate() && *rate != options.schedule.lr) {
      operands.lr = findRate(*rate);
      values["lr_scale"] = 1.0;
    }
    if (optimizer.traits.readsPermutation)
      operands.permutation = step.getArgAttrOfType<DenseI64ArrayAttr>(number, "onnx.transposed");
    const train::ParamShape shape = train::getParamShape(wide, operands.permutation);
    SmallVector<Attribute> stateBindings;
    for (const train::StateSlot &slot : optimizer.listSlots(values, shape)) {
      auto name = builder.getStringAttr(binding.getName().getValue() + "." + slot.name);
      stateBindings.push_back(train::StateAttr::get(
          context, name, slot.initial == 0.0 ? FloatAttr() : builder.getF64FloatAttr(slot.initial),
          /*fromFile=*/false));
      operands.state.push_back(
          growth.appendArg(train::getSlotType(slot, shape, wide), stateBindings.back(), param.getLoc()));
      if (slot.isDifferenced)
        growth.setArgAttr(cast<BlockArgument>(operands.state.back()).getArgNumber(), storedAsIsAttrName,
                          builder.getUnitAttr());
    }
    Operation *update =
        train::buildUpdate(builder, param.getLoc(), optimizer, operands, values, options.convention == "onnx");
    auto commit = [&](Value updated, Value old) -> Value {
      return finite ? train::CommitOp::create(builder, param.getLoc(), old.getType(), finite, updated, old) : updated;
    };
    growth.appendResult(commit(update->getResult(0), param), binding);
    for (auto [i, state] : llvm::enumerate(stateBindings))
      growth.appendResult(commit(update->getResult(i + 1), operands.state[i]), state);
    return success();
  }

  bool hasUpdatesBy(StringRef optimizer) const { return counts.contains(optimizer); }
  std::string listOptimizers() const {
    return llvm::join(llvm::map_range(counts, [](const auto &count) { return count.first.str(); }), ", ");
  }
  /// "12 updates by muon, 9 by adamw".
  std::string describeUpdates() const {
    if (counts.empty())
      return "0 updates by " + options.optimizer;
    std::string text;
    for (const auto &[name, count] : counts)
      text +=
          (text.empty() ? "" : ", ") + std::to_string(count) + (text.empty() ? " updates by " : " by ") + name.str();
    return text;
  }

  /// Gives the step the arguments and results of all updates.
  void finish() { growth.finish(); }

private:
  /// The rate of a group that starts from `rate`: its part of the warm-up, then down to where all others end.
  Value findRate(double rate) {
    Value &known = rates[rate];
    if (known)
      return known;
    const train::ScheduleOptions &schedule = options.schedule;
    OpBuilder builder = OpBuilder::atBlockBegin(&step.getBody().front());
    Type f64 = builder.getF64Type();
    nn::Expr all = nn::cast(nn::Expr(builder, step.getLoc(), lr), f64);
    nn::Expr own = (all - schedule.minLr) * ((rate - schedule.minLr) / (schedule.lr - schedule.minLr)) + schedule.minLr;
    if (schedule.warmupSteps) {
      nn::Expr number = nn::cast(nn::Expr(builder, step.getLoc(), scheduled), f64);
      nn::Expr isWarmUp = nn::less(number, static_cast<double>(schedule.warmupSteps));
      own = nn::select(isWarmUp, all * (rate / schedule.lr), own);
    }
    return known = own;
  }

  /// After the gradient, and after the last read of the parameter that the
  /// update overwrites.
  void setInsertionPoint(OpBuilder &builder, Value param, Value gradient) {
    Operation *after = gradient.getDefiningOp(), *reader = findLastReader(param);
    if (reader && (!after || after->isBeforeInBlock(reader)))
      after = reader;
    if (after)
      builder.setInsertionPointAfter(after);
    else
      builder.setInsertionPointToStart(&step.getBody().front());
  }

  func::FuncOp step;
  train::SignatureGrowth growth;
  MLIRContext *context;
  const train::TrainOptions &options;
  /// By argument; empty: the optimizer takes every parameter.
  llvm::BitVector hiddenMatrices;
  /// Optimizer -> parameters.
  llvm::MapVector<StringRef, unsigned> counts;
  /// `scheduled`: the step's number, by which a run looks up its rate; `stepNumber`: that of the update.
  Value lr, scheduled, stepNumber;
  std::map<double, Value> rates;
  /// Whether the step may be committed; null: always.
  Value finite;
};

struct TrainOptimize : StepPass<lowtide::impl::TrainOptimizeBase<TrainOptimize>> {
  using StepPass::StepPass;

  llvm::Error readOptions(train::TrainOptions &options) {
    std::pair<StringRef, StringRef> flags[] = {
        {"optimizer", optimizer},      {"convention", convention},  {"lr", lr},       {"schedule", schedule},
        {"warmup_steps", warmupSteps}, {"total_steps", totalSteps}, {"min_lr", minLr}};
    for (auto [flag, value] : flags)
      if (llvm::Error error = options.set(flag, value))
        return error;
    for (StringRef text : {StringRef(settings), StringRef(scheduleSettings)})
      for (StringRef setting : llvm::split(text, ';'))
        if (!setting.empty())
          if (llvm::Error error = options.set(setting.split('=').first, setting.split('=').second))
            return error;
    if (!fallback.empty())
      if (llvm::Error error = options.set("fallback", fallback))
        return error;
    if (!groups.empty())
      if (llvm::Error error = options.set("group", groups))
        return error;
    return options.finish(&getContext());
  }

  /// Every pattern of a group means a parameter.
  LogicalResult checkGroups(func::FuncOp step, const train::TrainOptions &options) {
    std::vector<StringRef> names;
    for (unsigned i = 0; i < step.getNumArguments(); ++i)
      if (isa_and_nonnull<train::ParamAttr>(train::getArgBinding(step, i)))
        llvm::append_range(names, train::listNames(step, i));
    for (const train::GroupRule &rule : options.groups)
      for (const NamePattern &pattern : rule.patterns)
        if (llvm::none_of(names, [&](StringRef name) { return train::matchesLayer(pattern, name); })) {
          InFlightDiagnostic error = emitError(UnknownLoc::get(&getContext()))
                                     << "group: " << train::describeUnmatched(pattern)
                                     << " among the parameters that are trained"
                                     << suggestName(pattern.getText(), names);
          error.attachNote() << "leave the pattern out; 'lowtide check' lists the parameters";
          return error;
        }
    return success();
  }

  void warnAboutEmptyGroups(func::FuncOp step, const train::TrainOptions &options) {
    for (const train::GroupRule &rule : options.groups)
      if (llvm::none_of(llvm::seq(step.getNumArguments()), [&](unsigned i) {
            auto group = step.getArgAttrOfType<StringAttr>(i, train::groupAttrName);
            return group && group.getValue() == rule.text;
          }))
        step.emitWarning("group '") << rule.text << "' has no parameter: earlier groups took them";
  }

  LogicalResult addUpdates(func::FuncOp step, const train::TrainOptions &options) {
    unsigned arguments = step.getNumArguments();
    UpdateWriter writer(step, options);
    llvm::DenseMap<StringAttr, Value> gradients;
    for (auto [i, value] : llvm::enumerate(step.getBody().front().getTerminator()->getOperands()))
      if (auto gradient = dyn_cast_or_null<train::GradientAttr>(train::getResultBinding(step, i)))
        gradients.try_emplace(gradient.getParameter(), value);
    unsigned updates = 0;
    for (unsigned number = 0; number < arguments; ++number) {
      auto binding = dyn_cast_or_null<train::ParamAttr>(train::getArgBinding(step, number));
      if (!binding || step.getArgAttr(number, train::unreachedAttrName))
        continue;
      if (Value gradient = gradients.lookup(binding.getName())) {
        if (failed(writer.add(number, gradient))) {
          setFailure(getOperation(), FailureKind::Usage);
          return failure();
        }
        ++updates;
      }
    }
    writer.finish();
    if (updates && !options.fallback.empty() && !writer.hasUpdatesBy(options.optimizer))
      step.emitWarning("--optimizer=") << options.optimizer << " updates hidden matrices, and none of the " << updates
                                       << " parameters that are trained is one: all are updated by "
                                       << writer.listOptimizers()
                                       << "; --group='PATTERN:optimizer=" << options.optimizer
                                       << "' gives it the matrices of a pattern";
    train::eraseResults(step, [](Attribute binding) {
      auto output = dyn_cast_or_null<train::OutputAttr>(binding);
      return isa_and_nonnull<train::GradientAttr>(binding) || (output && output.getName() == train::finiteName);
    });
    warnAboutEmptyGroups(step, options);
    numUpdates += updates;
    uint64_t stateBytes = 0;
    for (unsigned number = arguments; number < step.getNumArguments(); ++number)
      if (isa_and_nonnull<train::StateAttr>(train::getArgBinding(step, number)))
        stateBytes += getTensorBytes(step.getArgument(number).getType()).value_or(0);
    step.emitRemark("@") << step.getSymName() << ": " << writer.describeUpdates() << ", which keep "
                         << formatBytes(stateBytes);
    return success();
  }

  /// Every entry point knows a parameter's group: the layout of the arenas is theirs together.
  void nameGroups(const train::TrainOptions &options) {
    for (auto step : getOperation().getOps<func::FuncOp>()) {
      train::SignatureGrowth growth(step);
      for (unsigned i = 0; i < step.getNumArguments(); ++i)
        if (isa_and_nonnull<train::ParamAttr>(train::getArgBinding(step, i)))
          if (const train::GroupRule *group = options.findGroup(train::listNames(step, i)))
            growth.setArgAttr(i, train::groupAttrName, StringAttr::get(&getContext(), group->text));
      growth.finish();
    }
  }

  void runOnSteps() override {
    ModuleOp module = getOperation();
    if (failed(checkOptions(module, {{"optimizer", optimizer},
                                     {"convention", convention},
                                     {"lr", lr},
                                     {"schedule", schedule},
                                     {"warmup-steps", warmupSteps},
                                     {"total-steps", totalSteps},
                                     {"min-lr", minLr},
                                     {"fallback", fallback},
                                     {"group", groups}})))
      return signalPassFailure();
    train::TrainOptions options;
    if (llvm::Error error = readOptions(options)) {
      emitError(UnknownLoc::get(&getContext())) << llvm::toString(std::move(error)); // a flag has no place
      setFailure(module, FailureKind::Usage);
      return signalPassFailure();
    }
    auto gradient = module.lookupSymbol<func::FuncOp>("gradient");
    if (!gradient) {
      module.emitError("there is no function @gradient to add updates to");
      return signalPassFailure();
    }
    if (auto made = module.lookupSymbol("train")) {
      made->emitError("there is a @train already: updates are added once");
      return signalPassFailure();
    }
    llvm::DenseMap<StringAttr, Type> parameters;
    for (auto [i, type] : llvm::enumerate(gradient.getArgumentTypes()))
      if (auto binding = dyn_cast_or_null<train::ParamAttr>(train::getArgBinding(gradient, i)))
        parameters.try_emplace(binding.getName(), type);
    for (unsigned i = 0; i < gradient.getNumResults(); ++i) {
      auto binding = dyn_cast_or_null<train::GradientAttr>(train::getResultBinding(gradient, i));
      auto tensor = dyn_cast<RankedTensorType>(gradient.getResultTypes()[i]);
      if (!binding)
        continue;
      if (!tensor || !tensor.hasStaticShape() || !isa<FloatType>(tensor.getElementType())) {
        gradient.emitError("result ") << i << " of @gradient is called a gradient and is "
                                      << gradient.getResultTypes()[i]
                                      << "; gradients are float tensors of static shape";
        return signalPassFailure();
      }
      const Type parameter = parameters.lookup(binding.getParameter());
      auto type = parameter ? dyn_cast<RankedTensorType>(parameter) : tensor;
      if (!type || type.getShape() != tensor.getShape()) {
        gradient.emitError("result ") << i << " of @gradient is " << tensor
                                      << ", the parameter that it is the gradient of " << parameter;
        return signalPassFailure();
      }
    }
    func::FuncOp step = keepGradient ? gradient.clone() : gradient;
    if (keepGradient) {
      module.push_back(step);
      // Looking at gradients changes nothing.
      train::eraseResults(gradient, [](Attribute binding) {
        auto output = dyn_cast_or_null<train::OutputAttr>(binding);
        return isa_and_nonnull<train::StateAttr>(binding) || (output && output.getName() == train::finiteName);
      });
    }
    step.setSymName("train");
    if (failed(checkGroups(step, options))) {
      setFailure(module, FailureKind::Usage);
      return signalPassFailure();
    }
    nameGroups(options);
    if (failed(addUpdates(step, options)))
      return signalPassFailure();
    module->setAttr(train::optimizerAttrName, options.getOptimizerAttr(&getContext()));
    module->setAttr(train::scheduleAttrName, options.getScheduleAttr(&getContext()));
  }
};
} // namespace
