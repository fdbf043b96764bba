//===- LossScaling.cpp - unscale, check, clip, commit -----------*- C++ -*-===//
//
// Verifiers and decompositions of the ops between gradients and updates, and the text of --loss-scale.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/LossScaling.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/OrderRules.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Support/NameList.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;
using nn::Expr;

using Results = FailureOr<SmallVector<Value>>;

//===-- the flag ----------------------------------------------------------===//

template <typename... Ts> static llvm::Error refuse(const char *format, Ts &&...values) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Ts>(values)...).str());
}

llvm::Expected<LossScale> LossScale::parse(StringRef text) {
  LossScale scale;
  auto [head, options] = text.split(',');
  if (head == "none" || head == "dynamic") {
    scale.kind = head == "none" ? Kind::None : Kind::Dynamic;
  } else {
    scale.kind = Kind::Fixed;
    if (head.getAsDouble(scale.initial))
      return refuse("loss-scale: '{0}' is neither none nor dynamic nor a number{1}", head,
                    suggestName(head, {"none", "dynamic"}));
  }
  if (!options.empty() && scale.kind != Kind::Dynamic)
    return refuse("loss-scale: only dynamic has options, found '{0}' after '{1}'", options, head);
  SmallVector<StringRef> given;
  for (StringRef option : llvm::split(options, ',')) {
    if (option.empty() && options.empty())
      continue;
    auto [name, value] = option.split('=');
    if (llvm::is_contained(given, name))
      return refuse("loss-scale: '{0}' is given twice", name);
    given.push_back(name);
    double number = 0;
    if (value.empty() || value.getAsDouble(number))
      return refuse("loss-scale: '{0}' is not of the form name=number", option);
    if (name == "init")
      scale.initial = number;
    else if (name == "growth")
      scale.growth = number;
    else if (name == "backoff")
      scale.backoff = number;
    else if (name == "interval" && number == std::floor(number) && std::abs(number) < 2147483648.0)
      scale.interval = static_cast<int64_t>(number);
    else if (name == "interval")
      return refuse("loss-scale: interval is a number of steps, found '{0}'", value);
    else
      return refuse("loss-scale: no option '{0}'; there are init, growth, backoff and interval{1}", name,
                    suggestName(name, {"init", "growth", "backoff", "interval"}));
  }
  float initial = static_cast<float>(scale.initial);
  if (!(initial > 0.0f) || !std::isfinite(initial))
    return refuse("loss-scale: the scale must be positive and finite in f32, found {0}", scale.initial);
  if (!(scale.growth > 1.0) || !(scale.backoff > 0.0 && scale.backoff < 1.0) || scale.interval < 1)
    return refuse("loss-scale: growth must exceed 1, backoff lie between 0 and 1, interval be at least 1; found {0}, "
                  "{1}, {2}",
                  scale.growth, scale.backoff, scale.interval);
  return scale;
}

Value train::appendLossScale(func::FuncOp step, const LossScale &scale) {
  if (std::optional<unsigned> found = findArg<StateAttr>(step, lossScaleName))
    return step.getArgument(*found);
  Builder b(step.getContext());
  auto binding = StateAttr::get(step.getContext(), b.getStringAttr(lossScaleName), b.getF64FloatAttr(scale.initial),
                                /*fromFile=*/false);
  return appendArg(step, RankedTensorType::get({}, b.getF32Type()), binding, step.getLoc());
}

Value train::buildLossSeed(OpBuilder &builder, func::FuncOp step, Value loss, const LossScale &scale) {
  auto type = cast<RankedTensorType>(loss.getType());
  if (scale.kind != LossScale::Kind::Dynamic)
    return nn::splat(builder, loss.getLoc(), type, scale.kind == LossScale::Kind::Fixed ? scale.initial : 1.0);
  Value state = appendLossScale(step, scale);
  return nn::reshape(nn::cast(Expr(builder, loss.getLoc(), state), type.getElementType()), type.getShape());
}

Value train::buildAlone(OpBuilder &builder, GradientsInterface op, unsigned number, Value gradient, ValueRange others) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(gradient);
  state.addOperands(others);
  state.addAttributes(op->getAttrs());
  state.addTypes(op->getResult(number).getType());
  for (OpResult result : op->getResults().drop_front(op.getGradients().size()))
    state.addTypes(result.getType());
  return builder.create(state)->getResult(0);
}

//===-- what the ops share ------------------------------------------------===//

uint64_t train::countGradientFlops(Operation *op, uint64_t perElement) {
  uint64_t elements = 0;
  for (Type type : op->getOperandTypes())
    elements += cast<RankedTensorType>(type).getNumElements();
  return perElement * elements;
}

static bool isScalar(Type type, llvm::function_ref<bool(Type)> element) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 0 && element(tensor.getElementType());
}
static bool isFloatScalar(Type type) {
  return isScalar(type, [](Type element) { return isa<FloatType>(element); });
}
static bool isFlag(Type type) {
  return isScalar(type, [](Type element) { return element.isInteger(1); });
}

static LogicalResult verifyGradients(Operation *op, ValueRange grads, ValueRange results) {
  for (Value grad : grads) {
    auto type = dyn_cast<RankedTensorType>(grad.getType());
    if (!type || !type.hasStaticShape() || !isa<FloatType>(type.getElementType()))
      return op->emitOpError("takes gradients, float tensors of static shape, not ") << grad.getType();
  }
  if (!results.empty() && grads.size() != results.size())
    return op->emitOpError() << "has " << grads.size() << " gradients as operands and " << results.size()
                             << " as results";
  for (auto [grad, result] : llvm::zip(grads, results))
    if (grad.getType() != result.getType())
      return op->emitOpError("result of type ") << result.getType() << " for a gradient of type " << grad.getType();
  return success();
}

/// Combines all elements, dimension 0 last: rows can be shared among threads before. What checks a gradient and what
/// adds up its squares have the same rows, so that one kernel reads it for both.
static Expr reduceAll(Expr x, llvm::function_ref<Expr(Expr, ArrayRef<int64_t>)> reduce) {
  if (x.rank() > 1) {
    const bool hasRows = x.shape()[0] > 1;
    x = reduce(x, llvm::to_vector(llvm::seq<int64_t>(1, x.rank())));
    Operation *rows = x.get().getDefiningOp();
    if (hasRows)
      rows->setAttr(nn::byRowsAttrName, UnitAttr::get(rows->getContext()));
  }
  return x.rank() == 1 ? reduce(x, {0}) : x;
}

static Expr spread(Expr scalar, Expr over) {
  return nn::broadcast(nn::cast(scalar, over.elementType()), over.shape(), {});
}

//===-- unscale -----------------------------------------------------------===//

LogicalResult UnscaleOp::verify() {
  if (!isFloatScalar(getScale().getType()) || !isFlag(getFinite().getType()))
    return emitOpError("takes the scale as a float scalar and gives tensor<i1>");
  return verifyGradients(*this, getGrads(), getUnscaled());
}

Results UnscaleOp::decompose(OpBuilder &builder) {
  Expr scale(builder, getLoc(), getScale());
  // In f64, rounded once, as torch's double().reciprocal().float().
  Expr inverse = nn::cast(nn::reciprocal(nn::cast(scale, builder.getF64Type())), scale.elementType());
  SmallVector<Value> results;
  Expr finite;
  for (Value grad : getGrads()) {
    Expr g = scale.with(grad);
    // Ordered comparison: false for NaN.
    Expr each = nn::less(nn::abs(g), g.like(std::numeric_limits<double>::infinity()));
    Expr whole = reduceAll(each, [](Expr x, ArrayRef<int64_t> dims) { return nn::all(x, dims); });
    finite = finite ? nn::logicalAnd(finite, whole) : whole;
    results.push_back(g * spread(inverse, g));
  }
  if (!finite)
    finite = nn::splat(builder, getLoc(), cast<RankedTensorType>(getFinite().getType()), 1.0);
  results.push_back(finite);
  return results;
}

//===-- norm and clipping -------------------------------------------------===//

LogicalResult GlobalNormOp::verify() {
  if (!isFloatScalar(getNorm().getType()))
    return emitOpError("gives a float scalar, not ") << getNorm().getType();
  return verifyGradients(*this, getGrads(), {});
}

Results GlobalNormOp::decompose(OpBuilder &builder) {
  auto type = cast<RankedTensorType>(getNorm().getType());
  Expr total;
  for (Value grad : getGrads()) {
    Expr g(builder, getLoc(), grad);
    Expr squares = reduceAll(g * g, [](Expr x, ArrayRef<int64_t> dims) { return nn::sum(x, dims); });
    Expr wide = nn::cast(squares, builder.getF64Type());
    total = total ? total + wide : wide;
  }
  if (!total)
    return SmallVector<Value>{nn::splat(builder, getLoc(), type, 0.0)};
  return SmallVector<Value>{nn::cast(nn::sqrt(total), type.getElementType())};
}

LogicalResult ClipNormOp::verify() {
  if (!isFloatScalar(getNorm().getType()))
    return emitOpError("takes the norm as a float scalar, not ") << getNorm().getType();
  if (!(getMaxNorm().convertToDouble() > 0.0))
    return emitOpError("needs a positive limit");
  return verifyGradients(*this, getGrads(), getClipped());
}

Results ClipNormOp::decompose(OpBuilder &builder) {
  Expr norm(builder, getLoc(), getNorm());
  Expr factor = nn::min(norm.like(getMaxNorm().convertToDouble()) / (norm + 1e-6), 1.0);
  SmallVector<Value> results;
  for (Value grad : getGrads()) {
    Expr g = norm.with(grad);
    results.push_back(g * spread(factor, g));
  }
  return results;
}

LogicalResult ClipValueOp::verify() {
  if (!(getLimit().convertToDouble() > 0.0))
    return emitOpError("needs a positive limit");
  return verifyGradients(*this, getGrads(), getClipped());
}

Results ClipValueOp::decompose(OpBuilder &builder) {
  double limit = getLimit().convertToDouble();
  SmallVector<Value> results;
  for (Value grad : getGrads())
    results.push_back(nn::min(nn::max(Expr(builder, getLoc(), grad), -limit), limit));
  return results;
}

//===-- scale and commit --------------------------------------------------===//

LogicalResult UpdateScaleOp::verify() {
  auto isCount = [](Type type) { return isScalar(type, [](Type e) { return e.isSignlessInteger(); }); };
  if (!isFloatScalar(getScale().getType()) || !isCount(getTracker().getType()) || !isCount(getSkipped().getType()) ||
      !isFlag(getFinite().getType()))
    return emitOpError("takes scale (float), tracker, skipped (integers) and finite (i1), all scalars");
  if (getNewScale().getType() != getScale().getType() || getNewTracker().getType() != getTracker().getType() ||
      getNewSkipped().getType() != getSkipped().getType())
    return emitOpError("results must have the types of scale, tracker and skipped");
  return success();
}

Results UpdateScaleOp::decompose(OpBuilder &builder) {
  Expr scale(builder, getLoc(), getScale()), tracker = scale.with(getTracker()), skipped = scale.with(getSkipped());
  Expr finite = scale.with(getFinite()), wide = nn::cast(scale, builder.getF64Type());
  Expr grown = nn::cast(wide * getGrowth().convertToDouble(), scale.elementType());
  Expr shrunk = nn::cast(wide * getBackoff().convertToDouble(), scale.elementType());
  Expr isBounded = nn::less(grown, grown.like(std::numeric_limits<double>::infinity()));
  Expr next = tracker + 1.0, isDue = nn::equal(next, static_cast<double>(getInterval()));
  Expr newScale = nn::select(finite, nn::select(nn::logicalAnd(isDue, isBounded), grown, scale), shrunk);
  Expr newTracker = nn::select(nn::logicalAnd(finite, nn::logicalNot(isDue)), next, tracker.like(0.0));
  Expr newSkipped = nn::select(finite, skipped, skipped + 1.0);
  return SmallVector<Value>{newScale, newTracker, newSkipped};
}

LogicalResult CommitOp::verify() {
  if (!isFlag(getFinite().getType()))
    return emitOpError("decides by tensor<i1>, not ") << getFinite().getType();
  if (getUpdated().getType() != getOld().getType() || getResult().getType() != getOld().getType())
    return emitOpError("new, old and result must have one type");
  return success();
}

Results CommitOp::decompose(OpBuilder &builder) {
  Expr updated(builder, getLoc(), getUpdated()), finite = updated.with(getFinite());
  Expr chosen = nn::broadcast(finite, updated.shape(), {});
  return SmallVector<Value>{nn::select(chosen, updated, updated.with(getOld()))};
}

LogicalResult MovingAverageOp::verify() {
  auto updates = dyn_cast<RankedTensorType>(getUpdates().getType());
  if (!updates || updates.getRank() != 0 || !updates.getElementType().isInteger(64))
    return emitOpError("counts updates by tensor<i64>, not ") << getUpdates().getType();
  if (getNow().getType() != getAverage().getType() || getResult().getType() != getAverage().getType())
    return emitOpError("average, new value and result must have one type");
  return success();
}

Results MovingAverageOp::decompose(OpBuilder &builder) {
  Expr average(builder, getLoc(), getAverage()), now = average.with(getNow()), updates = average.with(getUpdates());
  const double kept = getDecay().convertToDouble(), weight = 1.0 - kept;
  Expr moved = weight < 0.5 ? average + (now - average) * weight : now - (now - average) * (1.0 - weight);
  Expr isFirst = nn::broadcast(nn::equal(updates, 0.0), now.shape(), {});
  return SmallVector<Value>{nn::select(isFirst, now, moved)};
}
