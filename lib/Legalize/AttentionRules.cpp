//===- AttentionRules.cpp - attention and rotary positions ----------------===//
//
// Rules for Attention and RotaryEmbedding.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// [B, T, H·D] → [B, H, T, D].
Expr splitHeads(Expr x, int64_t heads) {
  return nn::transpose(nn::reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}
Expr joinHeads(Expr x) {
  return nn::reshape(nn::transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}
/// [B, K, S, D] → [B, K · times, S, D], each head repeated in place.
Expr repeatHeads(Expr x, int64_t times) {
  if (times == 1)
    return x;
  Expr spread = nn::broadcast(x, {x.dim(0), x.dim(1), times, x.dim(2), x.dim(3)}, {0, 1, 3, 4});
  return nn::reshape(spread, {x.dim(0), x.dim(1) * times, x.dim(2), x.dim(3)});
}

/// What is added to the scores, as [1 or B, 1 or H, 1 or T, S]; null when nothing is. Scores that do not count get a
/// number so low that their exponentials are zero, and not −∞: the row of a sample that sees nothing stays finite, and
/// so do the derivatives that pass through it.
struct Bias {
  NodeView &n;
  Type element;
  int64_t batch, rows, columns;
  Expr value;

  /// A few of these still add up to a number.
  double none() const { return element.isF16() ? -1.2e4 : -1e37; }
  /// Scores where `allowed` (of rank 4) is false do not count.
  void allow(Expr allowed) {
    add(nn::select(allowed, n.splat(element, allowed.shape(), 0.0), n.splat(element, allowed.shape(), none())));
  }
  /// A mask of numbers, among which −∞ may be.
  void addMask(Expr mask) { add(nn::select(nn::less(mask, none()), mask.like(none()), mask)); }
  /// Which scores count.
  Expr counted() { return nn::greater(value, none() / 2); }
  /// `rows` [B, H, T, …] with zeros where a row sees nothing.
  Expr blanked(Expr rowsOf) {
    if (!value)
      return rowsOf;
    Expr sees = nn::greater(nn::maximum(value, {3}), none() / 2);
    DenseElementsAttr known = LegalizeContext::constantOf(sees);
    if (known && llvm::all_of(known.getValues<bool>(), [](bool b) { return b; }))
      return rowsOf;
    Shape shape(rowsOf.shape());
    shape.pop_back();
    return nn::select(nn::broadcast(nn::broadcastTo(sees, shape), rowsOf.shape(), {0, 1, 2}), rowsOf, rowsOf.like(0.0));
  }
  void add(Expr more) {
    if (!value) {
      value = more;
      return;
    }
    Shape shape = *broadcastShapes(value.shape(), more.shape());
    value = nn::broadcastTo(value, shape) + nn::broadcastTo(more, shape);
  }
  /// Column − row − offset, where a row's own position is row + offset; offset null is zero.
  Expr distance(Expr offset) {
    Shape shape{offset ? offset.dim(0) : 1, 1, rows, columns};
    Expr like = n.splat(n.builder.getI64Type(), {}, 0.0);
    Expr d = positions(like, shape, 3) - positions(like, shape, 2);
    return offset ? d - nn::broadcast(offset, shape, {0}) : d;
  }
};

struct Heads {
  Expr q, k, v;
};

FailureOr<Heads> readHeads(NodeView &n, bool flat) {
  Heads h{n.in(0), n.in(1), n.in(2)};
  if (flat) {
    int64_t q = n.attr("q_num_heads", 0), kv = n.attr("kv_num_heads", 0);
    if (q < 1 || kv < 1 || h.q.dim(2) % q || h.k.dim(2) % kv || h.v.dim(2) % kv) {
      (void)n.reject("'q_num_heads' and 'kv_num_heads' do not fit the operands");
      return failure();
    }
    h = {splitHeads(h.q, q), splitHeads(h.k, kv), splitHeads(h.v, kv)};
  }
  if (n.has(4))
    h.k = nn::concat({n.in(4), h.k}, 2);
  if (n.has(5))
    h.v = nn::concat({n.in(5), h.v}, 2);
  if (h.q.dim(3) != h.k.dim(3) || h.k.dim(2) != h.v.dim(2) || h.k.dim(1) != h.v.dim(1) || h.q.dim(1) % h.k.dim(1)) {
    (void)n.reject("queries, keys and values do not fit together");
    return failure();
  }
  return h;
}

LogicalResult attention(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  int64_t rank = n.in(0).rank();
  if ((rank != 3 && rank != 4) || n.in(1).rank() != rank || n.in(2).rank() != rank)
    return n.reject("three operands of rank 3 or 4 are expected");
  FailureOr<Heads> heads = readHeads(n, rank == 3);
  if (failed(heads))
    return failure();
  auto [q, k, v] = *heads;
  Type element = q.elementType();
  int64_t batch = q.dim(0), rows = q.dim(2), columns = k.dim(2);
  double scale = n.attrFloat("scale", 1.0 / std::sqrt(double(q.dim(3)))), cap = n.attrFloat("softcap", 0.0);
  int64_t left = n.attr("left_window_size", -1), right = n.attr("right_window_size", -1);
  bool causal = n.attr("is_causal", 0);

  Bias bias{n, element, batch, rows, columns, {}};
  if (n.has(3)) {
    Expr mask = n.in(3);
    if (mask.rank() > 4)
      return n.reject("a mask of rank " + Twine(mask.rank()));
    while (mask.rank() < 4)
      mask = unsqueeze(mask, 0);
    if (mask.dim(3) > 1 && mask.dim(3) < columns) { // what the mask does not reach does not count
      mask = nn::pad(mask, {0, 0, 0, 0}, {0, 0, 0, columns - mask.dim(3)}, {}, isBool(mask) ? 0.0 : bias.none());
    }
    FailureOr<Shape> common = broadcastShapes(mask.shape(), {batch, q.dim(1), rows, columns});
    if (failed(common) || *common != Shape{batch, q.dim(1), rows, columns})
      return n.reject("the mask does not broadcast to the scores");
    if (isBool(mask))
      bias.allow(mask);
    else
      bias.addMask(nn::cast(mask, element));
  }
  // Where the first row stands among the columns.
  Expr offset, lengths = n.has(6) ? nn::cast(nn::reshape(n.in(6), {batch}), n.builder.getI64Type()) : Expr();
  int64_t past = n.has(4) ? n.in(4).dim(2) : 0;
  if (lengths && !past)
    offset = lengths - double(rows);
  else if (past)
    offset = n.splat(n.builder.getI64Type(), {1}, double(past));
  // A row that sees the first columns only, and these masked, sees nothing: the mask must know of it.
  bool maskIsData = bias.value && !LegalizeContext::constantOf(bias.value);
  if (causal && (offset || maskIsData)) {
    bias.allow(nn::lessEqual(bias.distance(offset), 0.0));
    causal = false;
  }
  if (left >= 0)
    bias.allow(nn::greaterEqual(bias.distance(offset), -double(left)));
  if (right >= 0)
    bias.allow(nn::lessEqual(bias.distance(offset), double(right)));
  if (lengths) {
    Shape shape{batch, 1, 1, columns};
    bias.allow(nn::less(positions(lengths, shape, 3), nn::broadcast(lengths, shape, {0})));
  }

  n.set(1, k);
  n.set(2, v);
  if (cap == 0.0 && !n.wants(3)) {
    Expr y = bias.blanked(nn::attention(q, k, v, bias.value, scale, causal)[0]);
    n.set(0, rank == 3 ? joinHeads(y) : y);
    return success();
  }
  if (causal)
    bias.allow(nn::lessEqual(bias.distance({}), 0.0));
  int64_t times = q.dim(1) / k.dim(1);
  double root = std::sqrt(scale);
  Expr scores = nn::dot(q * root, repeatHeads(k, times) * root, false, true), shown = scores;
  int64_t mode = n.attr("qk_matmul_output_mode", 0);
  if (cap != 0.0)
    scores = nn::tanh(scores / cap) * cap;
  if (mode == 1)
    shown = scores;
  if (bias.value)
    scores = scores + nn::broadcastTo(bias.value, scores.shape());
  if (mode == 2)
    shown = bias.value ? nn::select(nn::broadcastTo(bias.counted(), scores.shape()), scores,
                                    scores.like(-std::numeric_limits<double>::infinity()))
                       : scores;
  Expr weights = bias.blanked(nn::softmax(scores, 3));
  if (mode == 3)
    shown = weights;
  Expr y = nn::dot(weights, repeatHeads(v, times));
  n.set(0, rank == 3 ? joinHeads(y) : y);
  n.set(3, shown);
  return success();
}

/// Rotates pairs of `x` [B, T, H] or [B, N, T, D] by tables that either hold a row for each place, or rows of which
/// `places` picks.
LogicalResult rotate(NodeView &n, Expr x, Expr cosine, Expr sine, Expr places) {
  bool flat = x.rank() == 3;
  if (!flat && x.rank() != 4)
    return n.reject("an operand of rank 3 or 4 is expected");
  Shape given(x.shape());
  int64_t heads = n.attr("num_heads", 0), width = n.attr("rotary_embedding_dim", 0);
  if (flat) {
    // onnxruntime leaves the number of heads out where the table's width tells it.
    if (heads == 0 && width == 0 && cosine.rank() > 0 && cosine.shape().back() > 0)
      heads = x.dim(2) / (2 * cosine.shape().back());
    if (heads < 1 || x.dim(2) % heads)
      return n.reject("'num_heads' does not divide " + Twine(x.dim(2)));
    x = nn::reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  }
  int64_t size = x.dim(3);
  if (width == 0)
    width = size;
  if (width < 0 || width % 2 || width > size)
    return n.reject("'rotary_embedding_dim' " + Twine(width) + " of " + Twine(size));
  if (places) {
    auto pick = [&](Expr table) { return nn::gather(table, fromFront(places, table.dim(0)), 0); };
    cosine = pick(cosine);
    sine = pick(sine);
  }
  int64_t half = width / 2, time = flat ? 1 : 2;
  Expr turned = sliceDim(x, 3, 0, width), rest;
  if (width < size)
    rest = sliceDim(x, 3, width, size - width);
  Shape part(x.shape());
  part[3] = half;
  if (cosine.shape() != ArrayRef<int64_t>{x.dim(0), x.dim(time), half} || sine.shape() != cosine.shape())
    return n.reject("the caches do not fit the operand");
  Expr c = nn::broadcast(cosine, part, {0, time, 3}), s = nn::broadcast(sine, part, {0, time, 3});
  bool interleaved = n.attr("interleaved", 0);
  Expr a = interleaved ? nn::slice(turned, {0, 0, 0, 0}, part, {1, 1, 1, 2}) : sliceDim(turned, 3, 0, half);
  Expr b = interleaved ? nn::slice(turned, {0, 0, 0, 1}, part, {1, 1, 1, 2}) : sliceDim(turned, 3, half, half);
  Expr real = c * a - s * b, imaginary = s * a + c * b;
  Expr y = interleaved ? nn::reshape(nn::concat({unsqueeze(real, 4), unsqueeze(imaginary, 4)}, 4), turned.shape())
                       : nn::concat({real, imaginary}, 3);
  if (rest)
    y = nn::concat({y, rest}, 3);
  n.set(0, nn::reshape(y, given));
  return success();
}

LogicalResult rotaryEmbedding(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  return rotate(n, n.in(0), n.in(1), n.in(2), n.has(3) ? n.in(3) : Expr());
}

/// onnxruntime's has the positions in front of the tables; a single one is that of the first place.
LogicalResult fusedRotaryEmbedding(NodeView &n) {
  if (failed(n.need(4)))
    return failure();
  if (n.attr("is_packed_batching", 0) || n.attrFloat("scale", 1.0) != 1.0)
    return n.refuse("packed batches and scales");
  Expr x = n.in(0), places = fromFront(n.in(1), n.in(2).dim(0));
  if (x.rank() < 3 || n.in(2).rank() != 2)
    return n.reject("an operand of rank 3 or 4 and tables of rank 2 are expected");
  Shape all{x.dim(0), x.rank() == 3 ? x.dim(1) : x.dim(2)};
  if (countOf(places.shape()) == 1)
    places = positions(x, all, 1) + nn::broadcast(nn::reshape(places, {}), all, {});
  else if (places.shape() != ArrayRef<int64_t>(all))
    return n.reject("the positions do not fit the operand");
  return rotate(n, x, n.in(2), n.in(3), places);
}

} // namespace

void lowtide::addAttentionRules(RuleTable &t) {
  t.add("Attention", attention);
  t.add("RotaryEmbedding", rotaryEmbedding);
  t.add("com.microsoft.RotaryEmbedding", fusedRotaryEmbedding);
}
