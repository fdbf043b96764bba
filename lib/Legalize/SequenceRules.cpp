//===- SequenceRules.cpp - sequences as compile-time lists ----------------===//
//
// Rules for operators on sequences of tensors. Lengths are static, so that every sequence is a list of values.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

const SmallVector<Value> *sequence(NodeView &n, unsigned i) {
  if (!n.has(i) || !n.meaning(i).sequence) {
    (void)n.reject("operand " + Twine(i) + " must be a sequence");
    return nullptr;
  }
  return &*n.meaning(i).sequence;
}

/// A position known when compiling, counted from the front; `size` itself is allowed for insertion.
FailureOr<int64_t> position(NodeView &n, unsigned i, int64_t size, int64_t limit) {
  FailureOr<int64_t> given = n.knownInt(i, "the position");
  if (failed(given))
    return failure();
  int64_t at = *given < 0 ? *given + size : *given;
  if (at < 0 || at >= limit) {
    (void)n.reject("position " + Twine(*given) + " in a sequence of " + Twine(size));
    return failure();
  }
  return at;
}

LogicalResult construct(NodeView &n) {
  if (failed(n.need(n.size())))
    return failure();
  SmallVector<Value> list;
  for (unsigned i = 0; i < n.size(); ++i)
    list.push_back(n.in(i));
  n.setSequence(0, list);
  return success();
}

LogicalResult empty(NodeView &n) {
  n.setSequence(0, {});
  return success();
}

LogicalResult at(NodeView &n) {
  const SmallVector<Value> *list = sequence(n, 0);
  if (!list)
    return failure();
  FailureOr<int64_t> i = position(n, 1, list->size(), list->size());
  if (failed(i))
    return failure();
  n.set(0, (*list)[*i]);
  return success();
}

LogicalResult length(NodeView &n) {
  const SmallVector<Value> *list = sequence(n, 0);
  if (!list)
    return failure();
  n.set(0, nn::reshape(n.ints({int64_t(list->size())}), {}));
  return success();
}

LogicalResult insert(NodeView &n) {
  const SmallVector<Value> *list = sequence(n, 0);
  if (!list || !n.has(1) || !n.meaning(1).tensor)
    return failure();
  SmallVector<Value> longer = *list;
  FailureOr<int64_t> i = int64_t(longer.size());
  if (n.has(2))
    i = position(n, 2, longer.size(), longer.size() + 1);
  if (failed(i))
    return failure();
  longer.insert(longer.begin() + *i, n.meaning(1).tensor);
  n.setSequence(0, longer);
  return success();
}

LogicalResult erase(NodeView &n) {
  const SmallVector<Value> *list = sequence(n, 0);
  if (!list)
    return failure();
  SmallVector<Value> shorter = *list;
  FailureOr<int64_t> i = int64_t(shorter.size()) - 1;
  if (n.has(1))
    i = position(n, 1, shorter.size(), shorter.size());
  if (failed(i))
    return failure();
  if (shorter.empty())
    return n.reject("the sequence is empty");
  shorter.erase(shorter.begin() + *i);
  n.setSequence(0, shorter);
  return success();
}

LogicalResult split(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", 0), x.rank());
  if (failed(axis))
    return failure();
  bool keeps = n.has(1) || n.attr("keepdims", 1);
  Shape sizes;
  if (n.has(1)) {
    FailureOr<Shape> given = n.knownInts(1, "the split");
    if (failed(given))
      return failure();
    if (n.in(1).rank() == 0) { // pieces of this size, the last one smaller
      int64_t each = given->front();
      if (each < 1)
        return n.reject("pieces of size " + Twine(each));
      for (int64_t left = x.dim(*axis); left > 0; left -= each)
        sizes.push_back(std::min(each, left));
    } else {
      sizes = *given;
    }
  } else {
    sizes.assign(x.dim(*axis), 1);
  }
  SmallVector<Value> list;
  int64_t offset = 0;
  for (int64_t size : sizes) {
    if (size < 0 || offset + size > x.dim(*axis))
      return n.reject("the pieces exceed dimension " + Twine(*axis));
    Expr piece = sliceDim(x, *axis, offset, size);
    offset += size;
    if (!keeps) {
      Shape shape(piece.shape());
      shape.erase(shape.begin() + *axis);
      piece = nn::reshape(piece, shape);
    }
    list.push_back(piece);
  }
  n.setSequence(0, list);
  return success();
}

LogicalResult concat(NodeView &n) {
  const SmallVector<Value> *list = sequence(n, 0);
  if (!list)
    return failure();
  if (list->empty())
    return n.reject("the sequence is empty");
  bool stacks = n.attr("new_axis", 0);
  int64_t rank = n.wrap(list->front()).rank();
  FailureOr<int64_t> axis = n.axis(n.attr("axis", 0), rank + stacks);
  if (failed(axis))
    return failure();
  SmallVector<Expr> pieces;
  for (Value value : *list)
    pieces.push_back(stacks ? unsqueeze(n.wrap(value), *axis) : n.wrap(value));
  for (Expr piece : pieces) {
    Shape shape(piece.shape());
    if (piece.rank() == pieces.front().rank())
      shape[*axis] = pieces.front().dim(*axis);
    if (ArrayRef<int64_t>(shape) != pieces.front().shape())
      return n.reject("the tensors differ in another dimension than the joined one");
  }
  n.set(0, pieces.size() == 1 ? pieces.front() : nn::concat(pieces, *axis));
  return success();
}

} // namespace

void lowtide::addSequenceRules(RuleTable &t) {
  t.add("SequenceConstruct", construct);
  t.add("SequenceEmpty", empty);
  t.add("SequenceAt", at);
  t.add("SequenceLength", length);
  t.add("SequenceInsert", insert);
  t.add("SequenceErase", erase);
  t.add("SplitToSequence", split);
  t.add("ConcatFromSequence", concat);
}
