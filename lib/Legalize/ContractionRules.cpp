//===- ContractionRules.cpp - matrix products -----------------------------===//
//
// Rules for MatMul, Gemm and Einsum.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/MatMul.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

/// When `x` is a transpose of its last two dimensions, the operand of that transpose: the product reads it as it lies.
static Expr untransposed(Expr x, bool &transposed) {
  transposed = false;
  auto op = x.get().getDefiningOp<nn::TransposeOp>();
  if (!op)
    return x;
  ArrayRef<int64_t> permutation = op.getPermutation();
  int64_t rank = permutation.size();
  for (int64_t i = 0; i < rank - 2; ++i)
    if (permutation[i] != i)
      return x;
  if (rank < 2 || permutation[rank - 2] != rank - 1)
    return x;
  transposed = true;
  return x.with(op.getX());
}

FailureOr<Expr> lowtide::matmul(Expr a, Expr b) {
  if (a.rank() == 0 || b.rank() == 0)
    return failure();
  bool vectorA = a.rank() == 1, vectorB = b.rank() == 1;
  if (vectorA)
    a = nn::reshape(a, {1, a.dim(0)});
  if (vectorB)
    b = nn::reshape(b, {b.dim(0), 1});
  int64_t rows = a.dim(-2), inner = a.dim(-1), columns = b.dim(-1);
  if (inner != b.dim(-2))
    return failure();
  FailureOr<Shape> batch = broadcastShapes(a.shape().drop_back(2), b.shape().drop_back(2));
  if (failed(batch))
    return failure();
  Shape shape = *batch;
  if (!vectorA)
    shape.push_back(rows);
  if (!vectorB)
    shape.push_back(columns);

  if (b.rank() == 2) {
    bool transposeB;
    Expr matrix = untransposed(b, transposeB);
    Expr flat = nn::reshape(a, {countOf(a.shape().drop_back()), inner});
    return nn::reshape(nn::dot(flat, matrix, false, transposeB), shape);
  }
  bool transposeA, transposeB;
  Expr left = untransposed(a, transposeA), right = untransposed(b, transposeB);
  auto spread = [&](Expr x) {
    Shape full = *batch;
    full.append({x.dim(-2), x.dim(-1)});
    return nn::broadcastTo(x, full);
  };
  return nn::reshape(nn::dot(spread(left), spread(right), transposeA, transposeB), shape);
}

namespace {

LogicalResult matMul(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr a = n.in(0), b = n.in(1);
  if (a.elementType() != b.elementType())
    return n.reject("operands differ in type");
  FailureOr<Expr> y = matmul(a, b);
  if (failed(y))
    return n.reject("matrices do not fit together");
  n.set(0, *y);
  return success();
}

LogicalResult gemm(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr a = n.in(0), b = n.in(1);
  bool transA = n.attr("transA", 0), transB = n.attr("transB", 0);
  if (a.rank() != 2 || b.rank() != 2 || a.dim(transA ? 0 : 1) != b.dim(transB ? 1 : 0))
    return n.reject("matrices do not fit together");
  bool turnA, turnB;
  a = untransposed(a, turnA);
  b = untransposed(b, turnB);
  Expr y = nn::dot(a, b, transA != turnA, transB != turnB);
  double alpha = n.attrFloat("alpha", 1.0), beta = n.attrFloat("beta", 1.0);
  if (alpha != 1.0)
    y = y * alpha;
  if (n.has(2) && beta != 0.0) {
    FailureOr<Shape> common = broadcastShapes(y.shape(), n.in(2).shape());
    if (failed(common) || ArrayRef<int64_t>(*common) != y.shape())
      return n.reject("the third operand does not broadcast to the product");
    Expr c = n.in(2);
    y = y + nn::broadcastTo(beta == 1.0 ? c : c * beta, y.shape());
  }
  n.set(0, y);
  return success();
}

/// A tensor with a letter per dimension.
struct Lettered {
  Expr value;
  std::string letters;
};

Lettered arrange(Lettered x, StringRef order) {
  Shape permutation;
  for (char c : order)
    permutation.push_back(x.letters.find(c));
  return {nn::transpose(x.value, permutation), order.str()};
}

Lettered sumOut(Lettered x, StringRef keep) {
  Shape dims;
  std::string letters;
  for (auto [i, c] : llvm::enumerate(x.letters)) {
    if (keep.contains(c))
      letters += c;
    else
      dims.push_back(i);
  }
  return {dims.empty() ? x.value : nn::sum(x.value, dims), letters};
}

/// A letter that stands twice means the diagonal: of the n · n elements of the two dimensions every (n + 1)-th.
/// Fails where they differ.
FailureOr<Lettered> takeDiagonals(Lettered x) {
  for (size_t i = 0; i < x.letters.size(); ++i) {
    for (size_t j = x.letters.find(x.letters[i], i + 1); j != std::string::npos;
         j = x.letters.find(x.letters[i], i + 1)) {
      const int64_t n = x.value.dim(i);
      if (x.value.dim(j) != n)
        return failure();
      Shape order = llvm::to_vector(llvm::seq<int64_t>(x.value.rank()));
      order.erase(order.begin() + j);
      order.insert(order.begin() + i + 1, j);
      Shape flat(x.value.shape());
      flat.erase(flat.begin() + j);
      Shape sizes(flat), starts(flat.size(), 0), strides(flat.size(), 1);
      flat[i] = n * n;
      strides[i] = n + 1;
      x.value = nn::slice(nn::reshape(nn::transpose(x.value, order), flat), starts, sizes, strides);
      x.letters.erase(j, 1);
    }
  }
  return x;
}

/// Contracts two operands, keeping the letters in `keep`: [batch, left, inner] × [batch, inner, right].
Lettered contract(Lettered a, Lettered b, StringRef keep) {
  a = sumOut(a, keep.str() + b.letters);
  b = sumOut(b, keep.str() + a.letters);
  std::string batch, left, inner, right;
  for (char c : a.letters) {
    bool shared = b.letters.find(c) != std::string::npos;
    (shared ? (keep.contains(c) ? batch : inner) : left) += c;
  }
  for (char c : b.letters)
    if (a.letters.find(c) == std::string::npos)
      right += c;
  std::map<char, int64_t> extent;
  for (const Lettered *x : {&a, &b})
    for (auto [i, c] : llvm::enumerate(x->letters))
      extent[c] = std::max(extent[c], x->value.dim(i));
  auto sizes = [&](StringRef letters) {
    Shape shape;
    for (char c : letters)
      shape.push_back(extent[c]);
    return shape;
  };
  auto count = [&](StringRef letters) { return countOf(sizes(letters)); };
  Lettered l = arrange(a, batch + left + inner), r = arrange(b, batch + inner + right);
  // A dimension of size one stands for any extent.
  l.value = nn::broadcastTo(l.value, sizes(l.letters));
  r.value = nn::broadcastTo(r.value, sizes(r.letters));
  Expr y = nn::dot(nn::reshape(l.value, {count(batch), count(left), count(inner)}),
                   nn::reshape(r.value, {count(batch), count(inner), count(right)}));
  std::string letters = batch + left + right;
  return {nn::reshape(y, sizes(letters)), letters};
}

LogicalResult einsum(NodeView &n) {
  if (failed(n.need(std::max(1u, n.size()))))
    return failure();
  std::string equation = n.attrString("equation", "");
  llvm::erase(equation, ' ');
  auto [inputText, outputText] = StringRef(equation).split("->");
  bool explicitOutput = StringRef(equation).contains("->");
  SmallVector<StringRef> terms;
  inputText.split(terms, ',');
  if (terms.size() != n.size())
    return n.reject("the equation '" + equation + "' has " + Twine(terms.size()) + " terms for " + Twine(n.size()) +
                    " operands");
  // The dimensions under an ellipsis get the letters '0', '1' … from the right.
  SmallVector<Lettered> list;
  std::string ellipsis;
  std::map<char, unsigned> occurrences;
  for (auto [i, term] : llvm::enumerate(terms)) {
    Expr x = n.in(i);
    auto [before, after] = term.split("...");
    std::string letters = before.str();
    if (term.contains("...")) {
      int64_t covered = x.rank() - int64_t(before.size() + after.size());
      if (covered < 0 || covered > 10)
        return n.reject("term '" + term + "' does not fit an operand of rank " + Twine(x.rank()));
      std::string digits;
      for (int64_t d = covered; d-- > 0;)
        digits += char('0' + d);
      if (digits.size() > ellipsis.size())
        ellipsis = digits;
      letters += digits + after.str();
    }
    if (int64_t(letters.size()) != x.rank())
      return n.reject("term '" + term + "' does not fit an operand of rank " + Twine(x.rank()));
    for (char c : letters)
      ++occurrences[c];
    list.push_back({x, letters});
  }
  std::string output;
  if (explicitOutput) {
    auto [before, after] = outputText.split("...");
    output = before.str() + (outputText.contains("...") ? ellipsis : "") + after.str();
  } else {
    output = ellipsis;
    for (auto [c, times] : occurrences)
      if (times == 1 && !isdigit(c))
        output += c;
  }
  for (char c : output)
    if (!occurrences.count(c))
      return n.reject("the result names '" + Twine(c) + "', which no operand has");
  for (auto [i, x] : llvm::enumerate(list)) {
    FailureOr<Lettered> taken = takeDiagonals(x);
    if (failed(taken))
      return n.reject("term '" + terms[i] + "' names two dimensions of different extents by one letter");
    x = *taken;
  }
  Lettered result = list.front();
  for (size_t i = 1; i < list.size(); ++i) {
    std::string keep = output;
    for (const Lettered &later : ArrayRef(list).drop_front(i + 1))
      keep += later.letters;
    result = contract(result, list[i], keep);
  }
  n.set(0, arrange(sumOut(result, output), output).value);
  return success();
}

} // namespace

void lowtide::addContractionRules(RuleTable &t) {
  t.add("MatMul", matMul, SelectedMeet::Yes);
  t.add("Gemm", gemm, SelectedMeet::Yes);
  t.add("Einsum", einsum, SelectedMeet::Yes);
}
