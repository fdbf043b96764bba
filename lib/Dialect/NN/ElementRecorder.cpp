//===- ElementRecorder.cpp - an element description as code -----*- C++ -*-===//
//
// Markers are casts of the builtin dialect, which nothing folds.
//
//===----------------------------------------------------------------------===//

#include "ElementRecorder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

ElementRecorder::ElementRecorder(ElementInterface op, ArrayRef<DenseElementsAttr> operands)
    : RecorderStorage(op.getContext()), ElementBuilder(ownBuilder, op.getLoc()), op(op), operands(operands) {
  blocks.emplace_back();
  builder.setInsertionPointToEnd(&blocks.front());
}

ElementRecorder::~ElementRecorder() {
  for (Block &block : blocks)
    block.dropAllReferences();
  for (Block &block : blocks)
    block.clear();
}

Value ElementRecorder::record(unsigned number) {
  auto type = mlir::cast<RankedTensorType>(op->getResult(number).getType());
  SmallVector<Value> index;
  for (int64_t i = 0; i < type.getRank(); ++i)
    index.push_back(getEntry().addArgument(builder.getIndexType(), loc));
  return cast(op.emitElement(*this, number, index), scalarType(op->getResult(number)));
}

Value ElementRecorder::operand(unsigned number, ValueRange index) {
  return cast(read(operands[number], index), computeType(op, operands[number].getElementType()));
}

Operation *ElementRecorder::mark(TypeRange results, ValueRange operands) {
  return UnrealizedConversionCastOp::create(builder, loc, results, operands);
}

/// The element as a number of the scalar vocabulary, which knows no signs.
static TypedAttr signless(Attribute element) {
  if (auto integer = dyn_cast<IntegerAttr>(element); integer && !integer.getType().isSignlessInteger())
    return IntegerAttr::get(IntegerType::get(element.getContext(), integer.getValue().getBitWidth()),
                            integer.getValue());
  return cast<TypedAttr>(element);
}

Value ElementRecorder::read(DenseElementsAttr values, ValueRange index) {
  if (values.isSplat())
    return arith::ConstantOp::create(builder, loc, signless(values.getSplatValue<Attribute>()));
  Type element = values.getElementType();
  std::optional<int64_t> linear = 0;
  for (auto [extent, i] : llvm::zip(values.getType().getShape(), index)) {
    std::optional<int64_t> position = getConstantIntValue(i);
    if (!linear || !position || *position < 0 || *position >= extent)
      linear = std::nullopt;
    else
      linear = *linear * extent + *position;
  }
  if (linear)
    return arith::ConstantOp::create(builder, loc, signless(values.getValues<Attribute>()[*linear]));
  if (!isa<FloatType>(element))
    element = builder.getIntegerType(element.getIntOrFloatBitWidth());
  Operation *marker = mark(element, index);
  reads[marker] = {values};
  return marker->getResult(0);
}

SmallVector<Value>
ElementRecorder::loop(ArrayRef<int64_t> extents, ValueRange initial,
                      function_ref<SmallVector<Value>(ElementBuilder &, ValueRange, ValueRange)> body) {
  if (llvm::is_contained(extents, 0))
    return llvm::to_vector(initial);
  Operation *marker = mark(initial.getTypes(), initial);
  Block &block = blocks.emplace_back();
  SmallVector<Value> accumulators, position;
  for (Value value : initial)
    accumulators.push_back(block.addArgument(value.getType(), loc));
  for (size_t i = 0; i < extents.size(); ++i)
    position.push_back(block.addArgument(builder.getIndexType(), loc));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&block);
  SmallVector<Value> yields = body(*this, accumulators, position);
  loops[marker] = {SmallVector<int64_t>(extents), &block, yields};
  return llvm::to_vector(ValueRange(marker->getResults()));
}

Value ElementRecorder::guarded(Value condition, Type type, function_ref<Value(ElementBuilder &)> then,
                               function_ref<Value(ElementBuilder &)> otherwise) {
  if (std::optional<int64_t> known = getConstantIntValue(condition))
    return *known ? then(*this) : otherwise(*this);
  Operation *marker = mark(type, condition);
  auto branch = [&](Block *block, function_ref<Value(ElementBuilder &)> side) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(block);
    return side(*this);
  };
  RecordedChoice choice{&blocks.emplace_back(), &blocks.emplace_back(), {}, {}};
  choice.thenValue = branch(choice.then, then);
  choice.otherwiseValue = branch(choice.otherwise, otherwise);
  // The same number on both sides is no choice.
  Attribute a, b;
  if (matchPattern(choice.thenValue, m_Constant(&a)) && matchPattern(choice.otherwiseValue, m_Constant(&b)) && a == b) {
    marker->erase();
    return arith::ConstantOp::create(builder, loc, mlir::cast<TypedAttr>(a));
  }
  choices[marker] = choice;
  return marker->getResult(0);
}
