//===- AttentionScores.h - what attention and its derivative share -*- C++ -*-===//
//
// Scores and probabilities of scaled dot-product attention as expressions, for the ops' decompositions and for the
// derivative that is written out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"

namespace lowtide::nn {

/// One attention: its extents and operands. The heads that share a key head stand one after another as rows, so that
/// each key head takes one product.
struct AttentionScores {
  Expr q, k, v;
  mlir::Value mask; ///< may be null
  double scale;
  bool causal;
  int64_t batch, heads, rows, keyHeads, columns;
  mlir::Type wideType; ///< f32 for 16-bit operands

  /// `op`: nn.attention or its derivative; q stands where ops are built.
  template <typename Op>
  AttentionScores(Op op, Expr q)
      : AttentionScores(q, q.with(op.getK()), q.with(op.getV()), op.getMask(), op.getScale().convertToDouble(),
                        op.getCausal()) {}
  AttentionScores(Expr q, Expr k, Expr v, mlir::Value mask, double scale, bool causal);

  /// Between products: f32 for 16-bit operands; products take and give the operands' own type.
  Expr wide(Expr x) const { return cast(x, wideType); }
  Expr narrow(Expr x) const { return cast(x, q.elementType()); }
  Expr stacked(Expr x) const { return reshape(x, {batch, keyHeads, heads / keyHeads * rows, x.dim(3)}); }
  Expr unstacked(Expr x) const { return reshape(x, {batch, heads, rows, x.dim(3)}); }

  /// scale · q kᵀ + mask: [B, H, T, S], wide.
  Expr scores() const;

  /// [B or 1, H or 1, T or 1, 1], wide: one over the number of columns where the mask hides all columns of a row by a
  /// huge number, and 1 elsewhere. Such a number takes up both the scores and log Σ exp: softmax gives all columns
  /// alike, and exp(s - lse) is 1 for each of them.
  Expr shareOfHiddenRows() const;

  /// Cotangents, given those of o and lse (each may be null, not both); null where `needs` is false.
  struct Cotangents {
    Expr q, k, v, scores;
  };
  Cotangents differentiate(Expr o, Expr lse, Expr dO, Expr dLse, std::array<bool, 3> needs) const;
};

/// Whether the operands that both ops have agree in shape and type; emits an error at `op` otherwise.
llvm::LogicalResult verifyAttention(mlir::Operation *op, mlir::Value q, mlir::Value k, mlir::Value v, mlir::Value mask,
                                    mlir::Value o, mlir::Value lse);

/// Rows × columns of all scores.
uint64_t countScores(mlir::Value q, mlir::Value v, bool causal);

} // namespace lowtide::nn
