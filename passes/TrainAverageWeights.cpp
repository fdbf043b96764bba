//===- TrainAverageWeights.cpp - a moving average of trained weights ------===//
//
// After each update, in the step: the average of a parameter moves by a part of its distance from the new value. The
// first update's value is the first average; a step that is not committed moves nothing.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/Train/LossScaling.h"
#include "lowtide/Support/Failure.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

namespace lowtide {
#define GEN_PASS_DEF_TRAINAVERAGEWEIGHTS
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

namespace {
/// Adds the averages to one step.
class Averages {
public:
  Averages(func::FuncOp step, const train::BindingIndex &index, double decay)
      : step(step), index(index), growth(step), terminator(step.getBody().front().getTerminator()), builder(terminator),
        decay(decay) {}

  /// Adds the average of what result `number` writes.
  void add(unsigned number);
  /// Counts the updates, and gives the step what it has got.
  void finish();
  unsigned getCount() const { return count; }
  uint64_t getBytes() const { return bytes; }

private:
  nn::Expr getNew(unsigned number, train::ParamAttr binding);
  nn::Expr getUpdates();
  train::StateAttr getState(const Twine &name) {
    return train::StateAttr::get(step.getContext(), builder.getStringAttr(name), FloatAttr(), /*fromFile=*/false);
  }
  Value keep(Value value, Value before, train::CommitOp commit) {
    return commit
               ? train::CommitOp::create(builder, before.getLoc(), value.getType(), commit.getFinite(), value, before)
               : value;
  }

  func::FuncOp step;
  const train::BindingIndex &index;
  train::SignatureGrowth growth;
  Operation *terminator;
  OpBuilder builder;
  double decay;
  Value updates; ///< so far; null: not asked for yet
  train::CommitOp anyCommit;
  unsigned count = 0;
  uint64_t bytes = 0;
};
} // namespace

/// The f32 (or wider) number that the step leaves: of both halves where it is stored in two.
nn::Expr Averages::getNew(unsigned number, train::ParamAttr binding) {
  Value value = terminator->getOperand(number);
  const Location loc = step.getArgument(*index.findArg<train::ParamAttr>(binding.getName())).getLoc();
  const train::CodecInfo *split = train::findCodec(step.getContext(), "split", train::CodecUse::Master);
  const std::optional<unsigned> low =
      index.findResult<train::StateAttr>((binding.getName().getValue() + split->parts.back().suffix).str());
  if (low)
    return {builder, loc,
            train::buildDecode(builder, loc, *split, {value, terminator->getOperand(*low)}, /*nonNegative=*/false)};
  nn::Expr x(builder, loc, value);
  return x.elementType().getIntOrFloatBitWidth() < 32 ? nn::cast(x, builder.getF32Type()) : x;
}

nn::Expr Averages::getUpdates() {
  if (!updates)
    updates = growth.appendArg(RankedTensorType::get({}, builder.getI64Type()), getState(train::averageCountName),
                               step.getLoc());
  return {builder, step.getLoc(), updates};
}

void Averages::add(unsigned number) {
  auto binding = cast<train::ParamAttr>(train::getResultBinding(step, number));
  // Updates in blocks are committed in another shape.
  auto commit = StepStorage::getRoot(terminator->getOperand(number)).getDefiningOp<train::CommitOp>();
  anyCommit = commit ? commit : anyCommit;
  nn::Expr now = getNew(number, binding);
  train::StateAttr state = getState(binding.getName().getValue() + train::averageSuffix);
  nn::Expr average = now.with(growth.appendArg(now.type(), state, now.getLoc()));
  Value moved = train::MovingAverageOp::create(builder, now.getLoc(), now.type(), average.get(), now.get(),
                                               getUpdates().get(), llvm::APFloat(decay));
  growth.appendResult(keep(moved, average.get(), commit), state);
  ++count;
  bytes += getTensorBytes(now.type()).value_or(0);
}

void Averages::finish() {
  if (updates) {
    nn::Expr more = getUpdates() + 1.0;
    growth.appendResult(keep(more.get(), updates, anyCommit), getState(train::averageCountName));
  }
  growth.finish();
}

namespace {
struct TrainAverageWeights : StepPass<lowtide::impl::TrainAverageWeightsBase<TrainAverageWeights>> {
  using StepPass::StepPass;

  void refuse(const Twine &message) {
    emitError(UnknownLoc::get(&getContext())) << message; // a flag has no place
    setFailure(getOperation(), FailureKind::Usage);
    signalPassFailure();
  }

  /// Why result `number` has no average; empty: it has one. A parameter is written as it is read, and has numbers.
  static std::string findFault(func::FuncOp step, const train::BindingIndex &index, unsigned number, StringRef name) {
    auto isNumbers = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.hasStaticShape() && isa<FloatType>(tensor.getElementType());
    };
    const Type type = step.getResultTypes()[number];
    const std::optional<unsigned> read = index.findArg<train::ParamAttr>(name);
    if (!read || step.getArgument(*read).getType() != type || !isNumbers(type))
      return "writes '" + name.str() + "', which it does not read as a float tensor of the same type";
    const train::CodecInfo &split = *train::findCodec(step.getContext(), "split", train::CodecUse::Master);
    const std::optional<unsigned> low = index.findResult<train::StateAttr>((name + split.parts.back().suffix).str());
    Builder b(step.getContext());
    auto tensor = cast<RankedTensorType>(type);
    if (low && (!tensor.getElementType().isBF16() || step.getResultTypes()[*low] != tensor.clone(b.getI16Type())))
      return "keeps a lower half of '" + name.str() + "', which is no half of it";
    return {};
  }

  void runOnSteps() override {
    double kept;
    if (failed(checkOption(getOperation(), "ema", ema)) || StringRef(ema).getAsDouble(kept))
      return signalPassFailure();
    if (kept == 0.0)
      return;
    for (auto step : getOperation().getOps<func::FuncOp>()) {
      const train::BindingIndex index(step);
      Averages averages(step, index, kept);
      llvm::StringSet<> names;
      for (unsigned i = 0, e = step.getNumResults(); i < e; ++i) {
        auto binding = dyn_cast_or_null<train::ParamAttr>(train::getResultBinding(step, i));
        if (!binding)
          continue;
        const std::string name = (binding.getName().getValue() + train::averageSuffix).str();
        if (std::string fault = findFault(step, index, i, binding.getName().getValue()); !fault.empty())
          return refuse("ema: @" + step.getSymName() + " " + fault);
        if (!names.insert(name).second || index.findArg<train::StateAttr>(name))
          return refuse("ema: @" + step.getSymName() + " has a state '" + name + "' already");
        averages.add(i);
      }
      averages.finish();
      if (averages.getCount())
        step.emitRemark("@") << step.getSymName() << ": averages of " << averages.getCount() << " parameters take "
                             << formatBytes(averages.getBytes());
    }
  }
};
} // namespace
