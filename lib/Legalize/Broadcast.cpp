//===- Broadcast.cpp - numpy broadcasting made explicit -------------------===//
//
// Common shapes, element types, size-one dimensions.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Dialect/NN/RecordSupport.h"
#include "lowtide/Legalize/LegalizeContext.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

/// Cuts rows that data select to the number that a tensor next to them has.
static void narrowSelected(NodeView &node, MutableArrayRef<Expr> list) {
  for (Expr &x : list)
    for (Expr other : list)
      for (int64_t back = 1; back <= std::min(x.rank(), other.rank()); ++back)
        if (other.dim(-back) < x.dim(-back) && !node.context.selected.has(other))
          if (Expr cut = node.context.selected.narrowed(x, x.rank() - back, other.dim(-back)))
            x = cut;
}

LogicalResult lowtide::unifyShapes(NodeView &node, MutableArrayRef<Expr> list) {
  if (!node.context.selected.isEmpty())
    narrowSelected(node, list);
  Shape shape;
  for (Expr x : list) {
    FailureOr<Shape> common = broadcastShapes(shape, x.shape());
    if (failed(common)) {
      std::string text;
      llvm::raw_string_ostream os(text);
      llvm::interleaveComma(list, os, [&](Expr e) { os << Value(e).getType(); });
      return node.reject("shapes cannot be broadcast together: " + text);
    }
    shape = *common;
  }
  for (Expr &x : list)
    x = nn::broadcastTo(x, shape);
  return success();
}

FailureOr<SmallVector<Expr>> lowtide::unifiedOperands(NodeView &node, unsigned atLeast) {
  if (failed(node.need(std::max(atLeast, node.size()))))
    return failure();
  SmallVector<Expr> list;
  for (unsigned i = 0; i < node.size(); ++i)
    list.push_back(node.in(i));
  if (failed(unifyShapes(node, list)))
    return failure();
  return list;
}

Type lowtide::elementTypeOf(MLIRContext *context, int64_t onnxType) {
  Builder b(context);
  auto integer = [&](unsigned bits, bool isUnsigned) -> Type {
    return IntegerType::get(context, bits, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  };
  switch (onnxType) { // TensorProto.DataType
  case 1:
    return b.getF32Type();
  case 2:
    return integer(8, true);
  case 3:
    return integer(8, false);
  case 4:
    return integer(16, true);
  case 5:
    return integer(16, false);
  case 6:
    return integer(32, false);
  case 7:
    return integer(64, false);
  case 9:
    return b.getI1Type();
  case 10:
    return b.getF16Type();
  case 11:
    return b.getF64Type();
  case 12:
    return integer(32, true);
  case 13:
    return integer(64, true);
  case 16:
    return b.getBF16Type();
  default:
    return {};
  }
}

Expr lowtide::unsqueeze(Expr x, int64_t dim) {
  Shape shape(x.shape());
  shape.insert(shape.begin() + dim, 1);
  return nn::reshape(x, shape);
}

Expr lowtide::keepDims(Expr reduced, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  Shape kept(shape);
  for (int64_t d : dims)
    kept[d] = 1;
  return nn::reshape(reduced, kept);
}

Shape lowtide::dimsBut(Expr x, int64_t dim) {
  Shape dims = llvm::to_vector(llvm::seq(x.rank()));
  llvm::erase(dims, dim);
  return dims;
}

bool lowtide::isFloat(Expr x) { return isa<FloatType>(x.elementType()); }
bool lowtide::isBool(Expr x) { return x.elementType().isInteger(1); }

Expr lowtide::widened(Expr x) { return nn::cast(x, nn::accumulatorType(x)); }

Expr lowtide::meanOf(Expr x, ArrayRef<int64_t> dims, Expr count) {
  int64_t extent = 1;
  for (int64_t dim : dims)
    extent *= x.dim(dim);
  Expr wide = widened(x), total = dims.empty() ? wide : nn::sum(wide, dims);
  total = count ? total / nn::broadcastTo(nn::cast(count, total.elementType()), total.shape()) : total / double(extent);
  return nn::cast(total, x.elementType());
}
