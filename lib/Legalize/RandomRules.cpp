//===- RandomRules.cpp - dropout and random tensors -----------------------===//
//
// Rules for operators that draw numbers. Draws depend on seed, step, the operator's place and the sample's row.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"
#include "lowtide/Support/AlphaDropout.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

/// Where a tensor of this shape has the samples of a batch: −1, or a dimension that holds them alone, or joined with
/// others. It is the first one, unless inputs have them elsewhere and another has just their number.
static int64_t findSamples(LegalizeContext &context, ArrayRef<int64_t> shape, int64_t samples) {
  if (shape.empty() || samples <= 0)
    return -1;
  for (unsigned i = 0; i < context.function.getNumArguments(); ++i)
    if (auto batch = context.function.getArgAttrOfType<train::BatchAttr>(i, train::bindingAttrName);
        batch && batch.getBatchDim() > 0 && llvm::is_contained(shape, samples))
      return llvm::find(shape, samples) - shape.begin();
  return shape[0] % samples == 0 ? 0 : -1;
}

/// Uniform numbers in [0, 1) of the shape of `x`. Where a dimension holds the samples, alone or joined with others,
/// each sample draws the same numbers wherever the batch is split.
static Expr uniform(NodeView &n, ArrayRef<int64_t> shape, Type element) {
  LegalizeContext &context = n.context;
  const int64_t samples = train::countSamples(context.function);
  const int64_t dim = findSamples(context, shape, samples);
  Shape drawn(shape);
  if (dim >= 0 && shape[dim] != samples) {
    drawn[dim] /= samples;
    drawn.insert(drawn.begin() + dim, samples);
  }
  Expr seed = n.wrap(context.scalar(seedScalar)), step = n.wrap(context.scalar(stepScalar)),
       row = n.wrap(context.scalar(rowScalar));
  Expr u = nn::randomUniform(RankedTensorType::get(drawn, element), seed, step, row, context.nextRandomId(), dim);
  return nn::reshape(u, shape);
}

namespace {

LogicalResult dropout(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  const LegalizeOptions &options = n.context.options;
  double ratio = n.attrFloat("ratio", 0.5);
  if (n.has(1)) {
    std::optional<SmallVector<double>> given = n.constantFloats(1);
    if (!given || given->size() != 1)
      return n.refuse("the ratio is computed from data; it must be known when compiling");
    ratio = given->front();
  }
  bool active = false;
  if (n.has(2)) {
    FailureOr<int64_t> given = n.knownInt(2, "'training_mode'");
    if (failed(given))
      return failure();
    active = *given != 0;
  }
  // With a ratio and no word about its mode, as PyTorch writes the one inside attention: in training form like the
  // rest.
  if (!n.has(2) && n.has(1) && options.mode == TrainingMode::Train)
    active = true;
  if (options.mode == TrainingMode::Eval)
    active = false;
  if (active)
    n.context.noteDropout();
  if (options.dropout)
    ratio = *options.dropout;
  if (!(ratio >= 0.0 && ratio <= 1.0))
    return n.reject("a ratio of " + Twine(std::to_string(ratio)) + "; it must be in [0, 1]");
  if (!active || ratio == 0.0) {
    n.set(0, x);
    n.set(1, n.splat(n.builder.getI1Type(), x.shape(), 1.0));
    return success();
  }
  if (ratio == 1.0) { // as PyTorch has it: nothing passes
    n.set(0, x.like(0.0));
    n.set(1, n.splat(n.builder.getI1Type(), x.shape(), 0.0));
    return success();
  }
  Type drawn = x.elementType().isF64() ? x.elementType() : Type(n.builder.getF32Type());
  if (n.hasAttr("alpha")) { // PyTorch's alpha dropout, as recovery writes it
    const double alpha = n.attrFloat("alpha", seluLimit), scale = alphaDropoutScale(ratio, alpha);
    Expr keep = nn::broadcastTo(nn::greaterEqual(uniform(n, n.in(n.has(3) ? 3 : 0).shape(), drawn), ratio), x.shape());
    n.set(0, nn::select(keep, x * scale + alpha * scale * ratio, x.like(-alpha * scale * (1 - ratio))));
    n.set(1, keep);
    return success();
  }
  Expr keep = nn::greaterEqual(uniform(n, x.shape(), drawn), ratio);
  n.set(0, nn::select(keep, x * (1.0 / (1.0 - ratio)), x.like(0.0)));
  n.set(1, keep);
  return success();
}

/// Element type: attribute `dtype`, else that of the operand.
Type typeOf(NodeView &n, Type otherwise) {
  return n.hasAttr("dtype") ? elementTypeOf(n.builder.getContext(), n.attr("dtype", 1)) : otherwise;
}

LogicalResult drawUniform(NodeView &n, ArrayRef<int64_t> shape, Type type) {
  if (!type || !isa<FloatType>(type))
    return n.refuse("random numbers of this element type");
  double low = n.attrFloat("low", 0.0), high = n.attrFloat("high", 1.0);
  n.set(0, nn::cast(uniform(n, shape, n.builder.getF32Type()) * (high - low) + low, type));
  return success();
}

/// Box and Muller: √(−2 ln u₁) cos(2π u₂).
LogicalResult drawNormal(NodeView &n, ArrayRef<int64_t> shape, Type type) {
  if (!type || !isa<FloatType>(type))
    return n.refuse("random numbers of this element type");
  Expr u1 = 1.0 - uniform(n, shape, n.builder.getF32Type()), u2 = uniform(n, shape, n.builder.getF32Type());
  Expr z = nn::sqrt(nn::log(u1) * -2.0) * nn::cos(u2 * 6.283185307179586);
  n.set(0, nn::cast(z * n.attrFloat("scale", 1.0) + n.attrFloat("mean", 0.0), type));
  return success();
}

LogicalResult randomUniform(NodeView &n) {
  return drawUniform(n, n.attrInts("shape"), typeOf(n, n.builder.getF32Type()));
}
LogicalResult randomNormal(NodeView &n) {
  return drawNormal(n, n.attrInts("shape"), typeOf(n, n.builder.getF32Type()));
}
/// Numbers for each element of the operand, of which data may decide how many there are.
LogicalResult drawLike(NodeView &n, LogicalResult (*draw)(NodeView &, ArrayRef<int64_t>, Type)) {
  if (failed(n.need(1)) || failed(draw(n, n.in(0).shape(), typeOf(n, n.in(0).elementType()))))
    return failure();
  n.context.selected.markLike(n.results[0].tensor, n.in(0));
  return success();
}
LogicalResult randomUniformLike(NodeView &n) { return drawLike(n, drawUniform); }
LogicalResult randomNormalLike(NodeView &n) { return drawLike(n, drawNormal); }
LogicalResult bernoulli(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Type type = typeOf(n, n.in(0).elementType());
  if (!type)
    return n.refuse("random numbers of this element type");
  Expr p = nn::cast(n.in(0), n.builder.getF32Type());
  n.set(0, nn::cast(nn::less(uniform(n, p.shape(), p.elementType()), p), type));
  return success();
}

} // namespace

void lowtide::addRandomRules(RuleTable &t) {
  t.add("Dropout", dropout);
  t.add("RandomUniform", randomUniform);
  t.add("RandomNormal", randomNormal);
  t.add("RandomUniformLike", randomUniformLike);
  t.add("RandomNormalLike", randomNormalLike);
  t.add("Bernoulli", bernoulli);
}
