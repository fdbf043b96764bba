//===- DotEpilogue.cpp - nn.dot_epilogue ------------------------*- C++ -*-===//
//
// Verifier, cost, decomposition and library call of a matrix product with an addend and a function of its elements.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/ElementwiseGradients.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// Elements along the contracted dimension.
static int64_t getDepth(DotEpilogueOp op) {
  auto a = op.getA().getType();
  return a.getDimSize(a.getRank() - (op.getTransposeA() ? 2 : 1));
}

/// Whether the op leaves its product as it is and adds up an operand.
static bool sumsOperand(DotEpilogueOp op) { return op.getEpilogue().starts_with("bgrad"); }

RankedTensorType nn::getMaskType(RankedTensorType y) {
  const int64_t rowBytes = llvm::divideCeil(y.getShape().back(), 128) * 16;
  return RankedTensorType::get({y.getDimSize(0), rowBytes}, IntegerType::get(y.getContext(), 8, IntegerType::Unsigned));
}

uint64_t nn::dotEpilogueFlops(DotEpilogueOp op) {
  uint64_t perElement = op.getEpilogue() == "none" || sumsOperand(op) ? 1 : op.getEpilogue().ends_with("relu") ? 2 : 25;
  return countElements(op.getY().getType()) * (2 * static_cast<uint64_t>(getDepth(op)) + perElement);
}

LogicalResult DotEpilogueOp::verify() {
  auto a = getA().getType(), b = getB().getType(), y = getY().getType();
  int64_t rank = y.getRank();
  if (rank < 2 || a.getRank() != rank || b.getRank() != rank || a.getElementType() != b.getElementType())
    return emitOpError("operands and result must have one rank of at least 2, operands one element type");
  SmallVector<int64_t> left(y.getShape()), right(y.getShape());
  left[rank - 1] = right[rank - 2] = getDepth(*this);
  if (getTransposeA())
    std::swap(left[rank - 2], left[rank - 1]);
  if (getTransposeB())
    std::swap(right[rank - 2], right[rank - 1]);
  if (a.getShape() != ArrayRef(left) || b.getShape() != ArrayRef(right))
    return emitOpError("shapes do not make a product of ") << y;
  if (!llvm::is_contained({"none", "relu", "gelu", "drelu", "dgelu", "bgrad", "bgrad_a"}, getEpilogue()))
    return emitOpError("epilogue \"") << getEpilogue()
                                      << "\"; there are none, relu, gelu, drelu, dgelu, bgrad and bgrad_a";
  if (bool(getInput()) != (getEpilogue() == "dgelu" || getEpilogue() == "drelu"))
    return emitOpError("has an input for drelu and dgelu, and for nothing else");
  if (getEpilogue() == "dgelu" && getInput().getType() != y)
    return emitOpError("input must have the type of the result");
  if (getEpilogue() == "drelu" && (rank != 2 || getInput().getType() != getMaskType(y)))
    return emitOpError("input must have a bit for each element of a matrix, each row filled up to a multiple of 128");
  const bool sums = getInput() || sumsOperand(*this);
  auto sumsShape = getEpilogue() == "bgrad_a" ? y.getShape().take_front(1) : y.getShape().take_back(1);
  auto second = sums ? RankedTensorType::get(sumsShape, y.getElementType()) : y;
  const bool isMask = getZ() && getEpilogue() == "relu" && rank == 2 && getZ().getType() == getMaskType(y);
  if (getZ() && !isMask && (getZ().getType() != second || (sums && rank != 2)))
    return emitOpError("the second result must have the type of the first, for derivatives and bgrad one value per "
                       "column, for relu it may be its bits");
  if (sumsOperand(*this) && (!getZ() || getAddend()))
    return emitOpError("bgrad has a second result and no addend");
  if (!getAddend())
    return success();
  auto addend = getAddend().getType();
  bool perColumn = rank == 2 && addend.getShape() == y.getShape().take_back(1);
  if (addend.getElementType() != y.getElementType() || (!perColumn && addend.getShape() != y.getShape()))
    return emitOpError("addend must have the type of the result, or one value per column of a product without batch");
  return success();
}

/// What each bit of a byte is worth, for every byte of a mask.
static Expr bitValues(OpBuilder &builder, Location loc, ArrayRef<int64_t> bytes) {
  auto type = RankedTensorType::get({8}, builder.getI32Type());
  Expr values = constant(builder, loc, DenseElementsAttr::get(type, ArrayRef<int32_t>{1, 2, 4, 8, 16, 32, 64, 128}));
  return broadcast(values, {bytes[0], bytes[1], 8}, {2});
}

/// The bits of x > 0.
static Expr packBits(Expr x, RankedTensorType y) {
  RankedTensorType type = getMaskType(y);
  const int64_t rows = type.getDimSize(0), bytes = type.getDimSize(1);
  Expr bits = cast(greater(x, 0.0), IntegerType::get(y.getContext(), 32));
  if (bytes * 8 != y.getDimSize(1))
    bits = pad(bits, {0, 0}, {0, bytes * 8 - y.getDimSize(1)});
  bits = reshape(bits, {rows, bytes, 8}) * bitValues(x.getBuilder(), x.getLoc(), type.getShape());
  return cast(sum(bits, {2}), type.getElementType());
}

/// x where the bit of `mask` is set, else 0.
static Expr keepBits(Expr x, Expr mask, RankedTensorType y) {
  const int64_t rows = y.getDimSize(0), columns = y.getDimSize(1), bytes = getMaskType(y).getDimSize(1);
  Expr spread = broadcast(cast(mask, IntegerType::get(y.getContext(), 32)), {rows, bytes, 8}, {0, 1});
  Expr bits = logicalAnd(spread, bitValues(x.getBuilder(), x.getLoc(), {rows, bytes}));
  Expr isSet = reshape(notEqual(bits, 0.0), {rows, bytes * 8});
  if (bytes * 8 != columns)
    isSet = slice(isSet, {0, 0}, {rows, columns});
  return select(isSet, x, x.like(0.0));
}

FailureOr<SmallVector<Value>> DotEpilogueOp::decompose(OpBuilder &builder) {
  auto y = getY().getType();
  Type own = y.getElementType(), wide = accumulatorType(getY());
  if (sumsOperand(*this)) {
    const bool isLeft = getEpilogue() == "bgrad_a";
    auto plain = DotOp::create(builder, getLoc(), y, getA(), getB(), getTransposeA(), getTransposeB());
    Expr from = Expr(builder, getLoc(), isLeft ? getA() : getB());
    Value sums = cast(sum(cast(from, wide), (isLeft ? !getTransposeA() : getTransposeB()) ? 1 : 0), own);
    return SmallVector<Value>{plain.getY(), sums};
  }
  // Sums of 16-bit operands go into the addition unrounded.
  auto product = DotOp::create(builder, getLoc(), y.clone(wide), getA(), getB(), getTransposeA(), getTransposeB());
  Expr z(builder, getLoc(), product.getY());
  if (getAddend())
    z = z + broadcastTo(cast(z.with(getAddend()), wide), y.getShape());
  // What a function is applied to is what is kept of it.
  Expr kept = cast(z, own), x = cast(kept, wide), result = kept;
  if (getEpilogue() == "relu")
    result = cast(relu(x), own);
  else if (getEpilogue() == "gelu")
    result = cast(geluTanh(x), own);
  else if (getEpilogue() == "drelu")
    result = cast(keepBits(x, z.with(getInput()), y), own);
  else if (getEpilogue() == "dgelu")
    result = cast(geluTanhGradient(cast(z.with(getInput()), wide), x), own);
  SmallVector<Value> values{result};
  if (getZ() && getInput())
    values.push_back(cast(sum(cast(result, wide), 0), own));
  else if (getZ())
    values.push_back(getZ().getType() == y ? kept : packBits(x, y));
  return values;
}

StringRef DotEpilogueOp::getCallee() {
  auto y = getY().getType();
  bool empty = !getDepth(*this) || llvm::is_contained(y.getShape(), 0);
  // Libraries have no f64 with what follows here.
  return isCallType(getA().getType(), y) && !y.getElementType().isF64() && !empty ? "gemm" : "";
}

DictionaryAttr DotEpilogueOp::getCallAttributes() {
  Builder builder(getContext());
  auto y = getY().getType();
  NamedAttrList attributes = getGemmAttributes(getA().getType(), getB().getType(), y, getTransposeA(), getTransposeB());
  bool whole = getAddend() && getAddend().getType() == y;
  attributes.set("addend", builder.getStringAttr(!getAddend() ? "none" : whole ? "full" : "row"));
  if (whole) {
    attributes.set("ldc", attributes.get("n"));
    attributes.set("batch_stride_c", attributes.get("batch_stride_d"));
  }
  if (sumsOperand(*this)) {
    attributes.set(getEpilogue() == "bgrad_a" ? "sums_a" : "sums_b", builder.getI64IntegerAttr(1));
    return attributes.getDictionary(getContext());
  }
  if (getEpilogue() != "none")
    attributes.set("epilogue", getEpilogueAttr());
  if (getZ())
    attributes.set(getInput()              ? "sums_columns"
                   : getZ().getType() == y ? "keeps_input"
                                           : "keeps_mask",
                   builder.getI64IntegerAttr(1));
  return attributes.getDictionary(getContext());
}
