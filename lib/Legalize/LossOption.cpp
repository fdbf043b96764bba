//===- LossOption.cpp - which value is the loss ---------------------------===//
//
// Reads `--loss`, finds or adds the loss.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/LossOption.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Legalize/Broadcast.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

/// `kind(output, labels)`.
static bool parseCall(StringRef text, StringRef &kind, StringRef &output, StringRef &labels) {
  auto [head, rest] = text.split('(');
  if (!rest.trim().consume_back(")") && !rest.trim().ends_with(")"))
    return false;
  rest = rest.trim().drop_back();
  auto [a, b] = rest.split(',');
  kind = head.trim();
  output = a.trim();
  labels = b.trim();
  return !kind.empty() && !output.empty() && !labels.empty();
}

static bool isFloatScalar(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return isa<FloatType>(type.getElementType()) && type.getNumElements() == 1;
}

static Value findBatch(LegalizeContext &context, StringRef name) {
  for (unsigned i = 0; i < context.function.getNumArguments(); ++i)
    if (auto batch = context.function.getArgAttrOfType<train::BatchAttr>(i, train::bindingAttrName))
      if (batch.getName().getValue() == name)
        return context.function.getArgument(i);
  return {};
}

static Value addBatch(LegalizeContext &context, StringRef name, RankedTensorType type) {
  MLIRContext *mlir = context.builder.getContext();
  auto binding = train::BatchAttr::get(mlir, StringAttr::get(mlir, name), type.getRank() ? 0 : -1);
  unsigned index = context.function.getNumArguments();
  (void)context.function.insertArgument(
      index, type, context.builder.getDictionaryAttr(context.builder.getNamedAttr(train::bindingAttrName, binding)),
      context.function.getLoc());
  return context.function.getArgument(index);
}

static Shape without(ArrayRef<int64_t> shape, int64_t dim) {
  Shape result(shape);
  result.erase(result.begin() + dim);
  return result;
}

/// The dimension that counts classes: dimension 1 as PyTorch has it, the last one for three-dimensional logits
/// (language models); existing labels decide by their shape.
static FailureOr<int64_t> findClassDim(Expr logits, Value labels) {
  int64_t rank = logits.rank();
  if (rank < 1)
    return failure();
  if (!labels)
    return rank == 1 ? 0 : rank == 3 ? 2 : 1;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(labels.getType()).getShape();
  if (rank > 1 && without(logits.shape(), 1) == shape)
    return 1;
  if (without(logits.shape(), rank - 1) == shape)
    return rank - 1;
  return failure();
}

/// The sigmoid that `output` is, in whatever shape; null: it is none.
static nn::SigmoidOp findSigmoid(Value output) {
  while (auto reshape = output.getDefiningOp<nn::ReshapeOp>())
    output = reshape.getX();
  return output.getDefiningOp<nn::SigmoidOp>();
}

/// The kind of loss that classifiers with such an output are trained by.
static StringRef suggestKind(Value output) {
  if (output.getDefiningOp<nn::SoftmaxOp>())
    return "nll";
  return findSigmoid(output) ? "bce" : "cross_entropy";
}

/// Probabilities kept from 0 and 1, as Keras keeps them: their logarithms are finite.
static Expr bounded(Expr probabilities) {
  constexpr double nearest = 1e-7;
  return nn::min(nn::max(probabilities, probabilities.like(nearest)), probabilities.like(1 - nearest));
}

static FailureOr<Value> buildLoss(LegalizeContext &context, StringRef kind, const NamedOutput &named,
                                  StringRef labelName) {
  Value output = named.value;
  OpBuilder &b = context.builder;
  Location loc = NameLoc::get(b.getStringAttr("loss"));
  Expr y(b, loc, output);
  Value labels = findBatch(context, labelName);
  if (kind == "nll") {
    // Cross-entropy reads logits up to a sum: those that the probabilities were made of, or their logarithms.
    FailureOr<int64_t> dim = findClassDim(y, labels);
    auto softmax = output.getDefiningOp<nn::SoftmaxOp>();
    y = softmax && succeeded(dim) && softmax.getDim() == uint64_t(*dim) ? y.with(softmax.getX()) : nn::log(bounded(y));
    kind = "cross_entropy";
  } else if (kind == "bce") {
    if (auto sigmoid = findSigmoid(output)) {
      y = nn::reshape(y.with(sigmoid.getX()), y.shape());
    } else {
      y = bounded(y);
      y = nn::log(y) - nn::log(1.0 - y);
    }
    kind = "bce_with_logits";
  } else if (StringRef likely = suggestKind(output);
             (kind == "cross_entropy" && likely == "nll") || (kind == "bce_with_logits" && likely == "bce")) {
    InFlightDiagnostic warning = emitWarning(loc) << "--loss: " << kind << " takes logits, and '" << named.name
                                                  << "' holds probabilities";
    warning.attachNote() << "their loss is --loss='" << likely << "(" << named.name << ", " << labelName << ")'";
  }
  if (kind == "cross_entropy") {
    FailureOr<int64_t> dim = findClassDim(y, labels);
    if (failed(dim)) {
      emitError(loc) << "--loss: labels '" << labelName << "' do not fit logits of type " << output.getType()
                     << ": their shape must be that of the logits without the class dimension";
      return failure();
    }
    if (!labels)
      labels = addBatch(context, labelName, RankedTensorType::get(without(y.shape(), *dim), b.getI64Type()));
    return Value(crossEntropyLoss(y, Expr(b, loc, labels), {}, *dim, -100, "mean"));
  }
  if (!labels)
    labels = addBatch(context, labelName, y.type());
  if (labels.getType() != output.getType()) {
    emitError(loc) << "--loss: target '" << labelName << "' has type " << labels.getType() << ", the output has "
                   << output.getType();
    return failure();
  }
  Expr target(b, loc, labels);
  Shape all = llvm::to_vector(llvm::seq<int64_t>(0, y.rank()));
  if (kind == "mse")
    return Value(meanOf((y - target) * (y - target), all));
  if (kind == "l1")
    return Value(meanOf(nn::abs(y - target), all));
  if (kind == "bce_with_logits") // −t·log σ(y) − (1−t)·log(1−σ(y))
    return Value(meanOf(nn::softplus(y) - y * target, all));
  emitError(loc) << "--loss: unknown kind '" << kind
                 << "'; there are cross_entropy and bce_with_logits of logits, nll and bce of probabilities, mse, l1";
  return failure();
}

LogicalResult lowtide::findLoss(LegalizeContext &context, SmallVectorImpl<NamedOutput> &outputs) {
  StringRef wanted = StringRef(context.options.loss).trim();
  auto names = [&] {
    std::string list;
    for (NamedOutput &output : outputs)
      list += (list.empty() ? "'" : ", '") + output.name + "'";
    return list;
  };
  auto byName = [&](StringRef name) {
    return llvm::find_if(outputs, [&](NamedOutput &output) { return output.name == name; });
  };
  Location loc = context.function.getLoc();
  if (StringRef kind, name, labels; parseCall(wanted, kind, name, labels)) {
    auto it = byName(name);
    if (it == outputs.end())
      return emitError(loc) << "--loss: the model has no output '" << name << "'; it has " << names();
    FailureOr<Value> loss = buildLoss(context, kind, *it, labels);
    if (failed(loss))
      return failure();
    outputs.push_back({"loss", *loss, true});
    return success();
  }
  auto found = outputs.end();
  if (!wanted.empty()) {
    found = byName(wanted);
    if (found == outputs.end() || !isFloatScalar(found->value))
      return emitError(loc)
             << "--loss: '" << wanted
             << "' is neither a scalar float output nor of the form cross_entropy(logits, labels); outputs: "
             << names();
  } else {
    found = llvm::find_if(outputs, [](NamedOutput &o) { return o.name == "loss" && isFloatScalar(o.value); });
    auto isScalar = [](NamedOutput &o) { return isFloatScalar(o.value); };
    // A file taken as it is and not trained keeps its outputs under their names.
    bool guesses = context.options.requireLoss || context.options.mode != TrainingMode::AsIs;
    if (found == outputs.end() && guesses && llvm::count_if(outputs, isScalar) == 1)
      found = llvm::find_if(outputs, isScalar);
  }
  if (found == outputs.end()) {
    if (!context.options.requireLoss)
      return success();
    InFlightDiagnostic diag = emitError(loc) << "the model has no loss: none of its outputs (" << names()
                                             << ") is the only scalar float one";
    diag.attachNote() << "say which loss to add, for example --loss='"
                      << (outputs.empty() ? "cross_entropy" : suggestKind(outputs.front().value)) << "("
                      << (outputs.empty() ? "logits" : outputs.front().name) << ", labels)'";
    return diag;
  }
  found->isLoss = true;
  if (cast<RankedTensorType>(found->value.getType()).getRank())
    found->value = nn::reshape(Expr(context.builder, loc, found->value), {});
  return success();
}
