//===- Contraction.cpp - nn.dot ---------------------------------*- C++ -*-===//
//
// Verifier, cost, element description, derivative and library call of the batched matrix product.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

namespace {
/// Extents of a dot in the usual names; `batch` is the product of the leading dimensions.
struct DotShape {
  int64_t batch, m, n, k;
};
} // namespace

static DotShape getShape(DotOp op) {
  auto a = op.getA().getType(), y = op.getY().getType();
  int64_t rank = a.getRank(), batch = 1;
  for (int64_t i = 0; i + 2 < rank; ++i)
    batch *= a.getDimSize(i);
  return {batch, y.getDimSize(rank - 2), y.getDimSize(rank - 1),
          a.getDimSize(op.getTransposeA() ? rank - 2 : rank - 1)};
}

uint64_t nn::dotFlops(DotOp op) {
  DotShape s = getShape(op);
  return 2 * static_cast<uint64_t>(s.batch) * s.m * s.n * s.k;
}

LogicalResult DotOp::verify() {
  auto a = getA().getType(), b = getB().getType(), y = getY().getType();
  int64_t rank = a.getRank();
  if (rank < 2 || b.getRank() != rank || y.getRank() != rank)
    return emitOpError("operands and result must have one rank of at least 2");
  if (a.getElementType() != b.getElementType())
    return emitOpError("operands must have the same element type");
  for (int64_t i = 0; i + 2 < rank; ++i)
    if (a.getDimSize(i) != b.getDimSize(i) || a.getDimSize(i) != y.getDimSize(i))
      return emitOpError("batch dimension ") << i << " differs between operands and result";
  int64_t m = a.getDimSize(getTransposeA() ? rank - 1 : rank - 2),
          ka = a.getDimSize(getTransposeA() ? rank - 2 : rank - 1);
  int64_t n = b.getDimSize(getTransposeB() ? rank - 2 : rank - 1),
          kb = b.getDimSize(getTransposeB() ? rank - 1 : rank - 2);
  if (ka != kb)
    return emitOpError("contracted extents differ: ") << ka << " and " << kb;
  if (y.getDimSize(rank - 2) != m || y.getDimSize(rank - 1) != n)
    return emitOpError("result must be ") << m << " x " << n;
  return success();
}

Value DotOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  int64_t rank = index.size();
  Type type = accumulatorType(getY());
  Value zero = b.constant(type, 0.0);
  Value total = b.loop({getShape(*this).k}, zero, [&](ElementBuilder &inner, ValueRange accumulators, ValueRange k) {
    SmallVector<Value> left(index), right(index);
    left[rank - 2] = getTransposeA() ? k[0] : index[rank - 2];
    left[rank - 1] = getTransposeA() ? index[rank - 2] : k[0];
    right[rank - 2] = getTransposeB() ? index[rank - 1] : k[0];
    right[rank - 1] = getTransposeB() ? k[0] : index[rank - 1];
    Value product = inner.mul(inner.cast(inner.operand(0, left), type), inner.cast(inner.operand(1, right), type));
    return SmallVector<Value>{inner.add(accumulators[0], product)};
  })[0];
  return b.cast(total, scalarType(getY()));
}

LogicalResult DotOp::differentiate(GradientBuilder &g) {
  Expr a = g.wideOperand(0), b = g.wideOperand(1), dy = g.cotangent(0);
  bool ta = getTransposeA(), tb = getTransposeB();
  // y = op(a)·op(b): d op(a) = dy·op(b)ᵀ, d op(b) = op(a)ᵀ·dy; a transposed operand takes the transposed product.
  if (g.needs(0))
    g.set(0, ta ? dot(b, dy, tb, true) : dot(dy, b, false, !tb));
  if (g.needs(1))
    g.set(1, tb ? dot(dy, a, true, ta) : dot(a, dy, !ta, false));
  return success();
}

StringRef DotOp::getCallee() {
  DotShape s = getShape(*this);
  return isCallType(getA().getType(), getY().getType()) && s.k > 0 && s.m > 0 && s.n > 0 && s.batch > 0 ? "gemm" : "";
}

NamedAttrList nn::getGemmAttributes(RankedTensorType a, RankedTensorType b, RankedTensorType y, bool transposeA,
                                    bool transposeB) {
  Builder builder(y.getContext());
  int64_t rank = y.getRank(), batch = 1;
  for (int64_t i = 0; i + 2 < rank; ++i)
    batch *= y.getDimSize(i);
  int64_t m = y.getDimSize(rank - 2), n = y.getDimSize(rank - 1), k = a.getDimSize(transposeA ? rank - 2 : rank - 1);
  std::pair<StringRef, int64_t> numbers[] = {{"batch", batch},
                                             {"m", m},
                                             {"n", n},
                                             {"k", k},
                                             {"transpose_a", transposeA},
                                             {"transpose_b", transposeB},
                                             {"batch_stride_a", m * k},
                                             {"batch_stride_b", k * n},
                                             {"batch_stride_d", m * n}};
  SmallVector<NamedAttribute> attributes;
  for (auto [name, value] : numbers)
    attributes.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(value)));
  appendCallTypes(builder, a, y, attributes);
  return NamedAttrList(attributes);
}

DictionaryAttr DotOp::getCallAttributes() {
  return getGemmAttributes(getA().getType(), getB().getType(), getY().getType(), getTransposeA(), getTransposeB())
      .getDictionary(getContext());
}
