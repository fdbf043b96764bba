//===- Expr.cpp - tensor expressions that build nn ops ----------*- C++ -*-===//
//
// Operators and functions on tensors.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"

using namespace mlir;
using namespace lowtide::nn;

template <typename Op, typename... Args>
static Expr build(Expr at, Args &&...args) {
  auto op = Op::create(at.getBuilder(), at.getLoc(), std::forward<Args>(args)...);
  return at.with(op->getResult(0));
}

static RankedTensorType withShape(Expr x, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, x.elementType());
}

Expr lowtide::nn::splat(OpBuilder &builder, Location loc, RankedTensorType type, double value) {
  Type element = type.getElementType();
  Attribute scalar;
  if (isa<FloatType>(element)) {
    scalar = FloatAttr::get(element, value);
  } else {
    APInt bits(element.getIntOrFloatBitWidth(), static_cast<uint64_t>(static_cast<int64_t>(value)), false,
               /*implicitTrunc=*/true);
    scalar = IntegerAttr::get(element, bits);
  }
  auto op = ConstantOp::create(builder, loc, type, cast<ElementsAttr>(DenseElementsAttr::get(type, scalar)));
  return Expr(builder, loc, op.getY());
}

Expr Expr::like(double value) const { return splat(getBuilder(), getLoc(), type(), value); }

Expr lowtide::nn::operator+(Expr a, Expr b) { return build<AddOp>(a, a.get(), b.get()); }
Expr lowtide::nn::operator-(Expr a, Expr b) { return build<SubOp>(a, a.get(), b.get()); }
Expr lowtide::nn::operator*(Expr a, Expr b) { return build<MulOp>(a, a.get(), b.get()); }
Expr lowtide::nn::operator/(Expr a, Expr b) { return build<DivOp>(a, a.get(), b.get()); }
Expr lowtide::nn::operator-(Expr a) { return build<NegOp>(a, a.get()); }
Expr lowtide::nn::operator+(Expr a, double b) { return a + a.like(b); }
Expr lowtide::nn::operator+(double a, Expr b) { return b.like(a) + b; }
Expr lowtide::nn::operator-(Expr a, double b) { return a - a.like(b); }
Expr lowtide::nn::operator-(double a, Expr b) { return b.like(a) - b; }
Expr lowtide::nn::operator*(Expr a, double b) { return a * a.like(b); }
Expr lowtide::nn::operator*(double a, Expr b) { return b.like(a) * b; }
Expr lowtide::nn::operator/(Expr a, double b) { return a / a.like(b); }
Expr lowtide::nn::operator/(double a, Expr b) { return b.like(a) / b; }

Expr lowtide::nn::exp(Expr x) { return build<ExpOp>(x, x.get()); }
Expr lowtide::nn::log(Expr x) { return build<LogOp>(x, x.get()); }
Expr lowtide::nn::tanh(Expr x) { return build<TanhOp>(x, x.get()); }
Expr lowtide::nn::relu(Expr x) { return build<ReluOp>(x, x.get()); }

Expr lowtide::nn::cast(Expr x, Type elementType) {
  if (x.elementType() == elementType)
    return x;
  return build<CastOp>(x, RankedTensorType::get(x.shape(), elementType), x.get());
}

static Expr compare(ComparePredicate predicate, Expr a, Expr b) {
  auto type = RankedTensorType::get(a.shape(), a.getBuilder().getI1Type());
  return build<CompareOp>(a, type, predicate, a.get(), b.get());
}
Expr lowtide::nn::equal(Expr a, Expr b) { return compare(ComparePredicate::eq, a, b); }
Expr lowtide::nn::greater(Expr a, Expr b) { return compare(ComparePredicate::gt, a, b); }
Expr lowtide::nn::greater(Expr a, double b) { return greater(a, a.like(b)); }
Expr lowtide::nn::less(Expr a, Expr b) { return compare(ComparePredicate::lt, a, b); }
Expr lowtide::nn::select(Expr condition, Expr a, Expr b) {
  return build<SelectOp>(a, a.type(), condition.get(), a.get(), b.get());
}

Expr lowtide::nn::broadcast(Expr x, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  if (x.shape() == shape)
    return x;
  return build<BroadcastOp>(x, withShape(x, shape), x.get(), dims);
}

Expr lowtide::nn::broadcastTo(Expr x, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> dims;
  for (int64_t i = 0, e = x.rank(); i < e; ++i)
    dims.push_back(static_cast<int64_t>(shape.size()) - e + i);
  return broadcast(x, shape, dims);
}

Expr lowtide::nn::reshape(Expr x, ArrayRef<int64_t> shape) {
  if (x.shape() == shape)
    return x;
  return build<ReshapeOp>(x, withShape(x, shape), x.get());
}

Expr lowtide::nn::transpose(Expr x, ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape;
  bool identity = true;
  for (auto [i, p] : llvm::enumerate(permutation)) {
    shape.push_back(x.dim(p));
    identity &= static_cast<int64_t>(i) == p;
  }
  if (identity)
    return x;
  return build<TransposeOp>(x, withShape(x, shape), x.get(), permutation);
}

static SmallVector<int64_t> reducedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (auto [i, extent] : llvm::enumerate(shape))
    if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
      kept.push_back(extent);
  return kept;
}

template <typename Op>
static Expr reduce(Expr x, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return x;
  return build<Op>(x, withShape(x, reducedShape(x.shape(), dims)), x.get(), dims);
}
Expr lowtide::nn::sum(Expr x, ArrayRef<int64_t> dims) { return reduce<ReduceSumOp>(x, dims); }
Expr lowtide::nn::maximum(Expr x, ArrayRef<int64_t> dims) { return reduce<ReduceMaxOp>(x, dims); }

Expr lowtide::nn::unreduce(Expr reduced, RankedTensorType from, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (!llvm::is_contained(dims, i))
      kept.push_back(i);
  return broadcast(reduced, from.getShape(), kept);
}

Expr lowtide::nn::dot(Expr a, Expr b, bool transposeA, bool transposeB) {
  SmallVector<int64_t> shape(a.shape());
  int64_t rank = a.rank();
  shape[rank - 2] = a.dim(transposeA ? -1 : -2);
  shape[rank - 1] = b.dim(transposeB ? -2 : -1);
  return build<DotOp>(a, withShape(a, shape), a.get(), b.get(), transposeA, transposeB);
}
