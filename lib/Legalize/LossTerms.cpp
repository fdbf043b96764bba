//===- LossTerms.cpp - the losses that --loss can ask for -----------------===//
//
// PyTorch's formulas (torch.nn.functional), option by option.
//
//===----------------------------------------------------------------------===//
#include "LossTerms.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Legalize/Broadcast.h"
#include "runtime/ShellQuote.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

/// A place of its own: messages about a flag name no place in the model.
static Location lossLocation(LegalizeContext &context) { return NameLoc::get(context.builder.getStringAttr("loss")); }

LogicalResult lowtide::reportLossFault(MLIRContext *context, StringRef text, const LossFault &fault) {
  InFlightDiagnostic diag = emitError(UnknownLoc::get(context))
                            << "--loss: " << fault.message << " (column " << countColumns(text, fault.column) << ")";
  diag.attachNote() << pointInto(text, fault.column);
  if (!fault.remedy.empty())
    diag.attachNote() << fault.remedy;
  return diag;
}

LogicalResult LossTerms::fail(size_t column, const Twine &message, const Twine &remedy) {
  return reportLossFault(context.builder.getContext(), text, {column, message.str(), remedy.str()});
}

Value LossTerms::findBatch(StringRef name) const {
  for (unsigned i = 0; i < context.function.getNumArguments(); ++i)
    if (auto batch = context.function.getArgAttrOfType<train::BatchAttr>(i, train::bindingAttrName))
      if (batch.getName().getValue() == name)
        return context.function.getArgument(i);
  return {};
}

const NamedOutput *LossTerms::findOutput(StringRef name) const {
  auto found = llvm::find_if(outputs, [&](const NamedOutput &output) { return output.name == name; });
  return found == outputs.end() ? nullptr : &*found;
}

FailureOr<Value> LossTerms::addBatch(const LossName &name, RankedTensorType type, int64_t batchDim) {
  for (unsigned i = 0; i < context.function.getNumArguments(); ++i)
    if (auto binding = context.function.getArgAttr(i, train::bindingAttrName);
        isa_and_nonnull<train::ParamAttr, train::StateAttr>(binding) && train::getBindingName(binding) == name.text)
      return fail(name.column, "'" + name.text + "' is a parameter of the model, no array of the data");
  MLIRContext *mlir = context.builder.getContext();
  if (type.getRank() == 0)
    batchDim = -1;
  // Outputs of a model that walks over time first have their samples in the second dimension.
  const int64_t samples = train::countSamples(context.function);
  if (batchDim == 0 && type.getDimSize(0) != samples && llvm::count(type.getShape(), samples) == 1)
    batchDim = llvm::find(type.getShape(), samples) - type.getShape().begin();
  auto binding = train::BatchAttr::get(mlir, StringAttr::get(mlir, name.text), batchDim);
  unsigned index = context.function.getNumArguments();
  (void)context.function.insertArgument(
      index, type, context.builder.getDictionaryAttr(context.builder.getNamedAttr(train::bindingAttrName, binding)),
      context.function.getLoc());
  return Value(context.function.getArgument(index));
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

/// The op that `output` is made by, in whatever shape; null: it is another.
template <typename OpT> static OpT findMaker(Value output) {
  while (auto reshape = output.getDefiningOp<nn::ReshapeOp>())
    output = reshape.getX();
  return output.getDefiningOp<OpT>();
}

LossKind lowtide::suggestLossKind(Value output) {
  if (output.getDefiningOp<nn::SoftmaxOp>())
    return LossKind::Nll;
  if (output.getDefiningOp<nn::LogSoftmaxOp>())
    return LossKind::LogNll;
  return findMaker<nn::SigmoidOp>(output) ? LossKind::Bce : LossKind::CrossEntropy;
}

void LossTerms::warnOfProbabilities(const LossTerm &term, Value output) {
  const LossKind likely = suggestLossKind(output);
  const bool isWrong = (term.kind == LossKind::CrossEntropy && likely == LossKind::Nll) ||
                       (term.kind == LossKind::BceWithLogits && likely == LossKind::Bce) ||
                       (term.kind == LossKind::KlDiv && likely == LossKind::Nll);
  if (!isWrong)
    return;
  const std::string operand = writeLossName(term.output.text);
  InFlightDiagnostic warning = emitWarning(UnknownLoc::get(context.builder.getContext()))
                               << "--loss: " << findLossKind(*term.kind).name << " takes "
                               << (term.kind == LossKind::KlDiv ? "log-probabilities" : "logits") << ", and '"
                               << term.output.text << "' holds probabilities";
  if (term.kind != LossKind::KlDiv)
    warning.attachNote()
        << "their loss is --loss="
        << rt::quoteForShell(
               (findLossKind(likely).name + "(" + operand + ", " + writeLossName(term.labels.text) + ")").str());
}

/// Probabilities kept from 0 and 1, as Keras keeps them: their logarithms are finite.
static Expr bounded(Expr probabilities) {
  constexpr double nearest = 1e-7;
  return nn::min(nn::max(probabilities, probabilities.like(nearest)), probabilities.like(1 - nearest));
}

static StringRef reductionOf(const LossTerm &term) {
  const LossSetting *setting = term.find("reduction");
  return setting ? StringRef(setting->text) : "mean";
}

static double numberOf(const LossTerm &term, StringRef option, double otherwise) {
  const LossSetting *setting = term.find(option);
  return setting ? *setting->number : otherwise;
}

static Shape allDims(Expr x) { return llvm::to_vector(llvm::seq<int64_t>(0, x.rank())); }

/// The sum over all elements, in x's type; 16-bit floats are added as f32.
static Expr sumOfAll(Expr x) { return nn::cast(nn::sum(widened(x), allDims(x)), x.elementType()); }

static Expr reduced(Expr each, StringRef reduction) {
  return reduction == "sum" ? sumOfAll(each) : meanOf(each, allDims(each));
}

FailureOr<Expr> LossTerms::findWeights(const LossTerm &term, StringRef option, ArrayRef<int64_t> shape,
                                       RankedTensorType fresh, int64_t batchDim) {
  const LossSetting *setting = term.find(option);
  if (!setting)
    return Expr();
  OpBuilder &b = context.builder;
  const Location loc = lossLocation(context);
  auto toShape = [&](Expr weights) { return nn::broadcastTo(nn::cast(weights, fresh.getElementType()), shape); };
  if (setting->number)
    return nn::splat(b, loc, RankedTensorType::get(shape, fresh.getElementType()), *setting->number);
  if (!setting->list.empty()) {
    const int64_t wanted = shape.empty() ? 1 : shape.back(), given = int64_t(setting->list.size());
    if (given != wanted)
      return fail(setting->column, option + " has " + Twine(given) + (given == 1 ? " number" : " numbers") +
                                       ", and there are " + Twine(wanted) +
                                       (batchDim < 0 ? " classes" : " elements in the last dimension"));
    SmallVector<Attribute> numbers;
    for (double number : setting->list)
      numbers.push_back(b.getFloatAttr(fresh.getElementType(), number));
    auto type = RankedTensorType::get({given}, fresh.getElementType());
    return toShape(nn::constant(b, loc, DenseElementsAttr::get(type, numbers)));
  }
  const LossName name{setting->text, setting->column};
  if (Value known = findBatch(name.text)) {
    auto type = cast<RankedTensorType>(known.getType());
    FailureOr<Shape> common = broadcastShapes(type.getShape(), shape);
    if (failed(common) || ArrayRef<int64_t>(*common) != shape || isa<IntegerType>(type.getElementType()))
      return fail(name.column, option + ": input '" + name.text + "' does not broadcast to the floats that it weighs");
    return toShape(Expr(b, loc, known));
  }
  if (findOutput(name.text))
    return fail(name.column, option + ": '" + name.text + "' is an output of the model; weights are data");
  FailureOr<Value> added = addBatch(name, fresh, batchDim);
  if (failed(added))
    return failure();
  return toShape(Expr(b, loc, *added));
}

/// Cross-entropy with a probability for each class: PyTorch's cross_entropy_loss_prob_target.
FailureOr<Expr> LossTerms::ofMixedLabels(const LossTerm &term, Expr y, Expr target) {
  if (const LossSetting *ignored = term.find("ignore_index"); ignored && *ignored->number >= 0)
    return fail(ignored->option.column,
                "ignore_index is of whole labels, and '" + term.labels.text + "' holds a probability for each class");
  const int64_t dim = y.rank() == 1 ? 0 : 1, classes = y.dim(dim);
  FailureOr<Expr> weights =
      findWeights(term, "weight", {classes}, RankedTensorType::get({classes}, y.elementType()), -1);
  if (failed(weights))
    return failure();
  target = nn::cast(target, y.elementType());
  if (const double part = numberOf(term, "label_smoothing", 0))
    target = target * (1 - part) + part / double(classes);
  Expr each = target * nn::logSoftmax(y, dim);
  if (*weights)
    each = each * nn::broadcast(*weights, y.shape(), {dim});
  Expr losses = -nn::sum(each, {dim});
  return reduced(losses, reductionOf(term));
}

FailureOr<Expr> LossTerms::ofClasses(const LossTerm &term, Expr y) {
  OpBuilder &b = context.builder;
  Value labels = findBatch(term.labels.text);
  if (!labels && findOutput(term.labels.text))
    return fail(term.labels.column,
                "'" + term.labels.text +
                    "' is an output of the model; labels are an input of it, "
                    "or an array of the data",
                "any other name becomes an array that the step reads");
  auto labelType = labels ? cast<RankedTensorType>(labels.getType()) : RankedTensorType();
  if (term.kind == LossKind::CrossEntropy && labels && isa<FloatType>(labelType.getElementType()) &&
      labelType.getShape() == y.shape() && y.rank() > 0)
    return ofMixedLabels(term, y, y.with(labels));
  FailureOr<int64_t> dim = findClassDim(y, labels);
  if (failed(dim) || (labels && !isa<IntegerType>(labelType.getElementType()))) {
    std::string types;
    llvm::raw_string_ostream os(types);
    if (labels)
      os << " of type " << labels.getType();
    os << " do not fit logits of type " << y.type();
    return fail(term.labels.column,
                "labels '" + term.labels.text + "'" + types +
                    ": they are whole numbers in the shape of the logits without the class dimension");
  }
  const int64_t classes = y.dim(*dim);
  FailureOr<Expr> weights =
      findWeights(term, "weight", {classes}, RankedTensorType::get({classes}, y.elementType()), -1);
  if (failed(weights))
    return failure();
  if (!labels) {
    FailureOr<Value> added =
        addBatch(term.labels, RankedTensorType::get(without(y.shape(), *dim), b.getI64Type()), /*batchDim=*/0);
    if (failed(added))
      return failure();
    labels = *added;
  }
  int64_t ignored = -100;
  if (const LossSetting *setting = term.find("ignore_index"))
    (void)StringRef(setting->text).getAsInteger(10, ignored);
  ClassLoss loss{y.with(labels), *weights, *dim, ignored, reductionOf(term)};
  auto logSoftmax = y.get().getDefiningOp<nn::LogSoftmaxOp>();
  auto softmax = y.get().getDefiningOp<nn::SoftmaxOp>();
  // Cross-entropy reads logits up to a sum: those that probabilities were made of, or their logarithms.
  if (term.kind == LossKind::CrossEntropy)
    return smoothedCrossEntropy(y, loss, numberOf(term, "label_smoothing", 0));
  if (logSoftmax && logSoftmax.getDim() == uint64_t(*dim))
    return smoothedCrossEntropy(y.with(logSoftmax.getX()), loss, 0);
  if (term.kind == LossKind::LogNll || logSoftmax)
    return negativeLogLikelihood(y, loss);
  return smoothedCrossEntropy(
      softmax && softmax.getDim() == uint64_t(*dim) ? y.with(softmax.getX()) : nn::log(bounded(y)), loss, 0);
}

/// What each element costs, before weights.
static Expr elementLoss(const LossTerm &term, Expr y, Expr target, Expr posWeight) {
  switch (*term.kind) {
  case LossKind::L1:
    return nn::abs(y - target);
  case LossKind::SmoothL1:
  case LossKind::Huber: {
    const bool isHuber = term.kind == LossKind::Huber;
    const double edge = numberOf(term, isHuber ? "delta" : "beta", 1);
    Expr difference = y - target, size = nn::abs(difference);
    if (edge == 0)
      return size;
    Expr inside = difference * difference * 0.5, outside = (size - 0.5 * edge) * edge;
    Expr huber = nn::select(nn::less(size, edge), inside, outside);
    return isHuber ? huber : huber / edge;
  }
  case LossKind::Bce:
  case LossKind::BceWithLogits:
    // −p·t·log σ(y) − (1−t)·log(1−σ(y)), where −log σ(y) = softplus(y) − y
    if (posWeight)
      return (1.0 - target) * y + (1.0 + (posWeight - 1.0) * target) * nn::softplus(-y);
    return nn::softplus(y) - y * target;
  case LossKind::KlDiv: {
    const LossSetting *isLog = term.find("log_target");
    if (isLog && StringRef(isLog->text).equals_insensitive("true"))
      return nn::exp(target) * (target - y);
    Expr isPositive = nn::greater(target, 0.0), safe = nn::select(isPositive, target, target.like(1.0));
    return target * nn::log(safe) - target * y; // 0·log 0 is 0
  }
  default:
    return (y - target) * (y - target);
  }
}

FailureOr<Expr> LossTerms::ofElements(const LossTerm &term, Expr y) {
  if (term.kind == LossKind::Bce) {
    if (auto sigmoid = findMaker<nn::SigmoidOp>(y)) {
      y = nn::reshape(y.with(sigmoid.getX()), y.shape());
    } else {
      y = bounded(y);
      y = nn::log(y) - nn::log(1.0 - y);
    }
  }
  FailureOr<Value> target = findBatch(term.labels.text);
  if (!*target)
    if (const NamedOutput *output = findOutput(term.labels.text)) {
      if (output->name == term.output.text)
        return fail(term.labels.column, "'" + term.labels.text + "' is compared with itself",
                    "the second operand is an input, another output, or an array of the data");
      target = output->value;
    }
  if (!*target && failed(target = addBatch(term.labels, y.type(), /*batchDim=*/0)))
    return failure();
  if (target->getType() != y.type()) {
    std::string types;
    llvm::raw_string_ostream(types) << " has type " << target->getType() << ", the output has " << y.type();
    return fail(term.labels.column, "target '" + term.labels.text + "'" + types);
  }
  const StringRef reduction = reductionOf(term);
  FailureOr<Expr> weights = findWeights(term, "weight", y.shape(), y.type(), 0);
  const Shape last(y.rank() > 1 ? Shape{y.dim(-1)} : y.rank() == 1 ? Shape{1} : Shape());
  FailureOr<Expr> posWeight =
      failed(weights) ? FailureOr<Expr>()
                      : findWeights(term, "pos_weight", y.shape(), RankedTensorType::get(last, y.elementType()), -1);
  if (failed(posWeight))
    return failure();
  Expr each = elementLoss(term, y, y.with(*target), *posWeight);
  if (*weights)
    each = each * *weights;
  if (reduction == "batchmean")
    return y.rank() ? sumOfAll(each) / double(y.dim(0)) : each;
  // PyTorch's mse_loss and l1_loss divide by the sum of weights, the others by the number of elements.
  const bool isWeightedMean = term.kind == LossKind::Mse || term.kind == LossKind::L1;
  if (reduction == "mean" && *weights && isWeightedMean)
    return sumOfAll(each) / sumOfAll(*weights);
  return reduced(each, reduction);
}

FailureOr<Expr> LossTerms::buildTerm(const LossTerm &term) {
  const NamedOutput *output = findOutput(term.output.text);
  if (!output) {
    std::string names;
    SmallVector<StringRef> known;
    for (const NamedOutput &other : outputs) {
      names += (names.empty() ? "'" : ", '") + other.name + "'";
      known.push_back(other.name);
    }
    return fail(term.output.column,
                "the model has no output '" + term.output.text + "'; it has " + names +
                    suggestName(term.output.text, known),
                term.kind ? "" : "a loss is an output that is one, or of the form cross_entropy(logits, labels)");
  }
  auto type = cast<RankedTensorType>(output->value.getType());
  Expr y(context.builder, lossLocation(context), output->value);
  if (!isa<FloatType>(type.getElementType()))
    return fail(term.output.column, "output '" + term.output.text + "' holds whole numbers, of which no loss is made");
  if (!term.kind) {
    if (type.getNumElements() != 1)
      return fail(term.output.column, "output '" + term.output.text + "' is no scalar, so it is no loss by itself",
                  "say which loss is made of it, for example " + findLossKind(suggestLossKind(output->value)).name +
                      "(" + writeLossName(term.output.text) + ", labels)");
    return nn::reshape(y, {});
  }
  warnOfProbabilities(term, output->value);
  const bool isOfClasses =
      term.kind == LossKind::CrossEntropy || term.kind == LossKind::Nll || term.kind == LossKind::LogNll;
  return isOfClasses ? ofClasses(term, y) : ofElements(term, y);
}

FailureOr<Value> LossTerms::build(ArrayRef<LossTerm> terms) {
  Expr total;
  for (const LossTerm &term : terms) {
    FailureOr<Expr> loss = buildTerm(term);
    if (failed(loss))
      return failure();
    Expr part = term.factor == 1 ? *loss : *loss * term.factor;
    total = total ? total + nn::cast(part, total.elementType()) : part;
  }
  return Value(total);
}
