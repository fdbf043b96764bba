//===- NormalizationRules.cpp - normalizations ----------------------------===//
//
// Rules for layer, RMS, group, instance and batch norm and their relatives.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"
#include "lowtide/Legalize/Window.h"
#include "lowtide/Recover/NodeNotes.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// scale or bias of a norm over the dimensions from `axis` on, in the shape of these; null when it spans others too.
Expr normalizedOperand(Expr x, Expr parameter, int64_t axis) {
  ArrayRef<int64_t> inner = x.shape().drop_front(axis);
  if (parameter.rank() > int64_t(inner.size())) {
    int64_t more = parameter.rank() - inner.size();
    if (countOf(parameter.shape().take_front(more)) != 1)
      return {};
    parameter = nn::reshape(parameter, parameter.shape().drop_front(more));
  }
  FailureOr<Shape> common = broadcastShapes(parameter.shape(), inner);
  return succeeded(common) && ArrayRef<int64_t>(*common) == inner ? nn::broadcastTo(parameter, inner) : Expr();
}

LogicalResult layerNorm(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", -1), x.rank());
  if (failed(axis))
    return failure();
  Type given = x.elementType(), stash = elementTypeOf(n.builder.getContext(), n.attr("stash_type", 1));
  if (!stash || !isFloat(x))
    return n.refuse("'stash_type' " + Twine(n.attr("stash_type", 1)));
  bool widens = given.getIntOrFloatBitWidth() < stash.getIntOrFloatBitWidth();
  auto widen = [&](Expr e) { return widens ? nn::cast(e, stash) : e; };
  Shape inner(x.shape().drop_front(*axis));
  Expr scale = normalizedOperand(x, n.in(1), *axis);
  Expr bias = n.has(2) ? normalizedOperand(x, n.in(2), *axis) : n.splat(given, inner, 0.0);
  bool outside = !scale || !bias; // scale or bias differ between rows
  if (outside) {
    scale = n.splat(given, inner, 1.0);
    bias = n.splat(given, inner, 0.0);
  }
  auto [y, mean, rstd] = nn::layerNorm(widen(x), widen(scale), widen(bias), *axis, n.attrFloat("epsilon", 1e-5));
  if (outside) {
    Expr s = n.in(1), b = n.has(2) ? n.in(2) : n.splat(given, {}, 0.0);
    if (failed(broadcastShapes(s.shape(), x.shape())) || failed(broadcastShapes(b.shape(), x.shape())))
      return n.reject("scale or bias do not broadcast to the operand");
    y = y * nn::broadcastTo(widen(s), x.shape()) + nn::broadcastTo(widen(b), x.shape());
  }
  Shape kept(x.shape());
  std::fill(kept.begin() + *axis, kept.end(), 1);
  n.set(0, nn::cast(y, given));
  n.set(1, nn::reshape(mean, kept));
  n.set(2, nn::reshape(rstd, kept));
  return success();
}

LogicalResult rmsNorm(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", -1), x.rank());
  if (failed(axis))
    return failure();
  Type given = x.elementType(), stash = elementTypeOf(n.builder.getContext(), n.attr("stash_type", 1));
  if (!stash || !isFloat(x))
    return n.refuse("'stash_type' " + Twine(n.attr("stash_type", 1)));
  bool widens = given.getIntOrFloatBitWidth() < stash.getIntOrFloatBitWidth();
  Expr scale = normalizedOperand(x, n.in(1), *axis);
  if (!scale)
    return n.refuse("a scale that differs between rows");
  auto widen = [&](Expr e) { return widens ? nn::cast(e, stash) : e; };
  n.set(0, nn::cast(nn::rmsNorm(widen(x), widen(scale), *axis, n.attrFloat("epsilon", 1e-5))[0], given));
  return success();
}

/// Each row of [rows, …] to mean 0 and variance 1.
Expr standardize(Expr x, ArrayRef<int64_t> rows, double epsilon) {
  Expr flat = nn::reshape(x, rows);
  Type type = x.elementType();
  auto constant = [&](double v) {
    return nn::splat(x.getBuilder(), x.getLoc(), RankedTensorType::get(rows.drop_front(), type), v);
  };
  return nn::reshape(nn::layerNorm(flat, constant(1.0), constant(0.0), 1, epsilon)[0], x.shape());
}

LogicalResult instanceNorm(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr x = n.in(0);
  if (x.rank() < 3 || n.in(1).shape() != ArrayRef<int64_t>{x.dim(1)} || n.in(2).shape() != ArrayRef<int64_t>{x.dim(1)})
    return n.reject("operands [N, C, d…], [C], [C] are expected");
  Expr y = standardize(x, {x.dim(0) * x.dim(1), countOf(x.shape().drop_front(2))}, n.attrFloat("epsilon", 1e-5));
  n.set(0, addChannelBias(y * spreadChannel(n.in(1), x), n.in(2)));
  return success();
}

/// Before version 21 scale and bias are per group, from there on per channel.
LogicalResult groupNorm(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr x = n.in(0);
  int64_t groups = n.attr("num_groups", 0), channels = x.rank() > 1 ? x.dim(1) : 0;
  if (x.rank() < 2 || groups < 1 || channels % groups)
    return n.reject(Twine(channels) + " channels do not divide into " + Twine(groups) + " groups");
  auto perChannel = [&](Expr e) -> Expr {
    if (e.shape() == ArrayRef<int64_t>{channels})
      return e;
    if (e.shape() != ArrayRef<int64_t>{groups})
      return {};
    return nn::reshape(nn::broadcast(e, {groups, channels / groups}, {0}), {channels});
  };
  Expr scale = perChannel(n.in(1)), bias = perChannel(n.in(2));
  if (!scale || !bias)
    return n.reject("scale and bias have neither one element per channel nor one per group");
  Type given = x.elementType(), stash = elementTypeOf(n.builder.getContext(), n.attr("stash_type", 1));
  bool widens = stash && given.getIntOrFloatBitWidth() < stash.getIntOrFloatBitWidth();
  n.set(0, groupNormalize(x, scale, bias, groups, n.attrFloat("epsilon", 1e-5), widens ? stash : given));
  return success();
}

/// Whether nodes repeat a tensor of the file: an instance norm's running statistics, for each sample.
bool isRepeated(Value value) {
  bool repeats = false;
  while (auto node = dyn_cast_or_null<onnx::NodeOp>(value.getDefiningOp())) {
    if (!llvm::is_contained({"Tile", "Expand", "Reshape", "Concat"}, node.getOpType()))
      return false;
    repeats |= node.getOpType() != "Reshape";
    value = node->getOperand(0);
  }
  // A parameter, a state or a small constant, which is in the text.
  return repeats;
}

/// Running statistics after a batch of these.
void updateStatistics(NodeView &n, Expr mean, Expr variance, double momentum) {
  for (auto [operand, batch] : {std::pair(3u, mean), std::pair(4u, variance)}) {
    Expr old = n.in(operand);
    bool isState = n.context.roleOf(old) == "state";
    // A layer that is called twice updates what it updated before.
    if (Value current = isState ? n.context.currentState(n.context.argumentOf(old)) : Value();
        current && current.getType() == old.type())
      old = n.wrap(current);
    Expr next = old * momentum + nn::cast(batch, old.elementType()) * (1.0 - momentum);
    n.set(operand - 2, next);
    if (isState)
      n.context.updateState(n.context.argumentOf(n.in(operand)), next);
    else if (operand == 3 && isRepeated(n.op->getOperand(operand)))
      emitWarning(n.getLoc()) << "batch norm '" << n.op.getNodeLabel()
                              << "' reads statistics that are computed from others, as of an instance norm that keeps "
                                 "them: they are not updated";
  }
}

/// A layer without scale and bias has constants in their place.
bool isSplatOf(Expr x, double value) {
  DenseElementsAttr constant = LegalizeContext::constantOf(x);
  return constant && constant.isSplat() && floatsOf(constant).front() == value;
}

/// Whether `node` is said to take the statistics of the batch: by the exporter's note, or by the file.
bool saysTraining(onnx::NodeOp node) {
  auto number = [&](StringRef name) {
    auto attr = dyn_cast_or_null<IntegerAttr>(node.getNodeAttr(name));
    return attr ? attr.getInt() : 0;
  };
  return number(trainsAttrName) != 0 || number("training_mode") != 0;
}

/// Whether the model says of some batch norms that they train: then those of which it says otherwise are frozen.
bool isFrozenBesideOthers(NodeView &n) {
  if (saysTraining(n.op))
    return false;
  auto model = n.op->getParentOfType<func::FuncOp>();
  bool others = false;
  if (model)
    model.walk([&](onnx::NodeOp node) { others |= node.getOpType() == "BatchNormalization" && saysTraining(node); });
  return others;
}

/// Whether the user freezes this batch norm, by the path of its module or the node's own name.
bool isFrozenByName(NodeView &n) {
  std::vector<std::string> names{n.op.getNodeLabel().str()};
  for (unsigned i = 1; i < 5; ++i)
    if (BlockArgument argument = n.context.argumentOf(n.in(i)))
      if (Attribute binding = train::getArgBinding(n.context.function, argument.getArgNumber()))
        names.push_back(train::getBindingName(binding).getValue().rsplit('.').first.str());
  return n.context.isFrozenNorm(names);
}

/// Whether running variances are those of PyTorch's operation, unbiased: it wrote the model, whatever form its exporter
/// chose. ONNX's own definition of the training form keeps the biased one.
bool keepsUnbiasedVariance(NodeView &n, bool stated) {
  return !stated || (n.context.options.mode != TrainingMode::AsIs && n.isOfPyTorch());
}

/// A batch norm of rows of which data decide the number, `count` numbers in a channel: y, the mean, the variance.
std::array<Expr, 3> selectedBatchNorm(Expr x, Expr scale, Expr bias, double epsilon, Expr count) {
  const Shape dims = dimsBut(x, 1);
  Expr wide = widened(x), mean = meanOf(wide, dims, count);
  auto spread = [&](Expr e) { return nn::unreduce(nn::cast(e, wide.elementType()), wide.type(), dims); };
  Expr centered = wide - spread(mean), variance = meanOf(centered * centered, dims, count);
  Expr y = centered * spread(nn::cast(scale, wide.elementType()) * nn::rsqrt(variance + epsilon)) + spread(bias);
  return {nn::cast(y, x.elementType()), mean, variance};
}

/// The unbiased variance of `count` numbers.
Expr unbiasedOf(Expr variance, Expr count) {
  Expr known = nn::cast(count, variance.elementType());
  return variance * nn::broadcastTo(known / (known - 1.0), variance.shape());
}

LogicalResult batchNorm(NodeView &n) {
  if (failed(n.need(5)))
    return failure();
  Expr x = n.in(0), scale = n.in(1), bias = n.in(2);
  if (x.rank() < 1 || !isFloat(x))
    return n.reject("a float operand is expected");
  int64_t channels = x.rank() > 1 ? x.dim(1) : 1;
  for (unsigned i = 1; i < 5; ++i)
    if (n.in(i).shape() != ArrayRef<int64_t>{channels})
      return n.reject("operand " + Twine(i) + " must have one element for each of " + Twine(channels) + " channels");
  double epsilon = n.attrFloat("epsilon", 1e-5), momentum = n.attrFloat("momentum", 0.9);
  bool stated = n.version() >= 14 ? n.attr("training_mode", 0) != 0 : n.numResults() > 1;
  TrainingMode mode = n.context.options.mode;
  // Repeated for each sample, they are those of an instance norm, which takes each sample's own in training.
  const bool isOfSamples = isRepeated(n.op->getOperand(3)) && isRepeated(n.op->getOperand(4));
  bool trainable = n.context.roleOf(scale) == "parameter" || n.context.roleOf(bias) == "parameter" || isOfSamples ||
                   (isSplatOf(scale, 1) && isSplatOf(bias, 0) && n.context.roleOf(n.in(3)) == "state");
  const bool isFrozen = mode == TrainingMode::Train && isFrozenBesideOthers(n);
  if (isFrozen)
    emitRemark(n.getLoc()) << "batch norm '" << n.op.getNodeLabel()
                           << "' keeps its running statistics, as the file says, which says of others that they train";
  bool trains = mode == TrainingMode::AsIs ? stated || saysTraining(n.op)
                                           : mode == TrainingMode::Train && !isFrozen && (stated || trainable);
  if (isFrozenByName(n))
    trains = false;
  Type given = x.elementType();
  if (trains) {
    Expr wide = x.rank() > 1 ? x : nn::reshape(x, {x.dim(0), 1});
    auto as = [&](Expr e) { return nn::cast(e, given); };
    Expr count = n.context.selected.countAlong(x, dimsBut(x, 1));
    auto [y, mean, variance] = count ? selectedBatchNorm(wide, scale, bias, epsilon, count)
                                     : nn::batchNorm(wide, as(scale), as(bias), epsilon);
    if (x.type().getNumElements() == channels) {
      InFlightDiagnostic warning =
          emitWarning(n.getLoc()) << "batch norm '" << n.op.getNodeLabel()
                                  << "' has one value for each channel: what it normalizes is zero, and nothing before "
                                     "it is trained (PyTorch refuses to train so)";
      warning.attachNote() << "use a batch of two or more, or keep its statistics: --mode=as-is, --mode=eval";
    }
    if (keepsUnbiasedVariance(n, stated))
      variance = count ? unbiasedOf(variance, count) : nn::unbiasedVariance(variance, wide);
    updateStatistics(n, mean, variance, momentum);
    n.set(0, nn::reshape(y, x.shape()));
    if (!stated)
      emitRemark(n.getLoc())
          << "batch norm '" << n.op.getNodeLabel()
          << "' is in inference form in the file and trained in training form; --mode=as-is keeps it";
    return success();
  }
  Expr mean = n.in(3), variance = n.in(4);
  Expr factor = nn::cast(scale, variance.elementType()) / nn::sqrt(variance + epsilon);
  auto spread = [&](Expr e) {
    return x.rank() > 1 ? spreadChannel(nn::cast(e, given), x) : nn::broadcastTo(nn::cast(e, given), x.shape());
  };
  n.set(0, (x - spread(mean)) * spread(factor) + spread(bias));
  // Training results that a file asks for keep the statistics as they are.
  n.set(1, mean);
  n.set(2, variance);
  return success();
}

LogicalResult lpNorm(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", -1), x.rank());
  int64_t p = n.attr("p", 2);
  if (failed(axis))
    return failure();
  if (p != 1 && p != 2)
    return n.reject("'p' must be 1 or 2");
  Expr norm = p == 1 ? nn::sum(nn::abs(x), {*axis}) : nn::sqrt(nn::sum(x * x, {*axis}));
  Expr spread = nn::unreduce(norm, x.type(), {*axis});
  n.set(0,
        nn::select(nn::equal(spread, 0.0), x.like(0.0), x / nn::select(nn::equal(spread, 0.0), x.like(1.0), spread)));
  return success();
}

LogicalResult meanVarianceNorm(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<Shape> axes = n.axes(n.attrInts("axes", {0, 2, 3}), x.rank());
  if (failed(axes))
    return failure();
  llvm::sort(*axes);
  auto mean = [&](Expr e) { return nn::unreduce(meanOf(e, *axes), x.type(), *axes); };
  Expr centred = x - mean(x);
  n.set(0, centred / (nn::sqrt(mean(centred * centred)) + 1e-9));
  return success();
}

/// Local response normalization across channels.
LogicalResult lrn(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  int64_t size = n.attr("size", 1);
  if (x.rank() < 3 || size < 1)
    return n.reject("[N, C, d…] and a positive size are expected");
  double alpha = n.attrFloat("alpha", 1e-4), beta = n.attrFloat("beta", 0.75), bias = n.attrFloat("bias", 1.0);
  Shape low(x.rank(), 0), high(x.rank(), 0), start(x.rank(), 0);
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  Expr squares = nn::pad(x * x, low, high), sum;
  for (int64_t i = 0; i < size; ++i) {
    start[1] = i;
    Expr part = nn::slice(squares, start, x.shape());
    sum = sum ? sum + part : part;
  }
  n.set(0, x / nn::pow(sum * (alpha / double(size)) + bias, x.like(beta)));
  return success();
}

} // namespace

Expr lowtide::groupNormalize(Expr x, Expr scale, Expr bias, int64_t groups, double epsilon, Type wide) {
  Expr y = standardize(nn::cast(x, wide), {x.dim(0) * groups, countOf(x.shape().drop_front(1)) / groups}, epsilon);
  return addChannelBias(nn::cast(y, x.elementType()) * spreadChannel(scale, x), bias);
}

void lowtide::addNormalizationRules(RuleTable &t) {
  t.add("LayerNormalization", layerNorm);
  t.add("RMSNormalization", rmsNorm);
  t.add("InstanceNormalization", instanceNorm);
  t.add("GroupNormalization", groupNorm);
  t.add("BatchNormalization", batchNorm, SelectedMeet::Yes);
  t.add("LpNormalization", lpNorm);
  t.add("MeanVarianceNormalization", meanVarianceNorm);
  t.add("LRN", lrn);
}
