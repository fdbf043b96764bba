//===- TrainStateLayouts.cpp - how optimizer state is stored ----*- C++ -*-===//
//
// Each update reads and writes f32. What stays between steps may be stored otherwise:
//
//   1. A parameter's group says which codec its state has; eligible is a tensor as a whole, whatever is done to the
//      step later.
//   2. The arguments become what is stored; updates read what decoders make of it, and encoders make what they return.
//   3. Codecs with blocks see tensors as rows of a block each. An update that treats every element alone is made in
//   this
//      shape, so that it, both codecs and the scales become one kernel.
//   4. Masters that are stored exactly are read in bf16 by all entries (StoredMaster.h).
//   5. A step that is not committed keeps what was stored, not what it would be encoded to again.
//
//===----------------------------------------------------------------------===//

#include "StepBytes.h"
#include "StepPass.h"
#include "StoredMaster.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Dialect/Train/TrainOptions.h"
#include "lowtide/Support/Failure.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINSTATELAYOUTS
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;
using train::CodecInfo;

static RankedTensorType getType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Whether the update computes each element of each result from elements at the same place, and from scalars.
static bool isElementwise(train::OptimizerInterface update) {
  Block scratch;
  OpBuilder builder(update.getContext());
  builder.setInsertionPointToEnd(&scratch);
  const bool isWritten = succeeded(cast<DecomposableInterface>(*update).decompose(builder));
  const bool isAlone = isWritten && llvm::all_of(scratch, [](Operation &op) {
                         if (op.hasTrait<OpTrait::Elementwise>() || op.hasTrait<OpTrait::ConstantLike>())
                           return true;
                         auto broadcast = dyn_cast<nn::BroadcastOp>(op);
                         return broadcast && broadcast.getX().getType().getNumElements() == 1;
                       });
  while (!scratch.empty())
    scratch.back().erase();
  return isAlone;
}

static Value viewAs(OpBuilder &builder, Value value, ArrayRef<int64_t> shape) {
  return nn::regroup(nn::Expr(builder, value.getLoc(), value), shape);
}

/// A codec that stores each element alone, of one direction or the other; null: `op` is none.
static Operation *asElementCodec(Operation *op) {
  auto codec = dyn_cast_or_null<train::CodecInterface>(op);
  return codec && codec.getCodec().block == 0 ? op : nullptr;
}

/// The same of its operands in another shape, which the results have then; `views` holds those that are known. Scalars
/// stay.
static Operation *cloneAs(OpBuilder &builder, Operation *codec, ArrayRef<int64_t> shape, IRMapping views = {}) {
  for (Value operand : codec->getOperands())
    if (getType(operand).getRank() && !views.contains(operand))
      views.map(operand, viewAs(builder, operand, shape));
  Operation *made = builder.clone(*codec, views);
  for (OpResult result : made->getResults())
    result.setType(getType(result).clone(shape));
  return made;
}

namespace {
/// What becomes of the tensors that one codec was asked for.
struct Tally {
  unsigned stored = 0, kept = 0;
  /// Whatever the codec takes, since updates subtract one from another.
  unsigned differenced = 0;
  uint64_t before = 0, after = 0;
};

/// The update of one parameter, and how its state is stored.
class StateLayout {
public:
  /// `index`: of the step as it came.
  StateLayout(func::FuncOp step, const train::BindingIndex &index, train::SignatureGrowth &growth,
              train::OptimizerInterface update)
      : step(step), index(index), growth(growth), update(update), whole(train::getUpdateOperands(update)),
        shape(getType(whole.param).getShape()) {}

  /// The parameter of the step that is updated; null where there is none.
  BlockArgument findParameter();
  /// Rounds the new parameter by chance, as `codec` does.
  void storeParameter(const CodecInfo &codec, const train::Draws &draws);
  train::OptimizerInterface getUpdate() const { return update; }
  /// Stores state by `codec` where that takes it.
  void store(const CodecInfo &codec, Tally &tally);

private:
  /// State that the step keeps for this update alone, and where it is returned.
  struct Kept {
    unsigned slot;
    BlockArgument argument;
    train::StateAttr binding;
    unsigned result;
    train::CommitOp commit;
    bool nonNegative;
  };
  SmallVector<Kept> findKept();

  func::FuncOp step;
  const train::BindingIndex &index;
  train::SignatureGrowth &growth;
  train::OptimizerInterface update;
  train::UpdateOperands whole;
  SmallVector<int64_t> shape;
};
} // namespace

BlockArgument StateLayout::findParameter() {
  auto argument = dyn_cast<BlockArgument>(whole.param);
  return argument && isa_and_nonnull<train::ParamAttr>(train::getArgBinding(step, argument.getArgNumber()))
             ? argument
             : BlockArgument();
}

void StateLayout::storeParameter(const CodecInfo &codec, const train::Draws &draws) {
  OpBuilder builder(update);
  Value wide = train::buildDecode(builder, update.getLoc(), codec, whole.param, /*nonNegative=*/false);
  Operation *updated = builder.clone(*update);
  updated->setOperand(0, wide);
  updated->getResult(0).setType(wide.getType());
  SmallVector<Value> results(updated->getResults());
  results.front() =
      train::buildEncode(builder, update.getLoc(), codec, updated->getResult(0), /*nonNegative=*/false, draws).front();
  update->replaceAllUsesWith(results);
  update->erase();
  update = cast<train::OptimizerInterface>(updated);
  whole = train::getUpdateOperands(update);
}

SmallVector<StateLayout::Kept> StateLayout::findKept() {
  SmallVector<Kept> found;
  Operation *terminator = step.getBody().front().getTerminator();
  const SmallVector<train::StateSlot> slots = train::listSlots(update);
  for (auto [slot, state] : llvm::enumerate(whole.state)) {
    auto argument = dyn_cast<BlockArgument>(state);
    auto binding = argument ? dyn_cast_or_null<train::StateAttr>(train::getArgBinding(step, argument.getArgNumber()))
                            : train::StateAttr();
    std::optional<unsigned> result = binding ? index.findResult<train::StateAttr>(binding.getName()) : std::nullopt;
    if (!result || getType(argument).getShape() != ArrayRef(shape) || !getType(argument).getElementType().isF32())
      continue;
    Value returned = terminator->getOperand(*result), updated = update->getResult(slot + 1);
    auto commit = returned.getDefiningOp<train::CommitOp>();
    const bool isReturned =
        commit ? commit.getUpdated() == updated && commit.getOld() == argument : returned == updated;
    const bool isOwn = updated.hasOneUse() && llvm::all_of(argument.getUsers(), [&](Operation *user) {
                         return user == update || user == commit;
                       });
    if (isReturned && isOwn)
      found.push_back({static_cast<unsigned>(slot), argument, binding, *result, commit, slots[slot].isNonNegative});
  }
  return found;
}

void StateLayout::store(const CodecInfo &codec, Tally &tally) {
  const int64_t elements = getType(whole.param).getNumElements();
  SmallVector<Kept> states = findKept();
  const SmallVector<train::StateSlot> slots = train::listSlots(update);
  const size_t all = states.size();
  llvm::erase_if(states, [&](const Kept &kept) { return slots[kept.slot].isDifferenced; });
  tally.differenced += all - states.size();
  if (!codec.takes(elements)) {
    tally.kept += states.size();
    return;
  }
  if (states.empty())
    return;
  SmallVector<int64_t> rows = shape;
  if (codec.block)
    rows = {elements / codec.block, codec.block};
  const ArrayRef<int64_t> seen = codec.block && isElementwise(update) ? ArrayRef(rows) : ArrayRef(shape);

  MLIRContext *context = step.getContext();
  Location loc = update.getLoc();
  OpBuilder builder(update);
  auto encodedAs = [&](const train::StoredPart &part) {
    return RankedTensorType::get(part.ofBlock ? ArrayRef(rows).take_front() : ArrayRef(shape), part.element(builder));
  };
  struct Stored {
    SmallVector<Value> arguments;
    SmallVector<Attribute> bindings;
  };
  SmallVector<Stored> stored(states.size());
  SmallVector<Value> operands(update->getOperands());
  for (auto [kept, made] : llvm::zip_equal(states, stored)) {
    tally.before += getTensorBytes(kept.argument.getType()).value_or(0);
    ++tally.stored;
    SmallVector<Value> parts;
    for (const train::StoredPart &part : codec.parts) {
      const double initial = part.initial(kept.binding.getInitialValue(), kept.nonNegative);
      auto name = StringAttr::get(context, kept.binding.getName().getValue() + part.suffix);
      made.bindings.push_back(train::StateAttr::get(
          context, name, initial == 0.0 ? FloatAttr() : builder.getF64FloatAttr(initial), /*fromFile=*/false));
      if (made.arguments.empty()) {
        kept.argument.setType(encodedAs(part));
        growth.setArgAttr(kept.argument.getArgNumber(), train::bindingAttrName, made.bindings.back());
        made.arguments.push_back(kept.argument);
      } else {
        made.arguments.push_back(growth.appendArg(encodedAs(part), made.bindings.back(), loc));
      }
      Value argument = made.arguments.back();
      tally.after += getTensorBytes(argument.getType()).value_or(0);
      parts.push_back(part.ofBlock ? argument : viewAs(builder, argument, rows));
    }
    const auto number = static_cast<size_t>(llvm::find(update->getOperands(), kept.argument) - update->operand_begin());
    operands[number] = train::buildDecode(builder, loc, codec, parts, kept.nonNegative);
  }
  // A parameter that is stored in parts is put together, and taken apart, in this shape.
  const bool isTurned = seen != ArrayRef(shape);
  for (Value &operand : operands)
    if (getType(operand).getNumElements() == elements && getType(operand).getRank()) {
      Operation *decode = isTurned ? asElementCodec(operand.getDefiningOp()) : nullptr;
      operand = decode ? cloneAs(builder, decode, seen)->getResult(0) : viewAs(builder, operand, seen);
    }
  Operation *updated = builder.clone(*update);
  updated->setOperands(operands);
  SmallVector<Value> results;
  for (OpResult result : updated->getResults()) {
    const RankedTensorType was = getType(result);
    if (was.getShape() == ArrayRef(shape))
      result.setType(was.clone(seen));
    results.push_back(result);
  }

  auto commit = [&](train::CommitOp as, Value value, Value old) {
    OpBuilder at(as);
    Value kept = train::CommitOp::create(at, as.getLoc(), value.getType(), as.getFinite(), value,
                                         viewAs(at, old, getType(value).getShape()));
    return viewAs(at, kept, getType(old).getShape());
  };
  Operation *terminator = step.getBody().front().getTerminator();
  for (auto [kept, made] : llvm::zip_equal(states, stored)) {
    Value wide = viewAs(builder, updated->getResult(kept.slot + 1), rows);
    SmallVector<Value> encoded = train::buildEncode(builder, loc, codec, wide, kept.nonNegative);
    for (auto [i, part] : llvm::enumerate(codec.parts)) {
      Value value = encoded[i];
      // In the shape of the codec, as the rest of the kernel.
      if (kept.commit)
        value = commit(kept.commit, value, made.arguments[i]);
      else if (!part.ofBlock)
        value = viewAs(builder, value, shape);
      if (i == 0) {
        terminator->setOperand(kept.result, value);
        growth.setResultAttr(kept.result, train::bindingAttrName, made.bindings[i]);
      } else {
        growth.appendResult(value, made.bindings[i]);
      }
    }
    if (kept.commit)
      kept.commit->erase();
  }
  Value parameter = update->getResult(0);
  for (Operation *user : llvm::make_early_inc_range(parameter.getUsers()))
    if (Operation *encode = isTurned ? asElementCodec(user) : nullptr) {
      OpBuilder at(encode);
      IRMapping views;
      views.map(parameter, results.front());
      Operation *made = cloneAs(at, encode, seen, views);
      for (auto [part, value] : llvm::zip_equal(encode->getResults(), made->getResults())) {
        for (Operation *reader : llvm::make_early_inc_range(part.getUsers()))
          if (auto as = dyn_cast<train::CommitOp>(reader); as && as.getUpdated() == part) {
            growth.replace(as.getResult(), commit(as, value, as.getOld()));
            as.erase();
          }
        growth.replace(part, viewAs(at, value, getType(part).getShape()));
      }
      encode->erase();
    }
  auto whenFinite = parameter.hasOneUse() ? dyn_cast<train::CommitOp>(*parameter.user_begin()) : train::CommitOp();
  if (whenFinite && whenFinite.getUpdated() == parameter) {
    whenFinite.getResult().replaceAllUsesWith(commit(whenFinite, results.front(), whenFinite.getOld()));
    whenFinite.erase();
  }
  for (auto [result, value] : llvm::zip_equal(update->getResults(), results))
    if (!result.use_empty())
      result.replaceAllUsesWith(viewAs(builder, value, getType(result).getShape()));
  Operation *decode = asElementCodec(whole.param.getDefiningOp());
  update->erase();
  if (decode && decode->use_empty())
    decode->erase();
}

namespace {
struct TrainStateLayouts : StepPass<lowtide::impl::TrainStateLayoutsBase<TrainStateLayouts>> {
  using StepPass::StepPass;

  /// An error of a flag, which has no place.
  LogicalResult refuse(const Twine &message) {
    emitError(UnknownLoc::get(&getContext())) << message;
    setFailure(getOperation(), FailureKind::Usage);
    return failure();
  }

  /// The codec that `word` names; null: f32. `where`: what names it, the flag or a group.
  FailureOr<const CodecInfo *> findCodec(const Twine &where, StringRef flag, StringRef word, train::CodecUse use) {
    for (const OptionCheck &check : listChecks(flag, getContext()))
      if (const std::string fault = check.findFault(word.str()); !fault.empty())
        return refuse(where + flag + ": " + fault);
    const CodecInfo *codec = word == "f32" ? nullptr : train::findCodec(&getContext(), word, use);
    const bool isReplaced = codec && !codec->inModel.empty() && getOperation()->hasAttr(train::inModelAttrName);
    return isReplaced ? train::findCodec(&getContext(), codec->inModel, use) : codec;
  }

  LogicalResult readOptions() {
    if (failed(checkOption(getOperation(), "group", groups)))
      return failure();
    if (!groups.empty())
      llvm::cantFail(options.set("group", groups));
    for (auto [flag, word, use] :
         {std::tuple<StringRef, StringRef, train::CodecUse>{"moments", moments, train::CodecUse::Moments},
          {"master", master, train::CodecUse::Master}}) {
      std::map<const train::GroupRule *, const CodecInfo *> &wanted = wantedOf[use];
      FailureOr<const CodecInfo *> found = findCodec("", flag, word, use);
      if (failed(found))
        return failure();
      wanted[nullptr] = *found;
      for (const train::GroupRule &rule : options.groups) {
        auto given = rule.layouts.find(flag.str());
        found = given == rule.layouts.end() ? wanted[nullptr] : findCodec("group: ", flag, given->second, use);
        if (failed(found))
          return failure();
        wanted[&rule] = *found;
      }
    }
    return success();
  }

  /// One remark for what is stored: bytes before and after, and what stays f32.
  void report(func::FuncOp step, const llvm::MapVector<const CodecInfo *, Tally> &tallies) {
    for (const auto &[codec, tally] : tallies) {
      const std::string differenced =
          std::to_string(tally.differenced) +
          " stay f32: updates subtract one from the other, and rounded numbers may leave less than zero";
      if (tally.stored + tally.kept + tally.differenced == 0) {
        step.emitWarning("moments in ") << codec->name << " have no effect: the updates keep no state";
        continue;
      }
      if (tally.stored == 0) {
        step.emitWarning("moments in ") << codec->name << ": no state is stored so: "
                                        << (tally.kept ? describeRule(*codec) : differenced);
        continue;
      }
      InFlightDiagnostic remark = step.emitRemark("@")
                                  << step.getSymName() << ": " << tally.stored << " tensors of state in "
                                  << codec->meaning << " (" << train::describe(codec->exactness)
                                  << "): " << formatBytes(tally.before) << " → " << formatBytes(tally.after);
      if (tally.kept)
        remark << "; " << tally.kept << " stay f32: " << describeRule(*codec);
      if (tally.differenced)
        remark << "; " << differenced;
    }
  }

  static std::string describeRule(const CodecInfo &codec) {
    if (codec.block == 0)
      return "only the state of f32 parameters is";
    return llvm::formatv("only tensors of at least {0} elements in whole blocks of {1} are", codec.smallest,
                         codec.block)
        .str();
  }

  /// The parameters of which an exact codec stores the master, and in words why others cannot be stored so.
  LogicalResult findMasters() {
    unsigned asked = 0;
    func::FuncOp first;
    std::optional<llvm::DenseSet<StringRef>> readRounded;
    for (auto step : getOperation().getOps<func::FuncOp>())
      for (auto update : step.getBody().getOps<train::OptimizerInterface>()) {
        auto parameter = dyn_cast<BlockArgument>(train::getUpdateOperands(update).param);
        auto binding = parameter ? train::getArgBinding(step, parameter.getArgNumber()) : Attribute();
        const CodecInfo *codec = isa_and_nonnull<train::ParamAttr>(binding)
                                     ? wantedOf[train::CodecUse::Master].at(findGroup(step, parameter))
                                     : nullptr;
        if (!codec || codec->exactness != train::Exactness::Exact)
          continue;
        ++asked;
        first = step;
        const Type element = getType(parameter).getElementType();
        if (!element.isBF16() && !element.isF32())
          return refuse("master: " + codec->name + " stores f32 of which products read bf16, and " +
                        nameOf(step, parameter) + " is " + llvm::formatv("{0}", element).str() +
                        "; that is with --precision=bf16 and --precision=mixed-bf16");
        if (!readRounded)
          readRounded = findReadRounded();
        if (readRounded->contains(nameOf(step, parameter)))
          masters[nameOf(step, parameter)] = codec;
      }
    if (asked && masters.empty())
      return refuse(
          "master: no step reads in bf16 what is to be stored in halves; with --precision=bf16 all parameters "
          "are, with --precision=mixed-bf16 those of products");
    if (asked)
      first.emitRemark("@") << first.getSymName() << ": " << masters.size() << " parameters are f32 masters in "
                            << masters.begin()->second->meaning << " (exact)"
                            << (asked > masters.size() ? "; " + std::to_string(asked - masters.size()) +
                                                             " stay f32: nothing reads them in bf16"
                                                       : std::string());
    return success();
  }

  /// Names of the parameters that a step reads rounded.
  llvm::DenseSet<StringRef> findReadRounded() {
    llvm::DenseSet<StringRef> found;
    for (auto step : getOperation().getOps<func::FuncOp>())
      for (BlockArgument argument : step.getArguments())
        if (isa_and_nonnull<train::ParamAttr>(train::getArgBinding(step, argument.getArgNumber())) &&
            StoredMaster::isReadRounded(argument))
          found.insert(nameOf(step, argument));
    return found;
  }

  /// Stores the masters of a step; `updates` become the ones that do.
  void storeMasters(func::FuncOp step, const train::BindingIndex &index, train::SignatureGrowth &growth,
                    SmallVectorImpl<train::OptimizerInterface> &updates) {
    if (masters.empty())
      return;
    llvm::DenseMap<Value, train::OptimizerInterface *> updateOf;
    for (train::OptimizerInterface &update : updates)
      updateOf[train::getUpdateOperands(update).param] = &update;
    for (BlockArgument parameter : llvm::to_vector(step.getArguments())) {
      auto binding = dyn_cast_or_null<train::ParamAttr>(train::getArgBinding(step, parameter.getArgNumber()));
      auto found = binding ? masters.find(binding.getName().getValue()) : masters.end();
      if (found == masters.end())
        continue;
      StoredMaster master(step, index, growth, parameter, *found->second);
      master.storeArgument();
      if (auto update = updateOf.find(parameter); update != updateOf.end())
        *update->second = master.storeUpdate(*update->second);
    }
  }

  /// Rounds parameters by chance; `updates` become the ones that do.
  LogicalResult storeParameters(func::FuncOp step, const train::BindingIndex &index, train::SignatureGrowth &growth,
                                SmallVectorImpl<train::OptimizerInterface> &updates) {
    const auto &wanted = wantedOf[train::CodecUse::Master];
    auto rounds = [](const CodecInfo *codec) { return codec && codec->exactness != train::Exactness::Exact; };
    if (llvm::none_of(wanted, [&](const auto &each) { return rounds(each.second); }))
      return success();
    auto scalar = RankedTensorType::get({}, IntegerType::get(&getContext(), 64));
    train::Draws draws{train::getOrAppendScalar(step, seedScalar, scalar),
                       train::getOrAppendScalar(step, stepScalar, scalar)};
    unsigned rounded = 0;
    for (train::OptimizerInterface &update : updates) {
      StateLayout layout(step, index, growth, update);
      BlockArgument parameter = layout.findParameter();
      const CodecInfo *codec = parameter ? wanted.at(findGroup(step, parameter)) : nullptr;
      if (!rounds(codec))
        continue;
      if (!getType(parameter).getElementType().isBF16())
        return refuse("master: " + codec->name + " rounds parameters of bf16, and " + nameOf(step, parameter) + " is " +
                      llvm::formatv("{0}", getType(parameter).getElementType()).str() +
                      "; with --precision=bf16 all are, and --group='" + nameOf(step, parameter) +
                      ":master=f32' leaves one out");
      // Draws of dropout are numbered from 0.
      draws.stream = (int64_t(1) << 31) + parameter.getArgNumber();
      layout.storeParameter(*codec, draws);
      update = layout.getUpdate();
      ++rounded;
    }
    step.emitRemark("@") << step.getSymName() << ": " << rounded << " parameters are rounded by chance";
    return success();
  }

  static StringRef nameOf(func::FuncOp step, BlockArgument parameter) {
    return train::getBindingName(train::getArgBinding(step, parameter.getArgNumber())).getValue();
  }
  const train::GroupRule *findGroup(func::FuncOp step, BlockArgument parameter) const {
    return options.findGroup(train::listNames(step, parameter.getArgNumber()));
  }

  LogicalResult visit(func::FuncOp step) {
    auto updates = llvm::to_vector(step.getBody().getOps<train::OptimizerInterface>());
    const bool isUpdated = !updates.empty();
    if (!isUpdated && masters.empty())
      return success();
    llvm::MapVector<const CodecInfo *, Tally> tallies;
    const train::BindingIndex index(step);
    train::SignatureGrowth growth(step);
    // Groups name parameters, which updates do not read as they are once they are decoded.
    SmallVector<const CodecInfo *> chosen;
    for (train::OptimizerInterface update : updates) {
      BlockArgument parameter = StateLayout(step, index, growth, update).findParameter();
      chosen.push_back(parameter ? wantedOf[train::CodecUse::Moments].at(findGroup(step, parameter)) : nullptr);
    }
    if (isUpdated && failed(storeParameters(step, index, growth, updates)))
      return failure();
    storeMasters(step, index, growth, updates);
    for (auto [update, codec] : llvm::zip_equal(updates, chosen))
      if (codec)
        StateLayout(step, index, growth, update).store(*codec, tallies[codec]);
    growth.finish();
    report(step, tallies);
    if (isUpdated)
      step.emitRemark("@") << step.getSymName() << ": " << countStoredBytes(step).getAll().str();
    return success();
  }

  void runOnSteps() override {
    if (failed(readOptions()) || failed(findMasters()))
      return signalPassFailure();
    for (auto step : getOperation().getOps<func::FuncOp>())
      if (failed(visit(step)))
        return signalPassFailure();
  }

  train::TrainOptions options;
  /// Parameters of which a codec stores the master exactly.
  llvm::MapVector<StringRef, const CodecInfo *> masters;
  /// By group; null: outside all groups.
  std::map<train::CodecUse, std::map<const train::GroupRule *, const CodecInfo *>> wantedOf;
};
} // namespace
