//===- OrderingRules.cpp - the k first elements of an order ---------------===//
//
// Rule for TopK, which also is how exporters write sorts: it finds positions, and reads the values there, so that
// derivatives flow as through any gather. Three ways to find them; which one is a matter of cost only.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// Up to here every element is compared with every other: one fused loop without intermediate tensors.
constexpr int64_t longestCounted = 256;
/// Comparisons that a CPU makes in half a millisecond: more of them take longer than the kernels of a few picks.
constexpr int64_t manyComparisons = 1 << 22;

/// Rows [R, n] in an order: the larger (or smaller) first, the earlier first among equals.
class RowOrder {
public:
  RowOrder(NodeView &n, Expr rows, bool largest) : n(n), rows(rows), largest(largest) {}

  /// Positions of the `k` first elements of each row, [R, k] of i64.
  Expr first(int64_t k) {
    int64_t count = rows.dim(1), rounds = llvm::Log2_64_Ceil(std::max<int64_t>(count, 1));
    // A pick takes about as long as four comparisons of each element.
    const bool isPickedSooner = 8 * k <= count && rows.dim(0) > manyComparisons / (count * count);
    if (count <= longestCounted && !isPickedSooner)
      return byCounting(k);
    return 4 * k <= rounds * (rounds + 1) ? byPicking(k) : bySorting(k);
  }

private:
  NodeView &n;
  Expr rows;
  bool largest;

  Expr index(ArrayRef<int64_t> shape, int64_t dim) {
    return nn::iota(n.builder, n.getLoc(), RankedTensorType::get(shape, n.builder.getI32Type()), dim);
  }
  Expr wide(Expr positions) { return nn::cast(positions, n.builder.getI64Type()); }
  Expr beats(Expr a, Expr b) { return largest ? nn::greater(a, b) : nn::less(a, b); }
  /// Whether value `a` at position `i` stands before `b` at `j`.
  Expr before(Expr a, Expr i, Expr b, Expr j) {
    return nn::logicalOr(beats(a, b), nn::logicalAnd(nn::equal(a, b), nn::less(i, j)));
  }

  /// Each element's rank is the number of those before it: n² comparisons, which fuse.
  Expr byCounting(int64_t k) {
    int64_t count = rows.dim(1);
    Shape pairs{rows.dim(0), count, count}, picks{rows.dim(0), k, count};
    Expr mine = nn::broadcast(rows, pairs, {0, 1}), other = nn::broadcast(rows, pairs, {0, 2});
    Expr earlier = before(other, index(pairs, 2), mine, index(pairs, 1));
    Expr rank = nn::sum(nn::cast(earlier, n.builder.getI32Type()), {2});
    Expr hit = nn::equal(nn::broadcast(rank, picks, {0, 2}), index(picks, 1));
    return wide(nn::sum(nn::cast(hit, n.builder.getI32Type()) * index(picks, 2), {2}));
  }

  /// The best of those that stand after the last one picked, k times.
  Expr byPicking(int64_t k) {
    int64_t samples = rows.dim(0), count = rows.dim(1);
    Shape all(rows.shape());
    Expr place = index(all, 1), value, position;
    SmallVector<Expr> picks;
    auto spread = [&](Expr x) { return nn::broadcast(x, all, {0}); };
    // What has been picked counts as the worst of its row, and is told apart from that one by its position.
    const Expr worst = spread(largest ? nn::minimum(rows, {1}) : nn::maximum(rows, {1}));
    for (int64_t i = 0; i < k; ++i) {
      Expr after = i ? before(spread(value), spread(position), rows, place) : Expr();
      Expr left = i ? nn::select(after, rows, worst) : rows;
      value = largest ? nn::maximum(left, {1}) : nn::minimum(left, {1});
      Expr hit = nn::equal(rows, spread(value));
      if (i)
        hit = nn::logicalAnd(hit, after);
      position = nn::minimum(nn::select(hit, place, place.like(double(count - 1))), {1});
      picks.push_back(nn::reshape(position, {samples, 1}));
    }
    return wide(k == 1 ? picks.front() : nn::concat(picks, 1));
  }

  /// Batcher's bitonic network: log₂²(n) / 2 rounds in which every element meets one other.
  Expr bySorting(int64_t k) {
    int64_t samples = rows.dim(0), count = rows.dim(1), size = int64_t(llvm::PowerOf2Ceil(uint64_t(count)));
    Expr value = rows;
    if (size > count) { // filled up with the worst of each row, at later positions
      Expr worst = largest ? nn::minimum(rows, {1}) : nn::maximum(rows, {1});
      value = nn::concat({value, nn::broadcast(worst, {samples, size - count}, {0})}, 1);
    }
    Expr position = index({samples, size}, 1);
    // Elements of [blocks, halves, stride] meet their mirror images along `mirrored`.
    auto round = [&](int64_t stride, ArrayRef<int64_t> mirrored) {
      Shape blocks{samples, size / (2 * stride), 2, stride};
      Expr v = nn::reshape(value, blocks), p = nn::reshape(position, blocks);
      Expr otherV = nn::reverse(v, mirrored), otherP = nn::reverse(p, mirrored);
      Expr isFirst = nn::equal(index(blocks, 2), 0.0);
      Expr swaps = nn::logicalXor(before(v, p, otherV, otherP), isFirst);
      value = nn::reshape(nn::select(swaps, otherV, v), {samples, size});
      position = nn::reshape(nn::select(swaps, otherP, p), {samples, size});
    };
    for (int64_t sorted = 1; sorted < size; sorted *= 2) {
      round(sorted, {2, 3}); // the last of one sorted run meets the first of the next: all rounds point one way
      for (int64_t stride = sorted / 2; stride; stride /= 2)
        round(stride, {2});
    }
    return wide(sliceDim(position, 1, 0, k));
  }
};

LogicalResult topK(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> k = n.knownInt(1, "k"), axis = n.axis(n.attr("axis", -1), x.rank());
  if (failed(k) || failed(axis))
    return failure();
  int64_t count = x.dim(*axis), last = x.rank() - 1;
  if (*k < 0 || *k > count)
    return n.reject("k is " + Twine(*k) + " of " + Twine(count));
  if (count > INT32_MAX / 2)
    return n.refuse("an axis of " + Twine(count) + " elements; up to " + Twine(INT32_MAX / 2) + " are ordered");
  Shape toLast = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
  std::swap(toLast[*axis], toLast[last]);
  Expr rows = nn::transpose(x, toLast);
  int64_t samples = countOf(rows.shape().drop_back());
  Shape result(rows.shape());
  result[last] = *k;
  Expr flat = nn::reshape(rows, {samples, count});
  Expr index = *k && samples ? RowOrder(n, flat, n.attr("largest", 1)).first(*k)
                             : n.splat(n.builder.getI64Type(), {samples, *k}, 0.0);
  n.set(0, nn::transpose(nn::reshape(nn::gatherElements(flat, index, 1), result), toLast));
  n.set(1, nn::transpose(nn::reshape(index, result), toLast));
  return success();
}

} // namespace

void lowtide::addOrderingRules(RuleTable &t) { t.add("TopK", topK); }
