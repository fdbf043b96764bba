//===- TrainScaleLoss.cpp - from scaled gradients to clipped ones ---------===//
//
// Rewrites the gradients that @gradient returns: unscale and check, limit by value, limit by norm. Keeps the scale's
// state.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "StepUpdates.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/LossScaling.h"
#include "lowtide/Support/Failure.h"
#include "llvm/Support/FormatVariadic.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINSCALELOSS
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

namespace {
/// The gradients of a step, rewritten together.
class GradientChain {
public:
  GradientChain(func::FuncOp step, const train::LossScale &scale)
      : step(step), scale(scale), terminator(step.getBody().front().getTerminator()), builder(terminator),
        scalar(RankedTensorType::get({}, builder.getF32Type())), flag(RankedTensorType::get({}, builder.getI1Type())) {
    const train::BindingIndex index(step);
    for (unsigned i = 0; i < step.getNumResults(); ++i) {
      auto gradient = dyn_cast_or_null<train::GradientAttr>(train::getResultBinding(step, i));
      if (gradient && !isUnreached(index, gradient.getParameter())) {
        numbers.push_back(i);
        values.push_back(terminator->getOperand(i));
      }
    }
    for (Value value : values)
      types.push_back(value.getType());
  }

  size_t size() const { return values.size(); }

  /// Refuses what is called a gradient and holds no real numbers.
  LogicalResult check() {
    for (auto [number, type] : llvm::zip_equal(numbers, types)) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape() || !isa<FloatType>(tensor.getElementType()))
        return step.emitError("result ") << number << " of @" << step.getSymName() << " is called a gradient and is "
                                         << type << "; gradients are float tensors of static shape";
    }
    return success();
  }

  void unscale() {
    bool isDynamic = scale.kind == train::LossScale::Kind::Dynamic;
    Value factor = isDynamic ? train::appendLossScale(step, scale)
                             : nn::splat(builder, step.getLoc(), scalar, scale.initial).get();
    SmallVector<Type> results(types);
    results.push_back(flag);
    auto op = train::UnscaleOp::create(builder, step.getLoc(), TypeRange(results), values, factor);
    values.assign(op.getUnscaled().begin(), op.getUnscaled().end());
    Value finite = op.getFinite();
    if (isDynamic) {
      Value tracker = appendCount(train::growthTrackerName, builder.getI32Type());
      Value skipped = appendCount(train::skippedName, builder.getI64Type());
      auto update = train::UpdateScaleOp::create(
          builder, step.getLoc(), factor.getType(), tracker.getType(), skipped.getType(), factor, tracker, skipped,
          finite, llvm::APFloat(scale.growth), llvm::APFloat(scale.backoff), scale.interval);
      keep(train::lossScaleName, update.getNewScale());
      keep(train::growthTrackerName, update.getNewTracker());
      keep(train::skippedName, update.getNewSkipped());
    } else {
      Value skipped = appendCount(train::skippedName, builder.getI64Type());
      nn::Expr count(builder, step.getLoc(), skipped);
      keep(train::skippedName, nn::select(count.with(finite), count, count + 1.0));
    }
    train::appendResult(step, finite,
                        train::OutputAttr::get(step.getContext(), builder.getStringAttr(train::finiteName)));
  }

  void clip(double largestValue, double largestNorm) {
    if (largestValue > 0.0) {
      auto op =
          train::ClipValueOp::create(builder, step.getLoc(), TypeRange(types), values, llvm::APFloat(largestValue));
      values.assign(op.getClipped().begin(), op.getClipped().end());
    }
    Value norm = train::GlobalNormOp::create(builder, step.getLoc(), scalar, values);
    if (largestNorm > 0.0) {
      auto op =
          train::ClipNormOp::create(builder, step.getLoc(), TypeRange(types), values, norm, llvm::APFloat(largestNorm));
      values.assign(op.getClipped().begin(), op.getClipped().end());
    }
    // A step that came with its updates may show the norm of its own.
    if (!train::findResult<train::MetricAttr>(step, "grad_norm"))
      train::appendResult(step, norm, train::MetricAttr::get(step.getContext(), builder.getStringAttr("grad_norm")));
  }

  void finish() {
    for (auto [number, value] : llvm::zip_equal(numbers, values))
      terminator->setOperand(number, value);
  }

private:
  /// A parameter that the loss does not depend on has a zero gradient and no update.
  bool isUnreached(const train::BindingIndex &index, StringAttr parameter) {
    std::optional<unsigned> argument = index.findArg<train::ParamAttr>(parameter);
    return argument && step.getArgAttr(*argument, train::unreachedAttrName);
  }

  train::StateAttr getState(StringRef name) {
    return train::StateAttr::get(step.getContext(), builder.getStringAttr(name), FloatAttr(), /*fromFile=*/false);
  }
  Value appendCount(StringRef name, Type element) {
    return train::appendArg(step, RankedTensorType::get({}, element), getState(name), step.getLoc());
  }
  void keep(StringRef name, Value value) {
    unsigned argument = *train::findArg<train::StateAttr>(step, name);
    train::appendResult(step, value, train::getArgBinding(step, argument));
  }

  func::FuncOp step;
  const train::LossScale &scale;
  Operation *terminator;
  OpBuilder builder;
  RankedTensorType scalar, flag;
  SmallVector<unsigned> numbers;
  SmallVector<Value> values;
  SmallVector<Type> types;
};

struct TrainScaleLoss : StepPass<lowtide::impl::TrainScaleLossBase<TrainScaleLoss>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    if (failed(checkOption(getOperation(), "loss-scale", lossScale)))
      return signalPassFailure();
    const train::LossScale scale = llvm::cantFail(train::LossScale::parse(lossScale));
    if (failed(readLimit("clip-norm", clipNorm, norm)) || failed(readLimit("clip-value", clipValue, value)))
      return signalPassFailure();
    auto step = getOperation().lookupSymbol<func::FuncOp>("gradient");
    std::optional<StepUpdates> updates;
    if (!step) {
      step = getOperation().lookupSymbol<func::FuncOp>("train");
      FailureOr<StepUpdates> found = StepUpdates::find(getOperation(), step);
      if (failed(found) || (scale.kind != train::LossScale::Kind::None && failed(found->derive(scale))))
        return refuse();
      updates = std::move(*found);
    }
    if (!updates && failed(checkSeed(step, scale)))
      return signalPassFailure();
    GradientChain chain(step, scale);
    if (chain.size() == 0)
      return;
    if (failed(chain.check()))
      return signalPassFailure();
    if (scale.kind != train::LossScale::Kind::None)
      chain.unscale();
    chain.clip(value, norm);
    chain.finish();
    if (updates && failed(updates->rebuild()))
      return refuse();
    remark(step, scale, chain.size());
  }

private:
  LogicalResult readLimit(StringRef option, StringRef text, double &limit) {
    return failure(failed(checkOption(getOperation(), option, text)) || text.getAsDouble(limit));
  }

  /// What the gradients hold has to be what is taken out of them.
  LogicalResult checkSeed(func::FuncOp step, const train::LossScale &scale) {
    auto held = step->getAttrOfType<StringAttr>(train::scaledAttrName);
    llvm::Expected<train::LossScale> seed = train::LossScale::parse(held ? held.getValue() : "none");
    if (!seed)
      return step.emitError("@") << step.getSymName() << ": " << llvm::toString(seed.takeError());
    step->removeAttr(train::scaledAttrName);
    if (*seed == scale)
      return success();
    return step.emitError("@") << step.getSymName() << " holds gradients of the loss times its scale '"
                               << (held ? held.getValue() : "none") << "', not '" << lossScale
                               << "': give train-differentiate the same loss-scale";
  }

  void refuse() {
    setFailure(getOperation(), FailureKind::Unsupported);
    signalPassFailure();
  }

  void remark(func::FuncOp step, const train::LossScale &scale, size_t gradients) {
    InFlightDiagnostic remark = step.emitRemark("@") << step.getSymName() << ": " << gradients << " gradients";
    if (scale.kind == train::LossScale::Kind::Dynamic)
      remark << ", loss scale " << llvm::formatv("{0}", scale.initial).str() << ", times "
             << llvm::formatv("{0} after {1} finite steps, times {2} after one that is not", scale.growth,
                              scale.interval, scale.backoff)
                    .str();
    else if (scale.kind == train::LossScale::Kind::Fixed)
      remark << ", loss scale " << llvm::formatv("{0}", scale.initial).str();
    if (value > 0.0)
      remark << ", elements within " << llvm::formatv("{0}", value).str();
    if (norm > 0.0)
      remark << ", norm within " << llvm::formatv("{0}", norm).str();
  }

  double norm = 0.0, value = 0.0;
};
} // namespace
