//===- ElementForm.cpp - element descriptions as ONNX nodes ---------------===//
//
// The description of one element is run once, with symbols for the index; the scalar code that it emits is then read as
// code on whole tensors:
//
// 1. A symbol for the index along dimension i becomes the tensor 0, 1, … of shape [1, …, extent, …, 1].
// 2. A scalar operation becomes the operator of that meaning; operands broadcast.
// 3. A read at the element's own index is the operand; any other is a Gather from the operand in row-major order.
//    Inside a guard the place is 0 where the guard does not hold, and what was read there is not chosen.
// 4. Loops over small boxes (windows) are written out.
//
// So random numbers, derivatives of pooling and whatever has no operator of its own keep their one description.
//
//===----------------------------------------------------------------------===//

#include "ScalarNodes.h"
#include "lowtide/Export/FormBuilder.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Interfaces/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Block.h"

using namespace mlir;
using namespace lowtide;

/// Iterations that are written out for one op.
static constexpr int64_t iterationLimit = 512;

namespace {
/// Runs a description; reads become arguments of the scratch block.
class Recorder : public ElementBuilder {
public:
  struct Read {
    unsigned operand;
    SmallVector<Value> index;
    Value guard; ///< null: always in bounds
  };

  Recorder(OpBuilder &builder, Location loc, Operation *op, Block &scratch)
      : ElementBuilder(builder, loc), op(op), scratch(scratch) {}

  llvm::DenseMap<Value, Read> reads;
  bool tooLong = false;

  Value operand(unsigned number, ValueRange index) override {
    Type element = cast<RankedTensorType>(op->getOperand(number).getType()).getElementType();
    if (element.isInteger())
      element = builder.getIntegerType(element.getIntOrFloatBitWidth());
    Value argument = scratch.addArgument(element, loc);
    reads[argument] = {number, SmallVector<Value>(index), guard};
    return argument;
  }

  SmallVector<Value> loop(ArrayRef<int64_t> extents, ValueRange initial,
                          function_ref<SmallVector<Value>(ElementBuilder &, ValueRange, ValueRange)> body) override {
    SmallVector<Value> accumulators(initial);
    if (llvm::is_contained(extents, 0))
      return accumulators;
    SmallVector<int64_t> at(extents.size(), 0);
    while (!tooLong) {
      tooLong |= ++iterations > iterationLimit;
      SmallVector<Value> box;
      for (int64_t i : at)
        box.push_back(this->index(i));
      accumulators = body(*this, accumulators, box);
      int64_t dim = static_cast<int64_t>(extents.size()) - 1;
      while (dim >= 0 && ++at[dim] == extents[dim])
        at[dim--] = 0;
      if (dim < 0)
        break;
    }
    return accumulators;
  }

  Value guarded(Value condition, Type type, function_ref<Value(ElementBuilder &)> then,
                function_ref<Value(ElementBuilder &)> otherwise) override {
    if (std::optional<int64_t> known = getConstantIntValue(condition))
      return *known ? then(*this) : otherwise(*this);
    Value outer = guard;
    guard = outer ? logicalAnd(outer, condition) : condition;
    Value yes = then(*this);
    guard = outer;
    return select(condition, yes, otherwise(*this));
  }

private:
  Operation *op;
  Block &scratch;
  Value guard;
  int64_t iterations = 0;
};

/// Reads recorded scalar code as nodes, from the element back to what it needs.
class Vectorizer {
public:
  Vectorizer(FormBuilder &form, const Recorder &recorder, ValueRange index, ArrayRef<int64_t> shape)
      : form(form), recorder(recorder), index(index), shape(shape) {}

  /// The tensor for a scalar; null after a failure.
  Value translate(Value scalar) {
    auto [known, isNew] = tensors.try_emplace(scalar);
    if (!isNew)
      return known->second;
    Value tensor = compute(scalar);
    return tensors[scalar] = tensor;
  }
  std::string reason;

private:
  Value compute(Value scalar) {
    if (auto position = llvm::find(index, scalar); position != index.end())
      return positions(position - index.begin());
    if (auto read = recorder.reads.find(scalar); read != recorder.reads.end())
      return translateRead(read->second);
    Operation *op = scalar.getDefiningOp();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(translate(operand));
      if (!operands.back())
        return {};
    }
    Value tensor = writeScalarOp(form, op, operands);
    if (!tensor)
      reason = ("no ONNX operator computes " + op->getName().getStringRef()).str();
    return tensor;
  }

  Value positions(int64_t dim) {
    SmallVector<int64_t> numbers, extents(shape.size(), 1);
    extents[dim] = shape[dim];
    for (int64_t i = 0; i < shape[dim]; ++i)
      numbers.push_back(i);
    return form.dense(
        DenseElementsAttr::get(RankedTensorType::get(extents, form.builder.getI64Type()), ArrayRef<int64_t>(numbers)));
  }

  Value translateRead(const Recorder::Read &read) {
    auto type = form.inType(read.operand);
    Type element = type.getElementType();
    if (element.isInteger())
      element = form.builder.getIntegerType(element.getIntOrFloatBitWidth());
    // The element's own place.
    if (type.getShape() == shape && ArrayRef<Value>(read.index) == ArrayRef<Value>(SmallVector<Value>(index)))
      return form.cast(form.compact(read.operand), element);
    if (type.getNumElements() == 1)
      return form.cast(form.reshape(form.compact(read.operand), {}), element);
    Value compact = form.compact(read.operand);
    if (tensorType(compact).getRank() == 0)
      return form.cast(compact, element);
    Value linear;
    Type i64 = form.builder.getI64Type();
    for (auto [extent, at] : llvm::zip(type.getShape(), read.index)) {
      Value place = translate(at);
      if (!place)
        return {};
      linear =
          linear ? form.pointwise("Add", {form.pointwise("Mul", {linear, form.scalarInt(i64, extent)}), place}) : place;
    }
    if (read.guard) {
      Value inside = translate(read.guard);
      if (!inside)
        return {};
      linear = form.pointwise("Where", {inside, linear, form.scalarInt(i64, 0)});
    }
    Value flat = form.reshape(compact, {type.getNumElements()});
    Value picked =
        form.node("Gather", {flat, linear}, RankedTensorType::get(tensorType(linear).getShape(), type.getElementType()),
                  form.attr("axis", int64_t(0)));
    return form.cast(picked, element);
  }

  FormBuilder &form;
  const Recorder &recorder;
  ValueRange index;
  ArrayRef<int64_t> shape;
  llvm::DenseMap<Value, Value> tensors;
};
} // namespace

LogicalResult lowtide::writeByElements(FormBuilder &form, std::string &reason) {
  auto description = cast<ElementInterface>(form.op);
  for (unsigned i = 0; i < form.op->getNumResults(); ++i) {
    auto type = form.outType(i);
    Block scratch;
    OpBuilder builder(form.op->getContext());
    builder.setInsertionPointToEnd(&scratch);
    SmallVector<Value> index;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      index.push_back(scratch.addArgument(builder.getIndexType(), form.op->getLoc()));
    Recorder recorder(builder, form.op->getLoc(), form.op, scratch);
    Value element = description.emitElement(recorder, i, index);
    if (recorder.tooLong) {
      reason = "its element description loops more than " + std::to_string(iterationLimit) + " times";
      return failure();
    }
    Vectorizer vectorizer(form, recorder, index, type.getShape());
    Value tensor = vectorizer.translate(element);
    if (!tensor) {
      reason = vectorizer.reason;
      return failure();
    }
    form.set(i, form.expand(form.cast(tensor, type.getElementType()), type.getShape()));
  }
  return success();
}
