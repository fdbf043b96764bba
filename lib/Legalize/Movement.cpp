//===- Movement.cpp - reshaping, slicing, joining -------------------------===//
//
// Rules for operators that move elements without computing.
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

/// Whether the node makes what PyTorch's old exporter assigns at places (`x[index] = y`), and nothing else: it writes a
/// reshape where the program broadcasts y.
bool isAssigned(NodeView &n) {
  Value result = n.op->getResult(0);
  return n.isOfPyTorch() && !result.use_empty() && llvm::all_of(result.getUses(), [](OpOperand &use) {
           auto reader = dyn_cast<onnx::NodeOp>(use.getOwner());
           return reader && reader.getOpType() == "ScatterND" && use.getOperandNumber() == 2;
         });
}

/// Whether a tensor of shape `from` broadcasts to all of `to`.
bool broadcasts(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  return from.size() <= to.size() && llvm::all_of(llvm::zip(from, to.take_back(from.size())), [](auto dims) {
           return std::get<0>(dims) == 1 || std::get<0>(dims) == std::get<1>(dims);
         });
}

LogicalResult reshapeTo(NodeView &n, Expr x, ArrayRef<int64_t> shape) {
  if (countOf(shape) > countOf(x.shape()) && isAssigned(n) && broadcasts(x.shape(), shape)) {
    n.set(0, nn::broadcastTo(x, shape));
    return success();
  }
  if (countOf(shape) != countOf(x.shape())) {
    std::string to;
    llvm::raw_string_ostream os(to);
    llvm::interleave(shape, os, "x");
    return n.reject("a tensor of " + Twine(countOf(x.shape())) + " elements cannot take the shape " + to);
  }
  n.set(0, nn::reshape(x, shape));
  return success();
}

LogicalResult reshape(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  FailureOr<Shape> shape = n.knownShape(1, "the shape");
  if (failed(shape))
    return failure();
  bool allowZero = n.attr("allowzero", 0);
  int64_t known = 1, wildcard = -1;
  for (auto [i, d] : llvm::enumerate(*shape)) {
    if (d == 0 && !allowZero) {
      if (int64_t(i) >= x.rank())
        return n.reject("the shape copies dimension " + Twine(i) + ", which the operand does not have");
      d = x.dim(i);
    }
    if (d == -1) {
      if (wildcard >= 0)
        return n.reject("the shape has two dimensions to be inferred");
      wildcard = i;
    } else if (d < 0 || (d && known > std::numeric_limits<int64_t>::max() / d)) {
      return n.reject("dimension " + Twine(d) + " is out of range");
    } else {
      known *= d;
    }
  }
  // Groups of rows that data select, as many in each: a dimension of them comes in between.
  auto isFixed = [&](int64_t d) { return !n.sizes || n.sizes->atCapacity[d] == n.sizes->tagged[d]; };
  if (wildcard > 0 && x.rank() && llvm::all_of(llvm::seq(wildcard), isFixed) &&
      countOf(x.shape().drop_front()) == countOf(ArrayRef(*shape).drop_front(wildcard + 1)))
    if (Expr groups = n.context.selected.grouped(x, countOf(ArrayRef(*shape).take_front(wildcard)))) {
      (*shape)[wildcard] = groups.dim(1);
      return reshapeTo(n, groups, *shape);
    }
  if (wildcard >= 0) {
    int64_t count = countOf(x.shape());
    if (known == 0 || count % known)
      return n.reject("a tensor of " + Twine(count) + " elements does not divide into " + Twine(known));
    (*shape)[wildcard] = count / known;
  }
  return reshapeTo(n, x, *shape);
}

LogicalResult flatten(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  int64_t axis = n.attr("axis", 1);
  if (axis < -x.rank() || axis > x.rank())
    return n.reject("axis " + Twine(axis) + " is out of range");
  if (axis < 0)
    axis += x.rank();
  return reshapeTo(n, x, {countOf(x.shape().take_front(axis)), countOf(x.shape().drop_front(axis))});
}

LogicalResult squeeze(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<std::optional<Shape>> given = n.axesOrInput(1, x.rank());
  if (failed(given))
    return failure();
  Shape axes;
  if (*given) {
    axes = **given;
  } else {
    for (int64_t i = 0; i < x.rank(); ++i)
      if (x.dim(i) == 1)
        axes.push_back(i);
  }
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!llvm::is_contained(axes, i))
      shape.push_back(x.dim(i));
    else if (x.dim(i) != 1)
      return n.reject("dimension " + Twine(i) + " has size " + Twine(x.dim(i)) + " and cannot be squeezed");
  }
  return reshapeTo(n, x, shape);
}

LogicalResult unsqueezeRule(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<std::optional<Shape>> given = n.attrOrInput("axes", 1);
  if (failed(given))
    return failure();
  if (!*given)
    return n.reject("there are no axes");
  int64_t rank = x.rank() + (*given)->size();
  FailureOr<Shape> axes = n.axes(**given, rank);
  if (failed(axes))
    return failure();
  Shape shape;
  unsigned next = 0;
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(llvm::is_contained(*axes, i) ? 1 : x.dim(next++));
  return reshapeTo(n, x, shape);
}

LogicalResult transpose(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  Shape reversed;
  for (int64_t i = x.rank(); i-- > 0;)
    reversed.push_back(i);
  FailureOr<Shape> permutation = n.axes(n.attrInts("perm", reversed), x.rank());
  if (failed(permutation))
    return failure();
  if (int64_t(permutation->size()) != x.rank())
    return n.reject("'perm' has " + Twine(permutation->size()) + " entries for " + Twine(x.rank()) + " dimensions");
  n.set(0, nn::transpose(x, *permutation));
  return success();
}

LogicalResult expand(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  FailureOr<Shape> shape = n.knownShape(1, "the shape");
  if (failed(shape))
    return failure();
  // An operand of another size says how many rows data select: it is spread to no more than it has.
  if (n.sizes)
    for (auto [d, here, tagged] : llvm::enumerate(*shape, n.sizes->tagged))
      if (int64_t back = int64_t(d) - int64_t(shape->size()); here != tagged && n.in(0).rank() >= -back)
        if (int64_t own = n.in(0).dim(back); own != 1 && own < here)
          here = n.sizes->atCapacity[d] = tagged = own;
  FailureOr<Shape> common = broadcastShapes(n.in(0).shape(), *shape);
  if (failed(common))
    return n.reject("the operand does not broadcast to the shape");
  n.set(0, nn::broadcastTo(n.in(0), *common));
  return success();
}

LogicalResult tile(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  FailureOr<Shape> repeats = n.knownInts(1, "the number of repeats");
  if (failed(repeats))
    return failure();
  if (int64_t(repeats->size()) != x.rank())
    return n.reject("one repeat for each dimension is expected");
  // [d] → [1, d] → [r, d] → [r · d], for all dimensions at once.
  Shape spread, result, dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    spread.append({(*repeats)[i], x.dim(i)});
    dims.push_back(2 * i + 1);
    result.push_back((*repeats)[i] * x.dim(i));
  }
  if (countOf(spread) < 0)
    return n.reject("the result is too large");
  n.set(0, nn::reshape(nn::broadcast(x, spread, dims), result));
  return success();
}

LogicalResult concat(NodeView &n) {
  SmallVector<Expr> list;
  if (failed(n.need(std::max(1u, n.size()))))
    return failure();
  for (unsigned i = 0; i < n.size(); ++i)
    list.push_back(n.in(i));
  FailureOr<int64_t> axis = n.axis(n.attr("axis", 0), list.front().rank());
  if (failed(axis))
    return failure();
  for (Expr x : list) {
    Shape shape(x.shape());
    if (x.rank() == list.front().rank())
      shape[*axis] = list.front().dim(*axis);
    if (ArrayRef<int64_t>(shape) != list.front().shape() || x.elementType() != list.front().elementType())
      return n.reject("operands differ in another dimension than the joined one");
  }
  // What holds nothing adds nothing: programs begin a list so, or join what may be missing.
  SmallVector<Expr> held;
  llvm::copy_if(list, std::back_inserter(held), [&](Expr x) { return x.dim(*axis) != 0; });
  if (held.empty())
    held.assign(1, list.front());
  n.set(0, held.size() == 1 ? held.front() : nn::concat(held, *axis));
  return success();
}

LogicalResult split(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", 0), x.rank());
  FailureOr<std::optional<Shape>> given = n.attrOrInput("split", 1);
  if (failed(axis) || failed(given))
    return failure();
  Shape sizes;
  if (*given) {
    sizes = **given;
  } else {
    int64_t pieces = n.attr("num_outputs", n.numResults());
    int64_t each = pieces > 0 ? (x.dim(*axis) + pieces - 1) / pieces : 0;
    for (int64_t left = x.dim(*axis), i = 0; i < pieces; ++i, left -= sizes.back())
      sizes.push_back(std::min(each, left));
  }
  if (sizes.size() != n.numResults() || std::accumulate(sizes.begin(), sizes.end(), int64_t(0)) != x.dim(*axis))
    return n.reject("the pieces do not add up to dimension " + Twine(*axis) + " of size " + Twine(x.dim(*axis)));
  int64_t offset = 0;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    n.set(i, sliceDim(x, *axis, offset, size));
    offset += size;
  }
  return success();
}

/// The first `count` elements of dimension `d`, of `capacity` that there may be, where x has fewer than that; `row`: of
/// one row. PyTorch's old exporter cuts what a program assigns to selected rows to their number, also one row that is
/// assigned to all of them. Of anything else there have to be enough: what is missing is NaN.
Expr firstOf(Expr x, int64_t d, int64_t capacity, int64_t row, Expr count) {
  const int64_t extent = x.dim(d);
  Shape shape(x.shape());
  if (extent == 1 || extent == row) {
    shape[d] = capacity;
    Shape repeated(x.shape()), from = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
    repeated.insert(repeated.begin() + d, capacity / extent);
    for (int64_t dim = d; dim < x.rank(); ++dim)
      ++from[dim];
    return nn::reshape(nn::broadcast(x, repeated, from), shape);
  }
  Expr at = positions(x, {capacity}, 0), isThere = nn::less(at, nn::broadcastTo(count, at.shape()));
  return nn::gather(x, nn::select(isThere, at, nn::min(at, double(extent - 1))), d);
}

LogicalResult slice(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  const Sizes *computed = n.has(2) ? n.context.selected.findSizes(n.in(2)) : nullptr;
  FailureOr<std::optional<Shape>> starts = n.attrOrInput("starts", 1), axes = n.axesOrInput(3, x.rank()),
                                  ends =
                                      computed ? std::optional(intsOf(computed->atCapacity)) : n.attrOrInput("ends", 2),
                                  steps = n.attrOrInput("steps", 4);
  if (failed(starts) || failed(ends) || failed(axes) || failed(steps))
    return failure();
  if (!*starts || !*ends)
    return n.reject("starts or ends are missing");
  size_t count = (*starts)->size();
  Shape dims = *axes ? **axes : llvm::to_vector(llvm::seq<int64_t>(0, count));
  Shape strides = *steps ? **steps : Shape(count, 1);
  if (!dims.empty() && *llvm::max_element(dims) >= x.rank())
    return n.reject("there are more starts than dimensions");
  if ((*ends)->size() != count || dims.size() != count || strides.size() != count)
    return n.reject("starts, ends, axes and steps differ in length");
  Shape offset(x.rank(), 0), size(x.shape()), stride(x.rank(), 1), reversed;
  for (size_t i = 0; i < count; ++i) {
    int64_t d = dims[i], extent = x.dim(d), step = strides[i];
    if (step == 0)
      return n.reject("a step is zero");
    auto clampTo = [&](int64_t v, int64_t low, int64_t high) {
      if (v < 0)
        v += extent; // cannot overflow: extent is not negative
      return std::clamp(v, low, high);
    };
    // For a negative step the slice runs down; it is taken upwards and reversed.
    int64_t start = step > 0 ? clampTo((**starts)[i], 0, extent) : clampTo((**starts)[i], -1, extent - 1);
    int64_t end = step > 0 ? clampTo((**ends)[i], 0, extent) : clampTo((**ends)[i], -1, extent - 1);
    int64_t length = step > 0 ? end - start : start - end;
    uint64_t pace = step > 0 ? uint64_t(step) : -uint64_t(step);
    int64_t elements = length <= 0 ? 0 : int64_t((uint64_t(length) - 1) / pace + 1);
    size[d] = elements;
    stride[d] = elements > 1 ? int64_t(pace) : 1;
    offset[d] = step > 0 ? std::min(start, extent) : elements ? start - (elements - 1) * stride[d] : 0;
    if (step < 0 && elements > 1)
      reversed.push_back(d);
  }
  Expr y = nn::slice(x, offset, size, stride);
  if (computed) {
    // The first rows, as many as data select: there may be room for more than the operand has.
    n.sizes = {size, size};
    const Shape rows = intsOf(computed->atOne);
    for (auto [i, d, end, tagged] : llvm::enumerate(dims, **ends, intsOf(computed->tagged))) {
      if (end == tagged)
        continue;
      const bool isShort = size[d] == x.dim(d) && x.dim(d) < end && x.dim(d) > 0 && !n.context.selected.has(x);
      if (offset[d] != 0 || (size[d] != end && !isShort))
        return n.refuse("its end is the number of rows that data select: it must begin at 0, and step by 1");
      if (isShort)
        y = firstOf(y, d, end, rows[i], nn::reshape(sliceDim(n.in(2), 0, int64_t(i), 1), {}));
      n.sizes->atCapacity[d] = end;
      n.sizes->tagged[d] = tagged;
    }
  }
  n.set(0, reversed.empty() ? y : nn::reverse(y, reversed));
  return success();
}

/// [N, C, H, W] ↔ blocks; both are a reshape, a transpose and a reshape.
LogicalResult depthToSpace(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  int64_t block = n.attr("blocksize", 1);
  if (x.rank() != 4 || block < 1 || x.dim(1) % (block * block))
    return n.reject("[N, C·b², H, W] is expected");
  int64_t depth = x.dim(1) / (block * block), h = x.dim(2), w = x.dim(3);
  bool columnRowDepth = n.attrString("mode", "DCR") == "CRD";
  Expr y = columnRowDepth ? nn::transpose(nn::reshape(x, {x.dim(0), depth, block, block, h, w}), {0, 1, 4, 2, 5, 3})
                          : nn::transpose(nn::reshape(x, {x.dim(0), block, block, depth, h, w}), {0, 3, 4, 1, 5, 2});
  n.set(0, nn::reshape(y, {x.dim(0), depth, h * block, w * block}));
  return success();
}

LogicalResult spaceToDepth(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  int64_t block = n.attr("blocksize", 1);
  if (x.rank() != 4 || block < 1 || x.dim(2) % block || x.dim(3) % block)
    return n.reject("[N, C, H·b, W·b] is expected");
  int64_t h = x.dim(2) / block, w = x.dim(3) / block;
  bool columnRowDepth = n.attrString("mode", "DCR") == "CRD";
  Expr blocks = nn::reshape(x, {x.dim(0), x.dim(1), h, block, w, block});
  Expr y = nn::transpose(blocks, columnRowDepth ? Shape{0, 1, 3, 5, 2, 4} : Shape{0, 3, 5, 1, 2, 4});
  n.set(0, nn::reshape(y, {x.dim(0), x.dim(1) * block * block, h, w}));
  return success();
}

} // namespace

void lowtide::addMovementRules(RuleTable &t) {
  t.add("Reshape", reshape);
  t.add("Flatten", flatten);
  t.add("Squeeze", squeeze);
  t.add("Unsqueeze", unsqueezeRule);
  t.add("Transpose", transpose);
  t.add("Expand", expand);
  t.add("Tile", tile);
  t.add("Concat", concat);
  t.add("Split", split);
  t.add("Slice", slice);
  t.add("DepthToSpace", depthToSpace);
  t.add("SpaceToDepth", spaceToDepth);
}
