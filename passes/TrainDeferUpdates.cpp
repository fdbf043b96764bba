//===- TrainDeferUpdates.cpp - updates in the step after ------------------===//
//
// Update k moves from the end of step k to the beginning of step k + 1:
//
//   1. What an update reads besides parameters, their state and constants is cut: gradients as they are before anything
//      rescales them, and numbers. The step leaves these as pending state.
//   2. The step that begins with the updates makes each before the first op that reads what it changes.
//   3. A flag says whether updates are pending; without it, every value stays what it was. @flush makes them alone.
//
// Nothing reads a parameter before its update, so that every op reads what it would have read.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "StepUpdates.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Storage.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/LossScaling.h"
#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Interfaces/BindingNames.h"
#include "lowtide/Support/Failure.h"
#include "lowtide/Support/StableSort.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINDEFERUPDATES
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

static bool isNumber(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getNumElements() == 1;
}

/// The gradient that a value is made of alone, by views and by ops that rescale it or, where it `mayBeNarrow`, make it
/// wider; the value itself if there is none.
static Value findGivenGradient(Value value, bool mayBeNarrow) {
  Value found = value;
  while (Operation *op = value.getDefiningOp()) {
    auto number = cast<OpResult>(value).getResultNumber();
    auto rescales = dyn_cast<train::GradientsInterface>(op);
    const bool isWidened = mayBeNarrow && op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() == 1 &&
                           getTensorBytes(op->getOperand(0).getType()) < getTensorBytes(value.getType());
    if (rescales && number < rescales.getGradients().size())
      found = value = rescales.getGradients()[number];
    else if (isWidened)
      found = value = op->getOperand(0);
    else if (StepStorage::isView(op))
      value = op->getOperand(0);
    else
      break;
  }
  return found;
}

namespace {
/// The updates of a step, and where they are cut off it.
class Updates {
public:
  explicit Updates(func::FuncOp step) : step(step) {}

  /// Fails, with a diagnostic, where it is not known which gradient changes a parameter, or an update reads more.
  LogicalResult find();

  /// A tensor that updates replace: its argument, and the result that does.
  struct Replaced {
    BlockArgument argument;
    unsigned result;
  };
  ArrayRef<Replaced> getReplaced() const { return replaced; }
  /// What the step leaves, by the values that it is: names of pending state.
  const llvm::MapVector<Value, std::string> &getCuts() const { return cuts; }
  /// Whether the step made updates only if it was finite, and what says so.
  Value getFinite() const { return finite; }
  unsigned getCount() const { return count; }
  /// Constants that updates read.
  const llvm::SetVector<BlockArgument> &getConstants() const { return constants; }
  /// The arguments that the update of `each` reads, itself among them.
  SmallVector<BlockArgument> listRead(const Replaced &each);

  /// The new value of `each`, for what `mapping` has in place of arguments and cuts; what several updates share is
  /// written once.
  Value write(const Replaced &each, OpBuilder &builder, IRMapping &mapping, Value flag);

private:
  /// What a value is made of, besides constants.
  enum class Source : uint8_t { Constant, Step, Updated };
  Source trace(Value value);
  SmallVector<Value> listOperands(Value value);
  LogicalResult cut(Value value);
  void addCut(Value value, std::string name);
  Value write(Value value, OpBuilder &builder, IRMapping &mapping);

  func::FuncOp step;
  SmallVector<Replaced> replaced;
  llvm::DenseSet<Value> arguments;
  llvm::MapVector<Value, std::string> cuts;
  llvm::StringSet<> names;
  llvm::SetVector<BlockArgument> constants;
  llvm::DenseMap<Value, Source> sources;
  llvm::DenseSet<Value> visited;
  Value finite;
  unsigned count = 0;
};
} // namespace

void Updates::addCut(Value value, std::string name) {
  std::string unique = name;
  for (unsigned i = 2; !names.insert(unique).second; ++i)
    unique = name + "." + std::to_string(i);
  cuts.try_emplace(value, unique);
}

/// What a value is made of: of one gradient among several that an op rescales, only this one.
SmallVector<Value> Updates::listOperands(Value value) {
  Operation *op = value.getDefiningOp();
  auto rescales = dyn_cast<train::GradientsInterface>(op);
  const unsigned number = cast<OpResult>(value).getResultNumber();
  if (!rescales || number >= rescales.getGradients().size())
    return SmallVector<Value>(op->getOperands());
  SmallVector<Value> operands{rescales.getGradients()[number]};
  llvm::append_range(operands, op->getOperands().drop_front(rescales.getGradients().size()));
  return operands;
}

Updates::Source Updates::trace(Value value) {
  if (auto known = sources.find(value); known != sources.end())
    return known->second;
  Source source = Source::Constant;
  if (cuts.contains(value)) {
    source = Source::Step;
  } else if (auto argument = dyn_cast<BlockArgument>(value)) {
    const bool isConstant = isa_and_nonnull<train::ConstantAttr>(train::getArgBinding(step, argument.getArgNumber()));
    source = arguments.contains(value) ? Source::Updated : isConstant ? Source::Constant : Source::Step;
  } else if (value.getDefiningOp()->getNumRegions()) {
    source = Source::Step;
  } else {
    for (Value operand : listOperands(value))
      source = std::max(source, trace(operand));
  }
  return sources[value] = source;
}

LogicalResult Updates::cut(Value value) {
  if (!visited.insert(value).second || cuts.contains(value))
    return success();
  auto argument = dyn_cast<BlockArgument>(value);
  Operation *op = value.getDefiningOp();
  if (trace(value) == Source::Step && isNumber(value)) {
    StringRef name = argument ? train::getBindingName(train::getArgBinding(step, argument.getArgNumber())).getValue()
                              : op->getName().stripDialect();
    addCut(value, std::string(pendingPrefix) + name.str());
    return success();
  }
  if (argument && trace(value) == Source::Constant)
    constants.insert(argument);
  if (argument && trace(value) != Source::Step)
    return success();
  if (argument || op->getNumRegions()) {
    InFlightDiagnostic error = step.emitError("unsupported: an update reads ")
                               << value.getType() << " besides its gradient: it cannot wait for the next step";
    error.attachNote(value.getLoc()) << "this is what it reads";
    error.attachNote() << "leave out --updates=deferred";
    return error;
  }
  for (Value operand : listOperands(value))
    if (failed(cut(operand)))
      return failure();
  return success();
}

LogicalResult Updates::find() {
  // Of one sample a bias has a gradient that is no sum, of a batch in parts one that is always wide: all entries hold
  // the same state.
  const bool mayBeNarrow = !step->getParentOp()->hasAttr(entryVariantsAttrName);
  llvm::DenseMap<Attribute, BlockArgument> bound;
  for (BlockArgument argument : step.getArguments()) {
    Attribute binding = train::getArgBinding(step, argument.getArgNumber());
    bound[binding] = argument;
    if (isa_and_nonnull<train::ParamAttr, train::StateAttr, train::ConstantAttr>(binding))
      names.insert(train::getBindingName(binding));
  }
  names.insert(pendingFlag);
  // Everything that is made of what optimizers return.
  llvm::DenseSet<Value> made;
  SmallVector<Value> worklist;
  for (auto update : step.getBody().getOps<train::OptimizerInterface>()) {
    llvm::append_range(worklist, update->getResults());
    ++count;
  }
  while (!worklist.empty())
    if (Value value = worklist.pop_back_val(); made.insert(value).second)
      for (Operation *user : value.getUsers())
        llvm::append_range(worklist, user->getResults());
  Operation *terminator = step.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    Attribute binding = train::getResultBinding(step, i);
    if (made.contains(value) && isa_and_nonnull<train::ParamAttr, train::StateAttr>(binding)) {
      replaced.push_back({bound.at(binding), unsigned(i)});
      arguments.insert(bound.at(binding));
      if (auto commit = StepStorage::getRoot(value).getDefiningOp<train::CommitOp>())
        finite = commit.getFinite();
    } else if (isa_and_nonnull<train::ParamAttr>(binding)) {
      InFlightDiagnostic error = step.emitError("unsupported: the update of '")
                                 << train::getBindingName(binding).getValue()
                                 << "' is part of the file, and which gradient it reads is not known";
      error.attachNote() << "leave out --updates=deferred";
      return error;
    }
  }
  for (auto update : step.getBody().getOps<train::OptimizerInterface>()) {
    train::UpdateOperands operands = train::getUpdateOperands(update);
    Value gradient = findGivenGradient(operands.grad, mayBeNarrow);
    Value parameter = operands.param;
    while (!isa<BlockArgument>(parameter) && parameter.getDefiningOp()->getNumOperands())
      parameter = parameter.getDefiningOp()->getOperand(0);
    std::string name = "gradient";
    if (auto argument = dyn_cast<BlockArgument>(parameter))
      if (Attribute binding = train::getArgBinding(step, argument.getArgNumber()))
        name = gradientName(train::getBindingName(binding).getValue().str());
    if (!cuts.contains(gradient))
      addCut(gradient, std::string(pendingPrefix) + name);
  }
  if (finite && !cuts.contains(finite))
    cuts.try_emplace(finite, std::string(pendingFlag));
  for (const Replaced &each : replaced)
    if (failed(cut(terminator->getOperand(each.result))))
      return failure();
  return success();
}

SmallVector<BlockArgument> Updates::listRead(const Replaced &each) {
  SmallVector<BlockArgument> read{each.argument};
  llvm::DenseSet<Value> seen;
  SmallVector<Value> worklist{step.getBody().front().getTerminator()->getOperand(each.result)};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (cuts.contains(value) || !seen.insert(value).second)
      continue;
    if (arguments.contains(value))
      read.push_back(cast<BlockArgument>(value));
    else if (value.getDefiningOp())
      llvm::append_range(worklist, listOperands(value));
  }
  return read;
}

Value Updates::write(Value value, OpBuilder &builder, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  SmallVector<Value> operands;
  for (Value operand : listOperands(value))
    operands.push_back(write(operand, builder, mapping));
  auto rescales = dyn_cast<train::GradientsInterface>(value.getDefiningOp());
  const unsigned number = cast<OpResult>(value).getResultNumber();
  if (rescales && number < rescales.getGradients().size())
    mapping.map(value, train::buildAlone(builder, rescales, number, operands.front(), ArrayRef(operands).drop_front()));
  else
    builder.clone(*value.getDefiningOp(), mapping);
  return mapping.lookup(value);
}

Value Updates::write(const Replaced &each, OpBuilder &builder, IRMapping &mapping, Value flag) {
  Value value = step.getBody().front().getTerminator()->getOperand(each.result);
  auto commit = StepStorage::getRoot(value).getDefiningOp<train::CommitOp>();
  if (commit && commit.getFinite() == finite && StepStorage::getRoot(commit.getOld()) == each.argument)
    return write(value, builder, mapping);
  // In the shape in which it is updated, so that it becomes part of that kernel.
  value = StepStorage::getRoot(value);
  Value updated = write(value, builder, mapping), old = mapping.lookup(each.argument);
  auto viewAs = [&](Value from, Value like) {
    return nn::regroup(nn::Expr(builder, value.getLoc(), from), cast<RankedTensorType>(like.getType()).getShape())
        .get();
  };
  Value kept = train::CommitOp::create(builder, value.getLoc(), updated.getType(), flag, updated, viewAs(old, updated));
  return viewAs(kept, old);
}

namespace {
struct TrainDeferUpdates : StepPass<lowtide::impl::TrainDeferUpdatesBase<TrainDeferUpdates>> {
  using StepPass::StepPass;

  train::StateAttr getPending(StringRef name) {
    return train::StateAttr::get(&getContext(), StringAttr::get(&getContext(), name), FloatAttr(), /*fromFile=*/false,
                                 /*pending=*/true);
  }
  RankedTensorType getFlagType() { return RankedTensorType::get({}, IntegerType::get(&getContext(), 1)); }

  /// Adds what is pending to the arguments of `to`, where `mapping` then has it; the flag.
  Value addPending(const Updates &updates, train::SignatureGrowth &growth, Location loc, IRMapping &mapping) {
    Value flag = growth.appendArg(getFlagType(), getPending(pendingFlag), loc);
    for (const auto &[value, name] : updates.getCuts())
      mapping.map(value, value == updates.getFinite()
                             ? flag
                             : growth.appendArg(value.getType(), getPending(name), value.getLoc()));
    return flag;
  }

  /// The step without its updates, which leaves what they need.
  func::FuncOp buildRest(func::FuncOp step, const Updates &updates, IRMapping &pending, Value &flag) {
    IRMapping copies;
    auto rest = cast<func::FuncOp>(step->clone(copies));
    OpBuilder(step).insert(rest);
    Block &block = rest.getBody().front();
    Operation *terminator = block.getTerminator();
    for (const Updates::Replaced &each : updates.getReplaced()) {
      pending.map(each.argument, copies.lookup(each.argument));
      terminator->setOperand(each.result, copies.lookup(each.argument));
    }
    for (BlockArgument constant : updates.getConstants())
      pending.map(constant, copies.lookup(constant));
    train::SignatureGrowth growth(rest);
    flag = addPending(updates, growth, step.getLoc(), pending);
    OpBuilder builder(terminator);
    Value finite = updates.getFinite();
    growth.appendResult(finite ? copies.lookup(finite) : nn::splat(builder, step.getLoc(), getFlagType(), 1.0).get(),
                        getPending(pendingFlag));
    for (const auto &[value, name] : updates.getCuts())
      if (value != finite)
        growth.appendResult(copies.lookup(value), getPending(name));
    growth.finish();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
    return rest;
  }

  /// Makes each update before the first op that reads what it changes.
  void beginWithUpdates(func::FuncOp rest, Updates &updates, IRMapping &pending, Value flag) {
    Block &block = rest.getBody().front();
    Operation *terminator = block.getTerminator();
    llvm::DenseMap<Operation *, unsigned> places;
    for (auto [i, op] : llvm::enumerate(block))
      places[&op] = i;
    llvm::DenseMap<Value, Operation *> firstReader;
    llvm::DenseMap<Value, SmallVector<OpOperand *>> reads;
    for (const Updates::Replaced &each : updates.getReplaced()) {
      Value argument = pending.lookup(each.argument);
      Operation *&first = firstReader[argument];
      first = terminator;
      for (OpOperand &use : argument.getUses()) {
        if (use.getOwner() == terminator)
          continue;
        reads[argument].push_back(&use);
        Operation *reader = block.findAncestorOpInBlock(*use.getOwner());
        first = places.at(reader) < places.at(first) ? reader : first;
      }
    }
    SmallVector<std::pair<const Updates::Replaced *, Operation *>> order;
    for (const Updates::Replaced &each : updates.getReplaced()) {
      Operation *before = terminator;
      for (BlockArgument read : updates.listRead(each))
        if (Operation *reader = firstReader.lookup(pending.lookup(read)); places.at(reader) < places.at(before))
          before = reader;
      order.push_back({&each, before});
    }
    sortStably(order, [&](const auto &a, const auto &b) { return places.at(a.second) < places.at(b.second); });
    for (auto [each, before] : order) {
      OpBuilder builder(before);
      Value argument = pending.lookup(each->argument), updated = updates.write(*each, builder, pending, flag);
      for (OpOperand *use : reads[argument])
        use->set(updated);
      terminator->setOperand(each->result, updated);
    }
  }

  void buildFlush(func::FuncOp step, Updates &updates) {
    auto flush = func::FuncOp::create(step.getLoc(), flushEntry, FunctionType::get(&getContext(), {}, {}));
    getOperation().push_back(flush);
    OpBuilder builder = OpBuilder::atBlockEnd(flush.addEntryBlock());
    Operation *terminator = func::ReturnOp::create(builder, step.getLoc());
    builder.setInsertionPoint(terminator);
    IRMapping pending;
    train::SignatureGrowth growth(flush);
    SmallVector<BlockArgument> arguments;
    for (const Updates::Replaced &each : updates.getReplaced())
      arguments.push_back(each.argument);
    llvm::append_range(arguments, updates.getConstants());
    for (BlockArgument argument : arguments)
      pending.map(argument, growth.appendArg(argument.getType(), train::getArgBinding(step, argument.getArgNumber()),
                                             argument.getLoc()));
    Value flag = addPending(updates, growth, step.getLoc(), pending);
    for (const Updates::Replaced &each : updates.getReplaced())
      growth.appendResult(updates.write(each, builder, pending, flag), train::getResultBinding(step, each.result));
    growth.appendResult(nn::splat(builder, step.getLoc(), getFlagType(), 0.0).get(), getPending(pendingFlag));
    growth.finish();
    SmallVector<DictionaryAttr> attributes;
    flush.getAllArgAttrs(attributes);
    for (auto [i, argument] : llvm::enumerate(arguments))
      attributes[i] = step.getArgAttrDict(argument.getArgNumber());
    flush.setAllArgAttrs(attributes);
  }

  void refuse() {
    setFailure(getOperation(), FailureKind::Unsupported);
    signalPassFailure();
  }

  void runOnSteps() override {
    if (failed(checkOption(getOperation(), "updates", updateTime)))
      return signalPassFailure();
    auto step = getOperation().lookupSymbol<func::FuncOp>("train");
    if (updateTime == "now" || !step)
      return;
    if (auto made = getOperation().lookupSymbol<func::FuncOp>(flushEntry)) {
      made.emitError("there is a @flush already: updates are deferred once");
      return signalPassFailure();
    }
    for (unsigned i = 0; i < step.getNumResults(); ++i)
      if (Attribute binding = train::getResultBinding(step, i);
          isa_and_nonnull<train::OutputAttr, train::GradientAttr>(binding)) {
        InFlightDiagnostic error = step.emitError("unsupported: @train returns '")
                                   << train::getBindingName(binding).getValue()
                                   << "', which a pending update would overwrite before it is read";
        error.attachNote() << "leave out --updates=deferred or --outputs; the entry eval has outputs, too";
        error.report();
        return refuse();
      }
    Updates updates(step);
    if (failed(updates.find()))
      return refuse();
    if (updates.getReplaced().empty())
      return;
    IRMapping pending;
    Value flag;
    func::FuncOp rest = buildRest(step, updates, pending, flag);
    beginWithUpdates(rest, updates, pending, flag);
    buildFlush(step, updates);
    uint64_t bytes = 0;
    for (const auto &[value, name] : updates.getCuts())
      bytes += getTensorBytes(value.getType()).value_or(0);
    step.emitRemark("@") << step.getSymName() << ": " << updates.getCount()
                         << " updates wait for the next step, and with them " << formatBytes(bytes) << " of gradients";
    numDeferred += updates.getCount();
    step.erase();
  }
};
} // namespace
