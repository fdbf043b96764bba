//===- ValueBoxes.cpp - a part of a value, computed alone -----------------===//

#include "lowtide/Dialect/NN/ValueBoxes.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Storage.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static SmallVector<int64_t> dropOnes(ArrayRef<int64_t> shape) {
  return llvm::to_vector(llvm::make_filter_range(shape, [](int64_t size) { return size != 1; }));
}

ValueBox ValueBox::along(ArrayRef<int64_t> shape, int64_t dim, int64_t start, int64_t size) {
  ValueBox box;
  for (auto [d, extent] : llvm::enumerate(shape)) {
    if (extent == 1)
      continue;
    box.shape.push_back(extent);
    box.starts.push_back(int64_t(d) == dim ? start : 0);
    box.sizes.push_back(int64_t(d) == dim ? size : extent);
  }
  return box;
}

/// A lookup of elements in a table of one dimension.
static bool isTableLookup(Operation *op) {
  auto gather = dyn_cast<nn::GatherOp>(op);
  if (!gather || shapeOf(gather.getX()).size() != 1)
    return false;
  Operation *table = gather.getX().getDefiningOp();
  return !table || table->hasTrait<OpTrait::ConstantLike>();
}

static bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value v) { return shapeOf(v) == shapeOf(op->getResult(0)); });
}

static bool isConstant(Operation *op) { return op->hasTrait<OpTrait::ConstantLike>(); }

std::optional<SmallVector<BlockArgument>> nn::findBoxSources(Value value) {
  llvm::SetVector<Value> open;
  open.insert(value);
  SmallVector<BlockArgument> found;
  for (size_t i = 0; i < open.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(open[i])) {
      found.push_back(argument);
      continue;
    }
    Operation *op = open[i].getDefiningOp();
    if (isConstant(op))
      continue;
    if (!isElementwise(op) && !isTableLookup(op) &&
        !isa<nn::ReshapeOp, nn::RegroupOp, nn::TransposeOp, nn::BroadcastOp, nn::ConcatOp, nn::SliceOp>(op))
      return std::nullopt;
    open.insert(op->operand_begin(), op->operand_end());
  }
  return found;
}

namespace {
class BoxBuilder {
public:
  BoxBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  nn::Expr build(Value value, const ValueBox &box) {
    for (const Known &known : made)
      if (known.value == value && known.box.shape == box.shape && known.box.starts == box.starts &&
          known.box.sizes == box.sizes)
        return wrap(known.result);
    nn::Expr result = compute(value, box);
    if (result)
      made.push_back({value, box, result.get()});
    return result;
  }

private:
  struct Known {
    Value value;
    ValueBox box;
    Value result;
  };
  /// Dimensions of the box that are each dimension of a value of that shape; nothing where they do not fit.
  using Groups = SmallVector<SmallVector<unsigned, 2>>;

  nn::Expr wrap(Value value) { return nn::Expr(builder, loc, value); }

  static std::optional<Groups> group(ArrayRef<int64_t> shape, const ValueBox &box) {
    Groups groups;
    unsigned next = 0;
    for (int64_t extent : shape) {
      auto &parts = groups.emplace_back();
      int64_t held = 1;
      while (held < extent && next < box.shape.size()) {
        held *= box.shape[next];
        parts.push_back(next++);
      }
      if (held != extent)
        return std::nullopt;
    }
    return next == box.shape.size() ? std::optional(groups) : std::nullopt;
  }

  static void append(ValueBox &to, const ValueBox &from, ArrayRef<unsigned> dims) {
    for (unsigned d : dims) {
      to.shape.push_back(from.shape[d]);
      to.starts.push_back(from.starts[d]);
      to.sizes.push_back(from.sizes[d]);
    }
  }

  nn::Expr compute(Value value, const ValueBox &box) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return cutLeaf(value, box);
    if (isConstant(op)) {
      DenseElementsAttr elements;
      auto constant = dyn_cast<nn::ConstantOp>(op);
      elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
      if (!elements || !elements.isSplat())
        return cutLeaf(value, box);
      auto type = RankedTensorType::get(box.sizes, elements.getElementType());
      return nn::constant(builder, loc, elements.resizeSplat(type));
    }
    std::optional<Groups> groups = group(shapeOf(value), box);
    if (!groups)
      return {};
    if (isElementwise(op))
      return cutElementwise(op, box);
    if (isTableLookup(op)) {
      auto gather = cast<nn::GatherOp>(op);
      nn::Expr indices = build(gather.getIndices(), box);
      return indices ? nn::gather(wrap(gather.getX()), indices, /*axis=*/0) : nn::Expr();
    }
    if (isa<nn::ReshapeOp, nn::RegroupOp>(op))
      return cutReshape(op->getOperand(0), box);
    if (auto transpose = dyn_cast<nn::TransposeOp>(op))
      return cutTranspose(transpose, box, *groups);
    if (auto broadcast = dyn_cast<nn::BroadcastOp>(op))
      return cutBroadcast(broadcast, box, *groups);
    if (auto concat = dyn_cast<nn::ConcatOp>(op))
      return cutConcat(concat, box, *groups);
    if (auto slice = dyn_cast<nn::SliceOp>(op))
      return cutSlice(slice, box, *groups);
    return {};
  }

  nn::Expr cutLeaf(Value value, const ValueBox &box) {
    nn::Expr whole = nn::reshape(wrap(value), box.shape);
    return box.sizes == box.shape ? whole : nn::slice(whole, box.starts, box.sizes);
  }

  nn::Expr cutElementwise(Operation *op, const ValueBox &box) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      nn::Expr part = build(operand, box);
      if (!part)
        return {};
      operands.push_back(part.get());
    }
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    copy->getResult(0).setType(cast<RankedTensorType>(op->getResult(0).getType()).clone(box.sizes));
    return wrap(copy->getResult(0));
  }

  nn::Expr cutReshape(Value x, const ValueBox &box) {
    std::optional<ValueBox> parts = findRows(x, box);
    if (!parts)
      parts = findParts(x, box);
    nn::Expr part = parts ? build(x, *parts) : nn::Expr();
    return part ? nn::reshape(part, box.sizes) : nn::Expr();
  }

  /// Of a box of whole rows: the rows of `x` that hold the same elements.
  static std::optional<ValueBox> findRows(Value x, const ValueBox &box) {
    ValueBox rows = ValueBox::along(shapeOf(x), 0, 0, 0);
    if (box.shape.empty() || rows.shape.empty() || ArrayRef(box.sizes).drop_front() != ArrayRef(box.shape).drop_front())
      return std::nullopt;
    auto inner = [](const ValueBox &of) {
      return std::accumulate(of.shape.begin() + 1, of.shape.end(), int64_t(1), std::multiplies<>());
    };
    const int64_t from = box.starts[0] * inner(box), count = box.sizes[0] * inner(box), row = inner(rows);
    if (from % row || count % row)
      return std::nullopt;
    rows.starts.assign(rows.shape.size(), 0);
    rows.sizes = rows.shape;
    rows.starts[0] = from / row;
    rows.sizes[0] = count / row;
    return rows;
  }

  /// Both shapes in their common parts; a dimension is cut only where its parts are.
  static std::optional<ValueBox> findParts(Value x, const ValueBox &box) {
    const SmallVector<int64_t> shape = dropOnes(shapeOf(x));
    ValueBox parts;
    size_t j = 0;
    int64_t left = shape.empty() ? 1 : shape[0];
    for (auto [extent, start, size] : llvm::zip_equal(box.shape, box.starts, box.sizes)) {
      int64_t inner = extent, from = start, count = size;
      while (inner > 1) {
        if (j == shape.size())
          return std::nullopt;
        const int64_t part = std::min(inner, left);
        if (inner % part || left % part)
          return std::nullopt;
        inner /= part;
        // The outermost part that is not whole is cut; what lies in it must be whole.
        if (from % inner || count % inner)
          return std::nullopt;
        const bool isWhole = count == inner * part;
        parts.shape.push_back(part);
        parts.starts.push_back(isWhole ? 0 : from / inner);
        parts.sizes.push_back(isWhole ? part : count / inner);
        from = 0, count = inner;
        left /= part;
        if (left == 1 && ++j < shape.size())
          left = shape[j];
      }
    }
    return parts;
  }

  nn::Expr cutTranspose(nn::TransposeOp op, const ValueBox &box, const Groups &groups) {
    ArrayRef<int64_t> permutation = op.getPermutation();
    SmallVector<unsigned> of(permutation.size());
    for (auto [d, from] : llvm::enumerate(permutation))
      of[from] = d;
    ValueBox before;
    SmallVector<unsigned> order; // of the box's dimensions, as x has them
    for (unsigned d : of) {
      append(before, box, groups[d]);
      order.append(groups[d].begin(), groups[d].end());
    }
    nn::Expr part = build(op.getX(), before);
    if (!part)
      return {};
    SmallVector<int64_t> back(order.size());
    for (auto [from, to] : llvm::enumerate(order))
      back[to] = from;
    return nn::transpose(part, back);
  }

  nn::Expr cutBroadcast(nn::BroadcastOp op, const ValueBox &box, const Groups &groups) {
    ValueBox before;
    SmallVector<int64_t> dims;
    for (auto [size, to] : llvm::zip_equal(shapeOf(op.getX()), op.getDims()))
      if (size != 1) {
        append(before, box, groups[to]);
        dims.append(groups[to].begin(), groups[to].end());
      }
    nn::Expr part = build(op.getX(), before);
    return part ? nn::broadcast(part, box.sizes, dims) : nn::Expr();
  }

  nn::Expr cutConcat(nn::ConcatOp op, const ValueBox &box, const Groups &groups) {
    ArrayRef<unsigned> joined = groups[op.getDim()];
    if (joined.size() != 1 || box.sizes[joined[0]] != box.shape[joined[0]])
      return {};
    SmallVector<nn::Expr> parts;
    for (Value x : op.getXs()) {
      const int64_t extent = shapeOf(x)[op.getDim()];
      ValueBox before;
      SmallVector<int64_t> sizes(box.sizes);
      sizes[joined[0]] = extent;
      for (unsigned d = 0; d < box.shape.size(); ++d)
        if (d != joined[0])
          append(before, box, d);
        else if (extent != 1)
          before.shape.push_back(extent), before.starts.push_back(0), before.sizes.push_back(extent);
      nn::Expr part = build(x, before);
      if (!part)
        return {};
      parts.push_back(nn::reshape(part, sizes));
    }
    return nn::concat(parts, joined[0]);
  }

  nn::Expr cutSlice(nn::SliceOp op, const ValueBox &box, const Groups &groups) {
    ValueBox before;
    SmallVector<unsigned> sliced; // of its dimensions, those of which the slice leaves elements out
    for (unsigned d = 0; d < groups.size(); ++d) {
      const int64_t extent = shapeOf(op.getX())[d], kept = shapeOf(op.getY())[d];
      if (extent == kept) {
        append(before, box, groups[d]);
        continue;
      }
      if (op.getStrides()[d] != 1 || groups[d].size() > 1)
        return {};
      const bool isOne = groups[d].empty();
      sliced.push_back(before.shape.size());
      before.shape.push_back(extent);
      before.starts.push_back(op.getStarts()[d] + (isOne ? 0 : box.starts[groups[d][0]]));
      before.sizes.push_back(isOne ? 1 : box.sizes[groups[d][0]]);
    }
    if (nn::Expr part = build(op.getX(), before))
      return nn::reshape(part, box.sizes);
    // Where it ends in the middle of a block: all of these dimensions first.
    ValueBox whole = before;
    SmallVector<int64_t> starts(before.shape.size(), 0);
    for (unsigned d : sliced) {
      starts[d] = before.starts[d];
      whole.starts[d] = 0;
      whole.sizes[d] = whole.shape[d];
    }
    nn::Expr part = build(op.getX(), whole);
    return part ? nn::reshape(nn::slice(part, starts, before.sizes), box.sizes) : nn::Expr();
  }

  OpBuilder &builder;
  Location loc;
  SmallVector<Known> made;
};
} // namespace

nn::Expr nn::buildBox(OpBuilder &builder, Location loc, Value value, const ValueBox &box) {
  return BoxBuilder(builder, loc).build(value, box);
}
