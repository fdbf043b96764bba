//===- ConstantFold.cpp - evaluates ops on constants ------------*- C++ -*-===//
//
// The element description of an op is run with a builder whose operands are constants, so that every scalar operation
// it asks for folds at once; loops are unrolled, guards decided. What is left is the element.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/ConstantFold.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/RecordSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// Operand reads and loop iterations for one op.
static constexpr int64_t stepLimit = 4'000'000;

namespace {
/// Evaluates one op's elements.
class ConstantEvaluator : public ElementBuilder {
public:
  ConstantEvaluator(OpBuilder &builder, Operation *op, ArrayRef<DenseElementsAttr> operands)
      : ElementBuilder(builder, op->getLoc()), op(op), operands(operands) {}

  /// Set when an element has no known value.
  bool gaveUp = false;

  Value operand(unsigned number, ValueRange index) override {
    DenseElementsAttr values = operands[number];
    int64_t linear = 0;
    for (auto [extent, i] : llvm::zip(values.getType().getShape(), index)) {
      std::optional<int64_t> position = getConstantIntValue(i);
      if (!position || *position < 0 || *position >= extent)
        return fail(values.getElementType());
      linear = linear * extent + *position;
    }
    if (!step())
      return fail(values.getElementType());
    Type element = values.getElementType();
    if (isa<FloatType>(element))
      return cast(scalar(FloatAttr::get(element, *(values.value_begin<APFloat>() + linear))),
                  nn::computeType(op, element));
    APInt bits = *(values.value_begin<APInt>() + linear);
    return scalar(IntegerAttr::get(builder.getIntegerType(bits.getBitWidth()), bits));
  }

  SmallVector<Value> loop(ArrayRef<int64_t> extents, ValueRange initial,
                          function_ref<SmallVector<Value>(ElementBuilder &, ValueRange, ValueRange)> body) override {
    SmallVector<Value> accumulators(initial);
    if (llvm::is_contained(extents, 0))
      return accumulators;
    SmallVector<int64_t> at(extents.size(), 0);
    while (true) {
      if (!step())
        return accumulators;
      SmallVector<Value> box;
      for (int64_t i : at)
        box.push_back(this->index(i));
      accumulators = body(*this, accumulators, box);
      int64_t dim = static_cast<int64_t>(extents.size()) - 1;
      while (dim >= 0 && ++at[dim] == extents[dim])
        at[dim--] = 0;
      if (dim < 0)
        return accumulators;
    }
  }

  Value guarded(Value condition, Type type, function_ref<Value(ElementBuilder &)> then,
                function_ref<Value(ElementBuilder &)> otherwise) override {
    std::optional<int64_t> known = getConstantIntValue(condition);
    if (!known)
      return fail(type);
    return *known ? then(*this) : otherwise(*this);
  }

private:
  bool step() {
    gaveUp |= ++steps > stepLimit;
    return !gaveUp;
  }
  Value scalar(TypedAttr value) { return arith::ConstantOp::create(builder, loc, value); }
  /// A stand-in that keeps the description going.
  Value fail(Type element) {
    gaveUp = true;
    if (element.isInteger())
      element = builder.getIntegerType(element.getIntOrFloatBitWidth());
    return constant(element, 0.0);
  }

  Operation *op;
  ArrayRef<DenseElementsAttr> operands;
  int64_t steps = 0;
};
} // namespace

/// The elements of one result by its description; null when one has no value.
static DenseElementsAttr evaluateResult(ElementInterface op, unsigned number, ArrayRef<DenseElementsAttr> operands) {
  auto type = cast<RankedTensorType>(op->getResult(number).getType());
  // Elementwise functions of splats are splats.
  bool isSplat = op->hasTrait<OpTrait::Elementwise>() &&
                 llvm::all_of(operands, [](DenseElementsAttr operand) { return operand.isSplat(); });
  if (!isSplat && type.getNumElements() > foldLimitElements)
    return {};
  Block scratch;
  OpBuilder builder(op.getContext());
  builder.setInsertionPointToEnd(&scratch);
  ConstantEvaluator evaluator(builder, op, operands);
  int64_t count = isSplat ? std::min<int64_t>(1, type.getNumElements()) : type.getNumElements();
  SmallVector<APFloat> reals;
  SmallVector<APInt> integers;
  SmallVector<int64_t> at(type.getRank(), 0);
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Value> index;
    for (int64_t position : at)
      index.push_back(evaluator.index(position));
    Attribute element;
    Value value = evaluator.cast(op.emitElement(evaluator, number, index), scalarType(op->getResult(number)));
    if (!matchPattern(value, m_Constant(&element)) || evaluator.gaveUp)
      return {};
    if (auto real = dyn_cast<FloatAttr>(element))
      reals.push_back(real.getValue());
    else
      integers.push_back(cast<IntegerAttr>(element).getValue());
    for (int64_t dim = type.getRank() - 1; dim >= 0 && ++at[dim] == type.getDimSize(dim); --dim)
      at[dim] = 0;
    scratch.clear();
    builder.setInsertionPointToEnd(&scratch);
  }
  if (isa<FloatType>(type.getElementType()))
    return DenseElementsAttr::get(type, reals);
  return DenseElementsAttr::get(type, integers);
}

/// Evaluates the ops of a decomposition one after the other.
static FailureOr<SmallVector<Attribute>> evaluateDecomposition(DecomposableInterface op, ArrayRef<Attribute> operands) {
  Block scratch;
  OpBuilder builder(op.getContext());
  builder.setInsertionPointToEnd(&scratch);
  FailureOr<SmallVector<Value>> results = op.decompose(builder);
  if (failed(results))
    return failure();
  DenseMap<Value, Attribute> known;
  for (auto [operand, value] : llvm::zip(op->getOperands(), operands))
    known[operand] = value;
  for (Operation &part : scratch) {
    SmallVector<Attribute> values;
    for (Value operand : part.getOperands())
      values.push_back(known.lookup(operand));
    FailureOr<SmallVector<Attribute>> folded = foldConstant(&part, values);
    if (failed(folded))
      return failure();
    for (auto [result, value] : llvm::zip(part.getResults(), *folded))
      known[result] = value;
  }
  SmallVector<Attribute> values;
  for (Value result : *results)
    values.push_back(known.lookup(result));
  return values;
}

FailureOr<SmallVector<Attribute>> nn::foldConstant(Operation *op, ArrayRef<Attribute> operands) {
  SmallVector<DenseElementsAttr> dense;
  for (Attribute operand : operands)
    if (auto values = llvm::dyn_cast_or_null<DenseElementsAttr>(operand))
      dense.push_back(values);
    else
      return failure();
  // What an op knows of itself is quicker: constants, the same elements under another shape.
  SmallVector<OpFoldResult> known;
  if (op->getNumResults() == 1 && (op->hasTrait<OpTrait::ConstantLike>() || op->getNumOperands() == 1) &&
      succeeded(op->fold(operands, known)) && known.size() == 1 && isa<Attribute>(known[0]))
    return SmallVector<Attribute>{cast<Attribute>(known[0])};
  if (auto composite = dyn_cast<DecomposableInterface>(op))
    return evaluateDecomposition(composite, operands);
  auto description = dyn_cast<ElementInterface>(op);
  if (!description)
    return failure();
  SmallVector<Attribute> results;
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    results.push_back(evaluateResult(description, i, dense));
    if (!results.back())
      return failure();
  }
  return results;
}

FailureOr<SmallVector<Attribute>> nn::foldConstant(Operation *op) {
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    if (Attribute value; matchPattern(operand, m_Constant(&value)))
      operands.push_back(value);
    else
      return failure();
  return foldConstant(op, operands);
}

Value nn::foldOrSelf(Operation *op) {
  assert(op->getNumResults() == 1 && "one result is replaced by one value");
  OpBuilder builder(op);
  auto replaceBy = [&](OpFoldResult folded) -> Value {
    Value value = dyn_cast<Value>(folded);
    if (!value)
      value = ConstantOp::create(builder, op->getLoc(), op->getResult(0).getType(),
                                 cast<ElementsAttr>(cast<Attribute>(folded)));
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
    return value;
  };
  if (op->hasTrait<OpTrait::ConstantLike>())
    return op->getResult(0);
  SmallVector<OpFoldResult> folded;
  if (succeeded(op->fold(folded)) && folded.size() == 1 && folded[0] != OpFoldResult(op->getResult(0)))
    return replaceBy(folded[0]);
  if (FailureOr<SmallVector<Attribute>> values = foldConstant(op); succeeded(values))
    return replaceBy(values->front());
  return op->getResult(0);
}
