//===- AttentionGrad.cpp - nn.attention_grad --------------------*- C++ -*-===//
//
// The derivative of attention as one op: how it is made, its verifier, cost and decomposition.
//
//===----------------------------------------------------------------------===//

#include "AttentionScores.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/LibraryForms.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

bool nn::differentiateAsOne(GradientBuilder &g) {
  auto op = dyn_cast<AttentionOp>(g.op);
  if (!op || !g.cotangent(0) || g.cotangent(1) || (op.getMask() && g.needs(3)))
    return false;
  auto gradient = AttentionGradOp::create(g.builder, op.getLoc(),
                                          TypeRange{op.getQ().getType(), op.getK().getType(), op.getV().getType()},
                                          op.getQ(), op.getK(), op.getV(), op.getO(), op.getLse(), g.cotangent(0).get(),
                                          op.getMask(), op.getScaleAttr(), op.getCausalAttr());
  for (unsigned i = 0; i < 3; ++i)
    if (g.needs(i))
      g.set(i, g.operand(i).with(gradient.getResult(i)));
  return true;
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this, getQ(), getK(), getV(), getMask(), getO(), getLse())))
    return failure();
  if (getGradO().getType() != getO().getType())
    return emitOpError("grad_o must have the type of o");
  if (getDq().getType() != getQ().getType() || getDk().getType() != getK().getType() ||
      getDv().getType() != getV().getType())
    return emitOpError("results must have the types of q, k and v");
  return success();
}

uint64_t nn::attentionGradFlops(AttentionGradOp op) {
  // Scores and dq, dk take q's last dimension each; what comes of grad_o and dv take v's.
  return countScores(op.getQ(), op.getV(), op.getCausal()) *
         (2 * (3 * op.getQ().getType().getDimSize(3) + 2 * op.getV().getType().getDimSize(3)) + 20);
}

FailureOr<SmallVector<Value>> AttentionGradOp::decompose(OpBuilder &builder) {
  Expr q(builder, getLoc(), getQ());
  AttentionScores::Cotangents d = AttentionScores(*this, q).differentiate(
      q.with(getO()), q.with(getLse()), q.with(getGradO()), Expr(), {true, true, true});
  return SmallVector<Value>{d.q, d.k, d.v};
}
