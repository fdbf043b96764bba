//===- Legalize.cpp - from the onnx dialect to nn -------------------------===//
//
// Signature of the forward function, the walk, the loss, the results.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Legalize.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Legalize/CutOutputs.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/LossOption.h"
#include "lowtide/Legalize/Rules.h"
#include "lowtide/Recover/NodeNotes.h"

using namespace mlir;
using namespace lowtide;

/// The dimension of an input that counts samples, as the file's symbols tell; nullopt: they do not.
static std::optional<int64_t> findBatchDim(func::FuncOp model, unsigned i) {
  auto dim = model.getArgAttrOfType<IntegerAttr>(i, "onnx.batch_dim");
  return dim ? std::optional(dim.getInt()) : std::nullopt;
}

/// Samples in a batch: what the symbols tell, or dimension 0 of the first input that has one; 0 when there is none.
static int64_t countSamples(func::FuncOp model) {
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (std::optional<int64_t> dim = findBatchDim(model, i); dim && *dim >= 0)
      return cast<RankedTensorType>(model.getArgument(i).getType()).getDimSize(*dim);
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    auto type = dyn_cast<RankedTensorType>(model.getArgument(i).getType());
    if (model.getArgAttr(i, "onnx.input") && type && type.getRank())
      return type.getDimSize(0);
  }
  return 0;
}

/// A binding as the importer read it from a training step; null for a kind that does not exist.
static Attribute convertBinding(DictionaryAttr stated, bool hasInitializer) {
  MLIRContext *context = stated.getContext();
  StringRef kind = stated.getAs<StringAttr>("kind");
  StringAttr name = stated.getAs<StringAttr>("name");
  auto initial = stated.getAs<FloatAttr>("initial");
  if (kind == "param")
    return train::ParamAttr::get(context, name);
  if (kind == "state")
    return train::StateAttr::get(
        context, name, hasInitializer || initial.getValueAsDouble() == 0 ? FloatAttr() : initial, hasInitializer);
  if (kind == "constant")
    return train::ConstantAttr::get(context, name);
  if (kind == "batch")
    return train::BatchAttr::get(context, name, stated.getAs<IntegerAttr>("batch_dim").getInt());
  if (kind == "scalar")
    return train::ScalarAttr::get(context, name);
  if (kind == "metric")
    return train::MetricAttr::get(context, name);
  if (kind == "gradient") // of no parameter: an output like others
    if (StringRef parameter = gradientParameter(name.getValue()); !parameter.empty())
      return train::GradientAttr::get(context, StringAttr::get(context, parameter));
  return kind == "output" ? Attribute(train::OutputAttr::get(context, name)) : Attribute();
}

static bool isOutputName(func::FuncOp model, StringRef name) {
  for (unsigned i = 0; i < model.getNumResults(); ++i)
    if (auto output = model.getResultAttrOfType<StringAttr>(i, "onnx.output"); output && output.getValue() == name)
      return true;
  return false;
}

/// What argument `i` of the model is bound to. An input of another length than the first holds no samples.
static FailureOr<Attribute> bindArgument(func::FuncOp model, unsigned i) {
  MLIRContext *context = model.getContext();
  auto text = [&](StringRef name) { return model.getArgAttrOfType<StringAttr>(i, name); };
  auto type = dyn_cast<RankedTensorType>(model.getArgument(i).getType());
  if (auto stated = model.getArgAttrOfType<DictionaryAttr>(i, "onnx.binding"))
    if (Attribute binding = convertBinding(stated, text("onnx.initializer") != nullptr))
      return binding;
  if (StringAttr input = text("onnx.input")) {
    if (!type) {
      emitError(model.getArgument(i).getLoc())
          << "unsupported: graph input '" << input.getValue() << "' is not a tensor";
      return failure();
    }
    if (type.getNumElements() == 0) {
      emitError(model.getArgument(i).getLoc())
          << "unsupported: graph input '" << input.getValue() << "' has no elements: " << type;
      return failure();
    }
    if (std::optional<int64_t> dim = findBatchDim(model, i))
      return Attribute(train::BatchAttr::get(context, input, *dim));
    bool holdsSamples = type.getRank() && type.getDimSize(0) == countSamples(model);
    return Attribute(train::BatchAttr::get(context, input, holdsSamples ? 0 : -1));
  }
  StringAttr initializer = text("onnx.initializer"), role = text("onnx.role"), name = text("onnx.parameter");
  if (!initializer || !role) {
    model.emitError() << "argument " << i << " has neither 'onnx.input' nor 'onnx.initializer' and 'onnx.role'";
    return failure();
  }
  if (!name)
    name = initializer;
  // A constant that is an output goes by another name: one step's bindings have one each.
  if (role.getValue() == "constant" && isOutputName(model, name.getValue()))
    name = StringAttr::get(context, name.getValue() + "@constant");
  if (role.getValue() == "parameter" && type && isa<FloatType>(type.getElementType()))
    return Attribute(train::ParamAttr::get(context, name));
  if (role.getValue() == "state")
    return Attribute(train::StateAttr::get(context, name, FloatAttr(), /*fromFile=*/true));
  return Attribute(train::ConstantAttr::get(context, name));
}

/// The forward function with its arguments, next to the model.
static FailureOr<func::FuncOp> declareForward(func::FuncOp model, const LegalizeOptions &options) {
  SmallVector<DictionaryAttr> argAttrs;
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    FailureOr<Attribute> binding = bindArgument(model, i);
    if (failed(binding))
      return failure();
    NamedAttrList attrs(model.getArgAttrDict(i));
    attrs.set(train::bindingAttrName, *binding);
    argAttrs.push_back(attrs.getDictionary(model.getContext()));
  }
  OpBuilder builder(model);
  auto type = builder.getFunctionType(model.getArgumentTypes(), {});
  auto forward = func::FuncOp::create(builder, model.getLoc(), options.entry, type);
  for (NamedAttribute attr : model->getDiscardableAttrs())
    forward->setAttr(attr.getName(), attr.getValue());
  forward.setAllArgAttrs(argAttrs);
  Block *entry = forward.addEntryBlock();
  for (auto [to, from] : llvm::zip(entry->getArguments(), model.getArguments()))
    to.setLoc(from.getLoc());
  return forward;
}

/// Removes what nothing reads: dead ops, then constants and parameters without a use.
static void dropDead(LegalizeContext &context) {
  Block &block = context.function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (unsigned i = context.function.getNumArguments(); i-- > 0;) {
    BlockArgument argument = block.getArgument(i);
    auto binding = context.function.getArgAttr(i, train::bindingAttrName);
    const bool isUpdated =
        llvm::any_of(context.getUpdates(), [&](const StateUpdate &update) { return update.state == argument; });
    if (!argument.use_empty() || isUpdated || isa<train::BatchAttr, train::ScalarAttr>(binding))
      continue;
    if (auto param = dyn_cast<train::ParamAttr>(binding))
      emitRemark(argument.getLoc()) << "parameter '" << param.getName().getValue()
                                    << "' does not take part in any output: it is left as it is";
    (void)context.function.eraseArgument(i);
  }
}

/// Refuses what is computed of tensors without elements: there is nothing to compute, and no kernel for it. The model
/// may return one.
static LogicalResult refuseEmpty(LegalizeContext &context, FailureKind &kind) {
  for (Operation &op : context.function.getBody().front())
    for (Value result : op.getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && type.getNumElements() == 0 &&
          !llvm::all_of(result.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); })) {
        emitError(op.getLoc()) << "unsupported: a tensor without elements: " << type;
        kind = FailureKind::Unsupported;
        return failure();
      }
  return success();
}

/// The results of a training step have their bindings from the file. One that updates a state has its argument's.
static LogicalResult addStepResults(func::FuncOp model, LegalizeContext &context, FailureKind &kind) {
  func::FuncOp step = context.function;
  llvm::DenseMap<StringAttr, Attribute> updated;
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    if (auto binding = train::getArgBinding(step, i); isa<train::ParamAttr, train::StateAttr>(binding))
      updated[train::getBindingName(binding)] = binding;
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  auto terminator = cast<func::ReturnOp>(model.getBody().front().getTerminator());
  for (auto [i, output] : llvm::enumerate(terminator.getOperands())) {
    Value value = context.lookup(output).tensor;
    auto name = model.getResultAttrOfType<StringAttr>(i, "onnx.output");
    auto stated = model.getResultAttrOfType<DictionaryAttr>(i, "onnx.binding");
    Attribute binding = stated ? convertBinding(stated, false) : Attribute();
    if (!binding)
      binding = train::OutputAttr::get(context.builder.getContext(), name);
    if (isa<train::ParamAttr, train::StateAttr>(binding))
      binding = updated.lookup(train::getBindingName(binding));
    if (!value || !binding) {
      emitError(output.getLoc()) << "output '" << name.getValue() << "' "
                                 << (value ? "updates a tensor that is no input of the step" : "is a sequence");
      kind = FailureKind::BadInput;
      return failure();
    }
    values.push_back(value);
    types.push_back(value.getType());
    attrs.push_back(context.builder.getDictionaryAttr(context.builder.getNamedAttr(train::bindingAttrName, binding)));
  }
  func::ReturnOp::create(context.builder, terminator.getLoc(), values);
  step.setFunctionType(context.builder.getFunctionType(step.getArgumentTypes(), types));
  step.setAllResultAttrs(attrs);
  dropDead(context);
  return refuseEmpty(context, kind);
}

/// Whether an input, a parameter or a state goes by this name: one step's bindings have one each.
static bool isArgumentName(func::FuncOp model, StringRef wanted) {
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    if (auto input = model.getArgAttrOfType<StringAttr>(i, "onnx.input"); input && input.getValue() == wanted)
      return true;
    auto name = model.getArgAttrOfType<StringAttr>(i, "onnx.parameter");
    auto role = model.getArgAttrOfType<StringAttr>(i, "onnx.role");
    if (name && role && name.getValue() == wanted && role.getValue() != "constant")
      return true;
  }
  return false;
}

/// The program assigns `value` to `buffer` in every training step.
static void assignBuffer(func::FuncOp model, LegalizeContext &context, StringAttr buffer, Value value) {
  if (context.options.mode == TrainingMode::Eval)
    return;
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    auto name = model.getArgAttrOfType<StringAttr>(i, "onnx.parameter");
    auto role = model.getArgAttrOfType<StringAttr>(i, "onnx.role");
    if (!name || name != buffer || !role || role.getValue() != "state")
      continue;
    BlockArgument state = context.function.getArgument(i);
    if (value && value.getType() == state.getType())
      context.updateState(state, value);
    else
      emitWarning(state.getLoc()) << "buffer '" << buffer.getValue()
                                  << "' is assigned by the program, and here it stays as it is: what it would become "
                                     "cannot be compiled, or has another shape";
    return;
  }
}

/// Names each output of the model and adds the loss.
static LogicalResult addResults(func::FuncOp model, LegalizeContext &context, FailureKind &kind) {
  auto terminator = cast<func::ReturnOp>(model.getBody().front().getTerminator());
  SmallVector<NamedOutput> outputs;
  const bool mayCut = canCutOutputs(model, context);
  for (auto [i, value] : llvm::enumerate(terminator.getOperands())) {
    auto name = model.getResultAttrOfType<StringAttr>(i, "onnx.output");
    const Meaning &meaning = context.lookup(value);
    if (auto buffer = model.getResultAttrOfType<StringAttr>(i, assignsAttrName)) {
      assignBuffer(model, context, buffer, meaning.tensor);
      continue;
    }
    const bool isSelected = context.selected.has(meaning.tensor);
    const bool isOutput = meaning.tensor && !isSelected;
    if (!isOutput && mayCut) {
      warnAboutCutOutput(value, name ? name.getValue() : "", context);
      continue;
    }
    if (!isOutput) {
      emitError(value.getLoc()) << "unsupported: graph output '" << (name ? name.getValue() : "") << "' "
                                << (isSelected
                                        ? "has as many rows as data select, and outputs have known sizes; export "
                                          "the module with its loss"
                                        : "is a sequence");
      kind = FailureKind::Unsupported;
      return failure();
    }
    outputs.push_back({name ? name.getValue().str() : "output" + std::to_string(i), meaning.tensor, false});
  }
  if (failed(findLoss(context, outputs))) {
    kind = FailureKind::Usage;
    return failure();
  }

  OpBuilder &builder = context.builder;
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  auto add = [&](Value value, Attribute binding) {
    values.push_back(value);
    types.push_back(value.getType());
    attrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr(train::bindingAttrName, binding)));
  };
  MLIRContext *mlir = builder.getContext();
  for (NamedOutput &output : outputs)
    if (output.isLoss)
      add(output.value, train::MetricAttr::get(mlir, builder.getStringAttr("loss")));
  for (NamedOutput &output : outputs)
    if (!output.isLoss) {
      std::string name = output.name + (isArgumentName(model, output.name) ? "@output" : "");
      add(output.value, train::OutputAttr::get(mlir, builder.getStringAttr(name)));
    }
  for (const StateUpdate &update : context.getUpdates())
    add(update.value, context.function.getArgAttr(update.state.getArgNumber(), train::bindingAttrName));
  func::ReturnOp::create(builder, terminator.getLoc(), values);
  context.function.setFunctionType(builder.getFunctionType(context.function.getArgumentTypes(), types));
  context.function.setAllResultAttrs(attrs);
  dropDead(context);
  return refuseEmpty(context, kind);
}

/// Notes how often the step updates what the counters of the module's state dictionary follow.
static void noteCounters(func::FuncOp model, LegalizeContext &context) {
  auto module = model->getParentOfType<ModuleOp>();
  auto saved = module ? module->getAttrOfType<ArrayAttr>("onnx.saved") : ArrayAttr();
  if (!saved || context.getUpdates().empty())
    return;
  llvm::StringMap<int64_t> counts;
  for (const StateUpdate &update : context.getUpdates())
    counts[train::getBindingName(train::getArgBinding(context.function, update.state.getArgNumber())).getValue()] =
        update.count;
  Builder b(model.getContext());
  SmallVector<Attribute> entries;
  for (auto entry : saved.getAsRange<DictionaryAttr>()) {
    NamedAttrList fields(entry);
    if (auto follows = entry.getAs<StringAttr>("follows"); follows && counts.contains(follows.getValue()))
      fields.set("updates", b.getI64IntegerAttr(counts[follows.getValue()]));
    entries.push_back(fields.getDictionary(model.getContext()));
  }
  module->setAttr("onnx.saved", b.getArrayAttr(entries));
}

/// Says what the nodes of a model became.
static void reportFigures(func::FuncOp model, func::FuncOp made) {
  size_t nodes = 0, ops = 0;
  model.walk([&](onnx::NodeOp) { ++nodes; });
  made.getBody().walk([&](Operation *op) { ops += !op->hasTrait<OpTrait::IsTerminator>(); });
  const size_t parameters = llvm::count_if(llvm::seq(made.getNumArguments()), [&](unsigned number) {
    return isa<train::ParamAttr>(train::getArgBinding(made, number));
  });
  made.emitRemark("@") << made.getSymName() << ": " << nodes << " nodes became " << ops << " ops on " << parameters
                       << " parameters";
}

FailureOr<func::FuncOp> lowtide::legalizeModel(func::FuncOp model, const LegalizeOptions &options,
                                               FailureKind *failure) {
  FailureKind ignored;
  FailureKind &kind = failure ? *failure : ignored;
  kind = FailureKind::BadInput;
  for (BlockArgument input : model.getArguments()) {
    auto tensor = dyn_cast<RankedTensorType>(input.getType());
    if (tensor && tensor.hasStaticShape() && tensor.getElementType().isIntOrFloat())
      continue;
    emitError(input.getLoc()) << "input " << input.getArgNumber() << " of @" << model.getSymName() << " is "
                              << input.getType() << "; inputs are tensors of known sizes, of integers or floats";
    return mlir::failure();
  }
  if (Operation *made = SymbolTable::lookupSymbolIn(model->getParentOp(), options.entry); made && made != model) {
    made->emitError("there is a @") << options.entry << " already: a model is legalized once under a name";
    kind = FailureKind::Usage;
    return mlir::failure();
  }
  FailureOr<func::FuncOp> forward = declareForward(model, options);
  if (mlir::failed(forward))
    return mlir::failure();
  LegalizeContext context(*forward, options);
  auto refuseFlag = [&] {
    kind = FailureKind::Usage;
    forward->erase();
    return mlir::failure();
  };
  if (mlir::failed(context.readFrozenNorms()))
    return refuseFlag();
  Block &body = model.getBody().front();
  for (auto [from, to] : llvm::zip(body.getArguments(), forward->getArguments()))
    context.bind(from, {to, {}});
  context.legalizeBlock(body);
  bool isStep = model->hasAttr("onnx.step");
  if (context.failed() && (isStep || !canCutOutputs(model, context))) {
    kind = context.report();
    forward->erase();
    return mlir::failure();
  }
  if (mlir::failed(isStep ? addStepResults(model, context, kind) : addResults(model, context, kind))) {
    forward->erase();
    return mlir::failure();
  }
  if (mlir::failed(context.checkFrozenNorms()))
    return refuseFlag();
  kind = FailureKind::None;
  noteCounters(model, context);
  if (options.dropout && *options.dropout != 0 && options.mode != TrainingMode::Eval && !context.getNumDropouts())
    emitWarning(model.getLoc())
        << "--dropout meets no dropout that draws: exporters leave it out of files in evaluation "
           "form, and the rate changes nothing";
  reportFigures(model, *forward);
  return forward;
}

const RuleTable &RuleTable::get() {
  static const RuleTable table = [] {
    RuleTable t;
    addElementwiseRules(t);
    addActivationRules(t);
    addComparisonRules(t);
    addMovementRules(t);
    addPadRules(t);
    addShapeRules(t);
    addSelectionRules(t);
    addReductionRules(t);
    addOrderingRules(t);
    addStateRules(t);
    addDeterminantRules(t);
    addContractionRules(t);
    addConvolutionRules(t);
    addPoolingRules(t);
    addNormalizationRules(t);
    addLossRules(t);
    addIndexingRules(t);
    addRandomRules(t);
    addControlRules(t);
    addLoopRules(t);
    addSampleRules(t);
    addSequenceRules(t);
    addAttentionRules(t);
    addResizeRules(t);
    addRecurrentRules(t);
    addContribRules(t);
    addTrainingRules(t);
    addContribAttentionRules(t);
    addContribImageRules(t);
    addSpectralRules(t);
    addRegionRules(t);
    addDeformableRules(t);
    addQuantizedRules(t);
    addPreparationRules(t);
    addRefusals(t);
    return t;
  }();
  return table;
}

static std::string key(StringRef domain, StringRef name) {
  return domain.empty() || domain == "ai.onnx" ? name.str() : (domain + "." + name).str();
}

Rule RuleTable::find(StringRef domain, StringRef name) const { return rules.lookup(key(domain, name)); }

bool RuleTable::mayRowsMeet(StringRef domain, StringRef name) const { return meeting.contains(key(domain, name)); }

std::optional<std::string> RuleTable::findRefusal(StringRef domain, StringRef name) const {
  auto it = refusals.find(key(domain, name));
  return it == refusals.end() ? std::nullopt : std::optional<std::string>(it->second);
}

std::vector<std::string> lowtide::listLegalOperators() {
  std::vector<std::string> names;
  for (const auto &entry : RuleTable::get().all())
    names.push_back(entry.getKey().str());
  llvm::sort(names);
  return names;
}
