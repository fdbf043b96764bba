//===- ConstantFold.cpp - evaluates ops on constants ------------*- C++ -*-===//
//
// The element description of an op is recorded once and executed for every element. An element that does not depend on
// its index makes a splat, however large.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/ConstantFold.h"
#include "ScalarProgram.h"
#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// Scalar operations for one result.
static constexpr int64_t stepLimit = 50'000'000;

/// The elements of one result by its description; null when one has no value.
static DenseElementsAttr evaluateResult(ElementInterface op, unsigned number, ArrayRef<DenseElementsAttr> operands) {
  auto type = cast<RankedTensorType>(op->getResult(number).getType());
  bool isLarge = type.getNumElements() > foldLimitElements;
  // Only splats can make a splat of a large result.
  if (isLarge && !llvm::all_of(operands, [](DenseElementsAttr operand) { return operand.isSplat(); }))
    return {};
  if (type.getNumElements() == 0)
    return encodeElements(type, {});
  ElementRecorder recorder(op, operands);
  Value element = recorder.record(number);
  ScalarProgram program(recorder, element);
  if (!program.isComplete() || (isLarge && program.dependsOnIndex()))
    return {};
  std::vector<ScalarRegister> elements = program.run(type.getShape(), stepLimit);
  return elements.empty() ? DenseElementsAttr() : encodeElements(type, elements);
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
