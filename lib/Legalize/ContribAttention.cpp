//===- ContribAttention.cpp - onnxruntime's fused transformer parts -------===//
//
// Rules for com.microsoft's Attention, MultiHeadAttention and EmbedLayerNormalization, as far as training needs them:
// without a cache of past keys.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/MatMul.h"
#include "lowtide/Legalize/Rules.h"

#include <cmath>

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// [B, S, N · D] → [B, N, S, D].
Expr splitHeads(Expr x, int64_t heads) {
  return nn::transpose(nn::reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

/// A mask of keys as something to add to scores [B, N, S, T]: [B, T] or [B, S, T] of 0 and 1, or [B], the number of
/// keys that count.
FailureOr<Expr> maskToAdd(NodeView &n, Expr mask, Expr q, int64_t keys) {
  int64_t batch = q.dim(0), rows = q.dim(2);
  Expr seen;
  if (mask.rank() == 1 && mask.dim(0) == batch) {
    Shape shape{batch, keys};
    Expr at = positions(mask, shape, 1);
    seen = nn::less(at, nn::broadcast(nn::cast(mask, n.builder.getI64Type()), shape, {0}));
  } else if ((mask.rank() == 2 && mask.shape() == ArrayRef<int64_t>{batch, keys}) ||
             (mask.rank() == 3 && mask.shape() == ArrayRef<int64_t>{batch, rows, keys})) {
    seen = isBool(mask) ? mask : nn::notEqual(mask, 0.0);
  } else {
    (void)n.refuse("masks other than [batch], [batch, keys] and [batch, rows, keys]");
    return failure();
  }
  Expr zero = n.splat(q.elementType(), seen.shape(), 0.0);
  Expr hidden = nn::select(seen, zero, zero.like(n.attrFloat("mask_filter_value", -10000.0)));
  return nn::reshape(hidden, {batch, 1, seen.rank() == 3 ? rows : 1, keys});
}

/// Attention of q, k, v [B, S, H] with `heads` heads; operands `maskAt` and `biasAt` restrict and shift the scores.
LogicalResult attend(NodeView &n, Expr q, Expr k, Expr v, unsigned maskAt, unsigned biasAt) {
  int64_t heads = n.attr("num_heads", 0);
  for (Expr x : {q, k, v})
    if (x.rank() != 3 || heads < 1 || x.dim(2) % heads || x.dim(0) != q.dim(0))
      return n.refuse("operands other than [batch, length, heads · size]");
  if (k.dim(1) != v.dim(1) || k.dim(2) != q.dim(2))
    return n.reject("queries, keys and values do not fit together");
  q = splitHeads(q, heads);
  k = splitHeads(k, heads);
  v = splitHeads(v, heads);
  int64_t keys = k.dim(2);
  Expr mask;
  if (n.has(maskAt)) {
    FailureOr<Expr> added = maskToAdd(n, n.in(maskAt), q, keys);
    if (failed(added))
      return failure();
    mask = *added;
  }
  if (n.has(biasAt)) {
    Expr bias = n.in(biasAt);
    FailureOr<Shape> shape = mask ? broadcastShapes(mask.shape(), bias.shape()) : Shape(bias.shape());
    FailureOr<Shape> whole = broadcastShapes(bias.shape(), {q.dim(0), heads, q.dim(2), keys});
    if (bias.rank() != 4 || failed(shape) || failed(whole) || *whole != Shape{q.dim(0), heads, q.dim(2), keys})
      return n.reject("the attention bias does not broadcast to the scores");
    mask = mask ? nn::broadcastTo(mask, *shape) + nn::broadcastTo(bias, *shape) : bias;
  }
  double scale = n.attrFloat("scale", 0.0);
  if (scale == 0.0)
    scale = 1.0 / std::sqrt(double(q.dim(3)));
  Expr o = nn::attention(q, k, v, mask, scale, n.attr("unidirectional", 0))[0];
  n.set(0, nn::reshape(nn::transpose(o, {0, 2, 1, 3}), {o.dim(0), o.dim(2), heads * o.dim(3)}));
  return success();
}

/// Refuses what only generation needs.
LogicalResult refuseCache(NodeView &n, ArrayRef<unsigned> operands) {
  for (unsigned i : operands)
    if (n.has(i))
      return n.refuse("past keys and values (operand " + Twine(i) + ")");
  for (unsigned i = 1; i < n.numResults(); ++i)
    if (n.wants(i))
      return n.refuse("present keys and values (result " + Twine(i) + ")");
  if (n.attr("do_rotary", 0))
    return n.refuse("rotary embedding inside of the operator");
  return success();
}

/// One product makes queries, keys and values.
LogicalResult attention(NodeView &n) {
  if (failed(n.need(2)) || failed(refuseCache(n, {4, 6})))
    return failure();
  FailureOr<Expr> packed = matmul(n.in(0), n.in(1));
  if (failed(packed) || packed->rank() != 3)
    return n.reject("operand and weights do not fit together");
  Expr x = *packed;
  if (n.has(2)) {
    if (n.in(2).shape() != x.shape().take_back(1))
      return n.reject("the bias does not fit the weights");
    x = x + nn::broadcastTo(n.in(2), x.shape());
  }
  Shape sizes = n.attrInts("qkv_hidden_sizes", Shape(3, x.dim(2) / 3));
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != x.dim(2))
    return n.reject("the weights do not divide into queries, keys and values");
  return attend(n, sliceDim(x, 2, 0, sizes[0]), sliceDim(x, 2, sizes[0], sizes[1]),
                sliceDim(x, 2, sizes[0] + sizes[1], sizes[2]), 3, 5);
}

/// Operands of which several are packed into one [B, S, N, count, D] as [B, S, N · D] each.
SmallVector<Expr> unpack(Expr packed, int64_t count) {
  SmallVector<Expr> parts;
  int64_t heads = packed.dim(2), size = packed.dim(4);
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(nn::reshape(sliceDim(packed, 3, i, 1), {packed.dim(0), packed.dim(1), heads * size}));
  return parts;
}

/// Queries, keys and values of a MultiHeadAttention as [B, S, N · D] each; empty after a refusal.
SmallVector<Expr> readOperands(NodeView &n) {
  Expr query = n.in(0), key = n.has(1) ? n.in(1) : Expr(), value = n.has(2) ? n.in(2) : Expr();
  if (query.rank() == 5 && !key && !value && query.dim(3) == 3)
    return unpack(query, 3);
  SmallVector<Expr> operands{query};
  if (query.rank() == 3 && key && key.rank() == 5 && !value && key.dim(3) == 2)
    llvm::append_range(operands, unpack(key, 2));
  else if (key && value)
    // Keys and values of a decoder's encoder come as [B, N, L, D].
    for (Expr x : {key, value})
      operands.push_back(
          x.rank() != 4 ? x : nn::reshape(nn::transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)}));
  if (operands.size() != 3 || llvm::any_of(operands, [](Expr x) { return x.rank() != 3; })) {
    (void)n.refuse("operands other than [batch, length, heads · size] and those packed as [batch, length, heads, 3 or "
                   "2, size]");
    return {};
  }
  return operands;
}

LogicalResult multiHeadAttention(NodeView &n) {
  if (failed(n.need(1)) || failed(refuseCache(n, {6, 7})))
    return failure();
  SmallVector<Expr> operands = readOperands(n);
  if (operands.empty())
    return failure();
  int64_t offset = 0;
  for (Expr &x : operands) {
    if (n.has(3)) {
      int64_t size = x.dim(2);
      if (n.in(3).rank() != 1 || offset + size > n.in(3).dim(0))
        return n.reject("the bias does not fit queries, keys and values");
      x = x + nn::broadcastTo(sliceDim(n.in(3), 0, offset, size), x.shape());
      offset += size;
    }
  }
  return attend(n, operands[0], operands[1], operands[2], 4, 5);
}

/// Sum of word, position and segment embeddings, normalized.
LogicalResult embedLayerNorm(NodeView &n) {
  if (!n.has(0) || !n.has(2) || !n.has(3) || !n.has(5) || !n.has(6))
    return n.reject("ids, word and position table, scale and bias are expected");
  Expr ids = n.in(0), words = n.in(2), places = n.in(3), scale = n.in(5);
  if (ids.rank() != 2 || words.rank() != 2 || places.rank() != 2)
    return n.reject("ids [batch, length] and tables of two dimensions are expected");
  if (n.wants(1)) {
    if (!n.has(7) || n.in(7).rank() != 2 || n.in(7).dim(0) != ids.dim(0))
      return n.refuse("the index of a mask (result 1) without a mask [batch, length]");
    // How many words of each sequence count, as Attention reads it.
    Expr counted = nn::cast(nn::equal(n.in(7), 1.0), n.builder.getF32Type());
    n.set(1, nn::cast(nn::sum(counted, {1}), n.in(7).elementType()));
  }
  Expr sum = nn::gather(words, fromFront(ids, words.dim(0)), 0);
  Expr at = n.has(8) ? n.in(8) : positions(ids, {1, ids.dim(1)}, 1);
  sum = sum + nn::broadcastTo(nn::gather(places, fromFront(at, places.dim(0)), 0), sum.shape());
  if (n.has(1) && n.has(4))
    sum = sum + nn::gather(n.in(4), fromFront(n.in(1), n.in(4).dim(0)), 0);
  n.set(0, nn::layerNorm(sum, scale, n.in(6), 2, n.attrFloat("epsilon", 1e-12))[0]);
  n.set(2, sum);
  return success();
}

} // namespace

void lowtide::addContribAttentionRules(RuleTable &t) {
  t.add("com.microsoft.Attention", attention);
  t.add("com.microsoft.MultiHeadAttention", multiHeadAttention);
  t.add("com.microsoft.EmbedLayerNormalization", embedLayerNorm);
}
