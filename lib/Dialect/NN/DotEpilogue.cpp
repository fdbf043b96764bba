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

uint64_t nn::dotEpilogueFlops(DotEpilogueOp op) {
  uint64_t perElement = op.getEpilogue() == "none" || op.getEpilogue() == "bgrad" ? 1
                        : op.getEpilogue() == "relu"                              ? 2
                                                                                  : 25;
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
  if (!llvm::is_contained({"none", "relu", "gelu", "dgelu", "bgrad"}, getEpilogue()))
    return emitOpError("epilogue \"") << getEpilogue() << "\"; there are none, relu, gelu, dgelu and bgrad";
  if (bool(getInput()) != (getEpilogue() == "dgelu"))
    return emitOpError("has an input for dgelu, and for nothing else");
  if (getInput() && getInput().getType() != y)
    return emitOpError("input must have the type of the result");
  const bool sums = getInput() || getEpilogue() == "bgrad";
  auto second = sums ? RankedTensorType::get(y.getShape().take_back(1), y.getElementType()) : y;
  if (getZ() && (getZ().getType() != second || (sums && rank != 2)))
    return emitOpError("the second result must have the type of the first, for dgelu and bgrad one value per column");
  if (getEpilogue() == "bgrad" && (!getZ() || getAddend()))
    return emitOpError("bgrad has a second result and no addend");
  if (!getAddend())
    return success();
  auto addend = getAddend().getType();
  bool perColumn = rank == 2 && addend.getShape() == y.getShape().take_back(1);
  if (addend.getElementType() != y.getElementType() || (!perColumn && addend.getShape() != y.getShape()))
    return emitOpError("addend must have the type of the result, or one value per column of a product without batch");
  return success();
}

FailureOr<SmallVector<Value>> DotEpilogueOp::decompose(OpBuilder &builder) {
  auto y = getY().getType();
  Type own = y.getElementType(), wide = accumulatorType(getY());
  if (getEpilogue() == "bgrad") {
    auto plain = DotOp::create(builder, getLoc(), y, getA(), getB(), getTransposeA(), getTransposeB());
    Expr b = Expr(builder, getLoc(), getB());
    Value sums = cast(sum(cast(b, wide), getTransposeB() ? 1 : 0), own);
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
  else if (getEpilogue() == "dgelu")
    result = cast(geluTanhGradient(cast(z.with(getInput()), wide), x), own);
  SmallVector<Value> values{result};
  if (getZ() && getInput())
    values.push_back(cast(sum(cast(result, wide), 0), own));
  else if (getZ())
    values.push_back(kept);
  return values;
}

StringRef DotEpilogueOp::getCallee() {
  auto y = getY().getType();
  bool empty = !getDepth(*this) || llvm::is_contained(y.getShape(), 0);
  return isCallType(getA().getType(), y) && !empty ? "gemm" : "";
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
  if (getEpilogue() == "bgrad") {
    attributes.set("sums_b", builder.getI64IntegerAttr(1));
    return attributes.getDictionary(getContext());
  }
  if (getEpilogue() != "none")
    attributes.set("epilogue", getEpilogueAttr());
  if (getZ())
    attributes.set(getInput() ? "sums_columns" : "keeps_input", builder.getI64IntegerAttr(1));
  return attributes.getDictionary(getContext());
}
