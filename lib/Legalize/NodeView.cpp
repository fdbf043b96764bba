//===- NodeView.cpp - what a legalization rule sees of a node -------------===//
//
// Operands, attributes and results of one node; see the header.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/NodeView.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "llvm/Support/MathExtras.h"

#include <charconv>
#include <iterator>

using namespace mlir;
using namespace lowtide;

NodeView::NodeView(onnx::NodeOp op, LegalizeContext &context, OpBuilder &builder)
    : op(op), context(context), builder(builder), results(op.getNumResults()) {
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    if (op.hasInput(i))
      count = i + 1;
}

bool NodeView::has(unsigned i) const { return i < count && onnx::NodeOp(op).hasInput(i); }

const Meaning &NodeView::meaning(unsigned i) const { return context.lookup(onnx::NodeOp(op).getInputs()[i]); }

nn::Expr NodeView::wrap(Value value) const {
  return value ? nn::Expr(builder, onnx::NodeOp(op).getLoc(), value) : nn::Expr();
}

nn::Expr NodeView::in(unsigned i) const { return has(i) ? wrap(meaning(i).tensor) : nn::Expr(); }

/// Elements up to which an operand is looked at one by one: a splat may stand for more than memory holds.
static constexpr int64_t mostElements = int64_t(1) << 26;

DenseElementsAttr NodeView::constant(unsigned i) const {
  DenseElementsAttr value = has(i) ? LegalizeContext::constantOf(meaning(i).tensor) : DenseElementsAttr();
  return value && value.getNumElements() <= mostElements ? value : DenseElementsAttr();
}

Shape lowtide::intsOf(DenseElementsAttr attr) {
  Shape result;
  result.reserve(attr.getNumElements());
  bool isUnsigned = attr.getElementType().isUnsignedInteger() || attr.getElementType().isInteger(1);
  for (const APInt &v : attr.getValues<APInt>())
    result.push_back(isUnsigned ? int64_t(v.getZExtValue()) : v.getSExtValue());
  return result;
}

SmallVector<double> lowtide::floatsOf(DenseElementsAttr attr) {
  SmallVector<double> result;
  if (isa<IntegerType>(attr.getElementType())) {
    for (int64_t v : intsOf(attr))
      result.push_back(double(v));
    return result;
  }
  for (APFloat v : attr.getValues<APFloat>()) {
    bool lost;
    v.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    result.push_back(v.convertToDouble());
  }
  return result;
}

std::optional<Shape> NodeView::constantInts(unsigned i) const {
  DenseElementsAttr attr = constant(i);
  if (!attr || !isa<IntegerType>(attr.getElementType()))
    return std::nullopt;
  return intsOf(attr);
}

std::optional<SmallVector<double>> NodeView::constantFloats(unsigned i) const {
  DenseElementsAttr attr = constant(i);
  if (!attr)
    return std::nullopt;
  return floatsOf(attr);
}

FailureOr<Shape> NodeView::knownInts(unsigned i, const Twine &what) {
  std::optional<Shape> value = constantInts(i);
  if (!value)
    return refuse(what + " is computed from data; it must be known when compiling");
  return *value;
}

FailureOr<int64_t> NodeView::knownInt(unsigned i, const Twine &what) {
  FailureOr<Shape> value = knownInts(i, what);
  if (failed(value))
    return failure();
  if (value->size() != 1)
    return reject(what + " is a tensor of " + Twine(value->size()) + " elements; one is expected");
  return value->front();
}

FailureOr<Shape> NodeView::knownShape(unsigned i, const Twine &what) {
  const Sizes *known = has(i) ? context.selected.findSizes(meaning(i).tensor) : nullptr;
  if (!known)
    return knownInts(i, what);
  sizes = {intsOf(known->atCapacity), intsOf(known->tagged)};
  return sizes->atCapacity;
}

bool NodeView::isOfPyTorch() {
  auto model = op->getParentOfType<func::FuncOp>();
  auto producer = model ? model->getAttrOfType<StringAttr>("onnx.producer") : StringAttr();
  return producer && producer.getValue().starts_with("pytorch");
}

int64_t NodeView::attr(StringRef name, int64_t otherwise) {
  auto value = dyn_cast_or_null<IntegerAttr>(op.getNodeAttr(name));
  return value ? value.getValue().getSExtValue() : otherwise;
}

/// The shortest decimal number that is `value` in f32, which is what the program wrote: 1 - 0.9997f is off by 1e-4 of
/// it, and an epsilon by 1e-8 of itself, which deep networks amplify.
static double asWritten(double value) {
  if (double(float(value)) != value)
    return value;
  char text[64];
  double written = value;
  auto [end, error] = std::to_chars(text, std::end(text), float(value));
  std::from_chars(text, end, written);
  return written;
}

double NodeView::attrFloat(StringRef name, double otherwise) {
  auto value = dyn_cast_or_null<FloatAttr>(op.getNodeAttr(name));
  return value ? asWritten(value.getValueAsDouble()) : otherwise;
}

std::string NodeView::attrString(StringRef name, StringRef otherwise) {
  auto value = dyn_cast_or_null<StringAttr>(op.getNodeAttr(name));
  return value ? value.getValue().str() : otherwise.str();
}

Shape NodeView::attrInts(StringRef name, ArrayRef<int64_t> otherwise) {
  Attribute value = op.getNodeAttr(name);
  if (auto list = dyn_cast_or_null<DenseI64ArrayAttr>(value))
    return Shape(list.asArrayRef());
  if (auto array = dyn_cast_or_null<ArrayAttr>(value)) {
    Shape result;
    for (Attribute element : array)
      if (auto integer = dyn_cast<IntegerAttr>(element))
        result.push_back(integer.getValue().getSExtValue());
    return result;
  }
  return Shape(otherwise);
}

FailureOr<std::optional<Shape>> NodeView::attrOrInput(StringRef name, unsigned i) {
  if (hasAttr(name))
    return std::optional<Shape>(attrInts(name));
  if (!has(i))
    return std::optional<Shape>();
  FailureOr<Shape> value = knownInts(i, "operand '" + name + "'");
  if (failed(value))
    return failure();
  return std::optional<Shape>(*value);
}

FailureOr<std::optional<Shape>> NodeView::axesOrInput(unsigned i, int64_t rank) {
  FailureOr<std::optional<Shape>> given = attrOrInput("axes", i);
  if (failed(given) || !*given)
    return given;
  FailureOr<Shape> counted = axes(**given, rank);
  if (failed(counted))
    return failure();
  return std::optional<Shape>(*counted);
}

bool NodeView::wants(unsigned i) { return i < op.getNumResults() && !op.getResult(i).use_empty(); }

void NodeView::set(unsigned i, Value value) {
  if (i < results.size())
    results[i].tensor = value;
}

void NodeView::setSequence(unsigned i, ArrayRef<Value> values) {
  if (i < results.size())
    results[i].sequence = SmallVector<Value>(values);
}

LogicalResult NodeView::refuse(const Twine &reason) {
  context.collect(op, FailureKind::Unsupported, reason.str());
  return failure();
}

LogicalResult NodeView::reject(const Twine &reason) {
  context.collect(op, FailureKind::BadInput, reason.str());
  return failure();
}

LogicalResult NodeView::need(unsigned n) {
  for (unsigned i = 0; i < n; ++i) {
    if (!has(i))
      return reject("operand " + Twine(i) + " is missing");
    if (!meaning(i).tensor)
      return reject("operand " + Twine(i) + " is a sequence, a tensor is expected");
  }
  return success();
}

FailureOr<int64_t> NodeView::axis(int64_t a, int64_t rank) {
  if (a < -rank || a >= rank) {
    (void)reject("axis " + Twine(a) + " is outside of [" + Twine(-rank) + ", " + Twine(rank - 1) + "]");
    return failure();
  }
  return a < 0 ? a + rank : a;
}

FailureOr<Shape> NodeView::axes(ArrayRef<int64_t> list, int64_t rank) {
  Shape result;
  for (int64_t a : list) {
    FailureOr<int64_t> one = axis(a, rank);
    if (failed(one))
      return failure();
    if (llvm::is_contained(result, *one)) {
      (void)reject("axis " + Twine(a) + " is named twice");
      return failure();
    }
    result.push_back(*one);
  }
  return result;
}

nn::Expr NodeView::splat(Type element, ArrayRef<int64_t> shape, double value) {
  return nn::splat(builder, getLoc(), RankedTensorType::get(shape, element), value);
}

nn::Expr NodeView::dense(DenseElementsAttr value) {
  return wrap(nn::ConstantOp::create(builder, getLoc(), value.getType(), value));
}

nn::Expr NodeView::ints(ArrayRef<int64_t> values, Type element) {
  if (!element)
    element = builder.getI64Type();
  auto type = RankedTensorType::get({int64_t(values.size())}, element);
  SmallVector<APInt> list;
  for (int64_t v : values)
    list.push_back(APInt(element.getIntOrFloatBitWidth(), uint64_t(v), /*isSigned=*/true, /*implicitTrunc=*/true));
  return dense(DenseElementsAttr::get(type, list));
}

FailureOr<Shape> lowtide::broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Shape result(a);
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t &d = result[a.size() - b.size() + i];
    if (d == b[i] || b[i] == 1)
      continue;
    if (d != 1)
      return failure();
    d = b[i];
  }
  return result;
}

int64_t lowtide::countOf(ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape)
    if (d < 0 || llvm::MulOverflow(n, d, n))
      return -1;
  return n;
}
