//===- Attention.cpp - nn.attention -----------------------------*- C++ -*-===//
//
// Verifier, cost, decomposition and derivative of scaled dot-product attention with shared key heads.
//
//===----------------------------------------------------------------------===//

#include "AttentionScores.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

LogicalResult nn::verifyAttention(Operation *op, Value qValue, Value kValue, Value vValue, Value maskValue,
                                  Value oValue, Value lseValue) {
  auto q = cast<RankedTensorType>(qValue.getType()), k = cast<RankedTensorType>(kValue.getType()),
       v = cast<RankedTensorType>(vValue.getType());
  Type element = q.getElementType();
  if (q.getRank() != 4 || k.getRank() != 4 || v.getRank() != 4)
    return op->emitOpError("q, k and v must have rank 4");
  if (k.getElementType() != element || v.getElementType() != element)
    return op->emitOpError("q, k and v must have the same element type");
  if (k.getDimSize(0) != q.getDimSize(0) || v.getDimSize(0) != q.getDimSize(0))
    return op->emitOpError("q, k and v must have the same batch");
  if (k.getDimSize(1) == 0 || q.getDimSize(1) % k.getDimSize(1) != 0 || v.getDimSize(1) != k.getDimSize(1))
    return op->emitOpError("the ") << q.getDimSize(1) << " heads of q must be a multiple of the heads of k and v";
  if (k.getDimSize(3) != q.getDimSize(3) || k.getDimSize(2) != v.getDimSize(2))
    return op->emitOpError("k must agree with q in the last dimension and with v in dimension 2");
  if (oValue.getType() !=
      RankedTensorType::get({q.getDimSize(0), q.getDimSize(1), q.getDimSize(2), v.getDimSize(3)}, element))
    return op->emitOpError("result must have q's shape with v's last dimension");
  Type wide = accumulatorType(qValue);
  if (lseValue.getType() != RankedTensorType::get(q.getShape().take_front(3), wide))
    return op->emitOpError("lse must have q's shape without the last dimension, and element type ") << wide;
  if (!maskValue)
    return success();
  auto mask = cast<RankedTensorType>(maskValue.getType());
  int64_t scores[] = {q.getDimSize(0), q.getDimSize(1), q.getDimSize(2), k.getDimSize(2)};
  if (mask.getRank() != 4 || (mask.getElementType() != element && mask.getElementType() != wide))
    return op->emitOpError("mask must have rank 4 and the element type of q or ") << wide;
  for (int64_t i = 0; i < 4; ++i)
    if (mask.getDimSize(i) != 1 && mask.getDimSize(i) != scores[i])
      return op->emitOpError("mask dimension ") << i << " must be 1 or " << scores[i];
  return success();
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(*this, getQ(), getK(), getV(), getMask(), getO(), getLse());
}

uint64_t nn::countScores(Value qValue, Value vValue, bool causal) {
  auto q = cast<RankedTensorType>(qValue.getType()), v = cast<RankedTensorType>(vValue.getType());
  const uint64_t rows = q.getDimSize(2), columns = v.getDimSize(2), first = std::min(rows, columns);
  const uint64_t seen = causal ? first * (first + 1) / 2 + (rows - first) * columns : rows * columns;
  return static_cast<uint64_t>(q.getDimSize(0)) * q.getDimSize(1) * seen;
}

uint64_t nn::attentionFlops(AttentionOp op) {
  return countScores(op.getQ(), op.getV(), op.getCausal()) *
         (2 * (op.getQ().getType().getDimSize(3) + op.getV().getType().getDimSize(3)) + 16);
}

AttentionScores::AttentionScores(Expr q, Expr k, Expr v, Value mask, double scale, bool causal)
    : q(q), k(k), v(v), mask(mask), scale(scale), causal(causal), batch(q.dim(0)), heads(q.dim(1)), rows(q.dim(2)),
      keyHeads(k.dim(1)), columns(k.dim(2)), wideType(accumulatorType(q)) {}

Expr AttentionScores::scores() const {
  Expr s = wide(unstacked(dot(stacked(q), k, false, true))) * scale;
  if (mask)
    s = s + broadcastTo(wide(q.with(mask)), s.shape());
  if (causal) {
    auto type = RankedTensorType::get({rows, columns}, s.getBuilder().getI32Type());
    Expr visible = lessEqual(iota(s.getBuilder(), s.getLoc(), type, 1), iota(s.getBuilder(), s.getLoc(), type, 0));
    s = select(broadcastTo(visible, s.shape()), s, s.like(-std::numeric_limits<double>::infinity()));
  }
  return s;
}

Expr AttentionScores::shareOfHiddenRows() const {
  Expr m = wide(q.with(mask));
  SmallVector<int64_t> shape(m.shape());
  shape[3] = columns;
  if (causal) {
    shape[2] = rows;
    auto type = RankedTensorType::get({rows, columns}, m.getBuilder().getI32Type());
    Expr visible = lessEqual(iota(m.getBuilder(), m.getLoc(), type, 1), iota(m.getBuilder(), m.getLoc(), type, 0));
    m = broadcastTo(m, shape);
    m = select(broadcastTo(visible, shape), m, m.like(-std::numeric_limits<double>::infinity()));
  } else {
    m = broadcastTo(m, shape);
  }
  // Beyond this, the logarithm of a count of columns is below half a unit in the last place.
  const double absorbing = isa<Float64Type>(wideType) ? -1e17 : -1e8;
  Expr highest = maximum(m, 3), spread = unreduce(highest, m.type(), 3);
  Expr count = sum(select(equal(m, spread), m.like(1.0), m.like(0.0)), 3);
  Expr share = select(less(highest, absorbing), reciprocal(count), highest.like(1.0));
  shape[3] = 1;
  return reshape(share, shape);
}

AttentionScores::Cotangents AttentionScores::differentiate(Expr o, Expr lse, Expr dO, Expr dLse,
                                                           std::array<bool, 3> needs) const {
  Cotangents result;
  Expr s = scores();
  auto spread = [&](Expr e) { return unreduce(e, s.type(), 3); };
  Expr p = exp(s - spread(lse)), &dS = result.scores;
  if (dO && mask)
    dO = narrow(wide(dO) * broadcastTo(shareOfHiddenRows(), dO.shape()));
  // o = p v with rows of p summing to 1: d s = p · (d p - Σ d p · p), and Σ d p · p = Σ d o · o.
  if (dO) {
    if (needs[2])
      result.v = dot(stacked(narrow(p)), stacked(dO), true, false);
    Expr dP = wide(unstacked(dot(stacked(dO), v, false, true)));
    dS = p * (dP - spread(sum(wide(dO) * wide(o), 3)));
  }
  if (dLse) {
    Expr part = p * spread(dLse);
    dS = dS ? dS + part : part;
  }
  Expr scaled = stacked(narrow(dS * scale));
  if (needs[0])
    result.q = unstacked(dot(scaled, k));
  if (needs[1])
    result.k = dot(scaled, stacked(q), true, false);
  return result;
}

FailureOr<SmallVector<Value>> AttentionOp::decompose(OpBuilder &builder) {
  AttentionScores a(*this, Expr(builder, getLoc(), getQ()));
  Expr s = a.scores();
  auto spread = [&](Expr e) { return unreduce(e, s.type(), 3); };
  Expr highest = maximum(s, 3), e = exp(s - spread(highest)), total = sum(e, 3);
  Expr o = a.unstacked(dot(a.stacked(a.narrow(e / spread(total))), a.v));
  return SmallVector<Value>{o, highest + log(total)};
}

LogicalResult AttentionOp::differentiate(GradientBuilder &g) {
  if (!g.cotangent(0) && !g.cotangent(1))
    return success();
  AttentionScores a(*this, g.operand(0));
  AttentionScores::Cotangents d =
      a.differentiate(g.result(0), g.result(1), g.cotangent(0), g.cotangent(1), {g.needs(0), g.needs(1), g.needs(2)});
  if (getMask() && g.needs(3)) {
    SmallVector<int64_t> repeated;
    for (int64_t i = 0; i < 4; ++i)
      if (getMask().getType().getDimSize(i) != d.scores.dim(i))
        repeated.push_back(i);
    g.set(3,
          cast(reshape(sum(d.scores, repeated), getMask().getType().getShape()), getMask().getType().getElementType()));
  }
  const Expr cotangents[] = {d.q, d.k, d.v};
  for (auto [i, cotangent] : llvm::enumerate(cotangents))
    if (cotangent)
      g.set(i, cotangent);
  return success();
}
