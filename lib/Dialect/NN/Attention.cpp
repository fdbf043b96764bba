//===- Attention.cpp - nn.attention -----------------------------*- C++ -*-===//
//
// Verifier, cost, decomposition and derivative of scaled dot-product attention with shared key heads.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

LogicalResult AttentionOp::verify() {
  auto q = getQ().getType(), k = getK().getType(), v = getV().getType();
  Type element = q.getElementType();
  if (q.getRank() != 4 || k.getRank() != 4 || v.getRank() != 4)
    return emitOpError("q, k and v must have rank 4");
  if (k.getElementType() != element || v.getElementType() != element)
    return emitOpError("q, k and v must have the same element type");
  if (k.getDimSize(0) != q.getDimSize(0) || v.getDimSize(0) != q.getDimSize(0))
    return emitOpError("q, k and v must have the same batch");
  if (k.getDimSize(1) == 0 || q.getDimSize(1) % k.getDimSize(1) != 0 || v.getDimSize(1) != k.getDimSize(1))
    return emitOpError("the ") << q.getDimSize(1) << " heads of q must be a multiple of the heads of k and v";
  if (k.getDimSize(3) != q.getDimSize(3) || k.getDimSize(2) != v.getDimSize(2))
    return emitOpError("k must agree with q in the last dimension and with v in dimension 2");
  if (getO().getType() !=
      RankedTensorType::get({q.getDimSize(0), q.getDimSize(1), q.getDimSize(2), v.getDimSize(3)}, element))
    return emitOpError("result must have q's shape with v's last dimension");
  Type wide = accumulatorType(getQ());
  if (getLse().getType() != RankedTensorType::get(q.getShape().take_front(3), wide))
    return emitOpError("lse must have q's shape without the last dimension, and element type ") << wide;
  if (!getMask())
    return success();
  auto mask = getMask().getType();
  int64_t scores[] = {q.getDimSize(0), q.getDimSize(1), q.getDimSize(2), k.getDimSize(2)};
  if (mask.getRank() != 4 || (mask.getElementType() != element && mask.getElementType() != wide))
    return emitOpError("mask must have rank 4 and the element type of q or ") << wide;
  for (int64_t i = 0; i < 4; ++i)
    if (mask.getDimSize(i) != 1 && mask.getDimSize(i) != scores[i])
      return emitOpError("mask dimension ") << i << " must be 1 or " << scores[i];
  return success();
}

uint64_t nn::attentionFlops(AttentionOp op) {
  auto q = op.getQ().getType(), v = op.getV().getType();
  uint64_t pairs = static_cast<uint64_t>(q.getDimSize(0)) * q.getDimSize(1) * q.getDimSize(2) * v.getDimSize(2);
  return pairs * (2 * (q.getDimSize(3) + v.getDimSize(3)) + 16);
}

namespace {
/// The heads that share a key head stand behind one another as rows, so that each key head takes one product.
struct Heads {
  AttentionOp op;
  int64_t batch, heads, rows, keyHeads, columns;

  explicit Heads(AttentionOp op)
      : op(op), batch(op.getQ().getType().getDimSize(0)), heads(op.getQ().getType().getDimSize(1)),
        rows(op.getQ().getType().getDimSize(2)), keyHeads(op.getK().getType().getDimSize(1)),
        columns(op.getK().getType().getDimSize(2)) {}

  /// Between products: f32 for 16-bit operands; products take and give the operands' own type.
  Expr wide(Expr x) { return cast(x, accumulatorType(op.getQ())); }
  Expr narrow(Expr x) { return cast(x, op.getQ().getType().getElementType()); }
  Expr stacked(Expr x) const { return reshape(x, {batch, keyHeads, heads / keyHeads * rows, x.dim(3)}); }
  Expr unstacked(Expr x) const { return reshape(x, {batch, heads, rows, x.dim(3)}); }

  /// scale · q kᵀ + mask: [B, H, T, S], wide.
  Expr scores(Expr q, Expr k) {
    Expr s = wide(unstacked(dot(stacked(q), k, false, true))) * op.getScale().convertToDouble();
    if (op.getMask())
      s = s + broadcastTo(wide(q.with(op.getMask())), s.shape());
    if (op.getCausal()) {
      auto type = RankedTensorType::get({rows, columns}, s.getBuilder().getI32Type());
      Expr visible = lessEqual(iota(s.getBuilder(), s.getLoc(), type, 1), iota(s.getBuilder(), s.getLoc(), type, 0));
      s = select(broadcastTo(visible, s.shape()), s, s.like(-std::numeric_limits<double>::infinity()));
    }
    return s;
  }
};
} // namespace

FailureOr<SmallVector<Value>> AttentionOp::decompose(OpBuilder &builder) {
  Heads heads(*this);
  Expr q(builder, getLoc(), getQ()), k = q.with(getK()), v = q.with(getV());
  Expr s = heads.scores(q, k);
  auto spread = [&](Expr e) { return unreduce(e, s.type(), 3); };
  Expr highest = maximum(s, 3), e = exp(s - spread(highest)), total = sum(e, 3);
  Expr o = heads.unstacked(dot(heads.stacked(heads.narrow(e / spread(total))), v));
  return SmallVector<Value>{o, highest + log(total)};
}

LogicalResult AttentionOp::differentiate(GradientBuilder &g) {
  Heads heads(*this);
  Expr q = g.operand(0), k = g.operand(1), v = g.operand(2), o = g.result(0), dO = g.cotangent(0);
  Expr s = heads.scores(q, k);
  auto spread = [&](Expr e) { return unreduce(e, s.type(), 3); };
  Expr p = exp(s - spread(g.result(1))), dS;
  // o = p v with rows of p summing to 1: d s = p · (d p - Σ d p · p), and Σ d p · p = Σ d o · o.
  if (dO) {
    if (g.needs(2))
      g.set(2, dot(heads.stacked(heads.narrow(p)), heads.stacked(dO), true, false));
    Expr dP = heads.wide(heads.unstacked(dot(heads.stacked(dO), v, false, true)));
    dS = p * (dP - spread(sum(heads.wide(dO) * heads.wide(o), 3)));
  }
  if (Expr dLse = g.cotangent(1)) {
    Expr part = p * spread(dLse);
    dS = dS ? dS + part : part;
  }
  if (!dS)
    return success();
  if (getMask() && g.needs(3)) {
    SmallVector<int64_t> repeated;
    for (int64_t i = 0; i < 4; ++i)
      if (getMask().getType().getDimSize(i) != s.dim(i))
        repeated.push_back(i);
    g.set(3, cast(reshape(sum(dS, repeated), getMask().getType().getShape()), getMask().getType().getElementType()));
  }
  Expr scaled = heads.stacked(heads.narrow(dS * getScale().convertToDouble()));
  if (g.needs(0))
    g.set(0, heads.unstacked(dot(scaled, k)));
  if (g.needs(1))
    g.set(1, dot(scaled, heads.stacked(q), true, false));
  return success();
}
