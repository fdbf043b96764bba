//===- GpuTransposeEmitter.cpp - transposes through shared memory -*- C++ -*-===//
//
// Neighbouring threads read neighbours in the operand and write neighbours in the result, each 16 bytes of them where
// both last dimensions are multiples of that. A row of the tile has one element more than its side, so that what is
// read across rows lies in different banks.
//
//===----------------------------------------------------------------------===//

#include "GpuMovement.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

static constexpr int64_t kThreads = 256;
/// Elements of a side of the tile, and the least that is worth one.
static constexpr int64_t kSide = 32, kLong = 8;
/// Threads beside one another that have neighbours each, and neighbours at most.
static constexpr int64_t kWideThreads = 8, kMaxWidth = 8;

namespace {
/// The two dimensions of the result that a tile has, and the others.
struct TransposeShape {
  ArrayRef<int64_t> extents, permutation;
  int64_t last = -1;  // the result's last one
  int64_t cross = -1; // the operand's last one
  SmallVector<int64_t> others;
  /// Neighbours that a thread reads and writes at once, and elements of a side of the tile.
  int64_t width = 1, side = kSide;

  explicit TransposeShape(nn::TransposeOp op)
      : extents(op.getY().getType().getShape()), permutation(op.getPermutation()) {
    for (int64_t d = 0; d < static_cast<int64_t>(extents.size()); ++d) {
      if (extents[d] == 1)
        continue;
      last = d;
      if (cross < 0 || permutation[d] > permutation[cross])
        cross = d;
    }
    for (int64_t d = 0; d < static_cast<int64_t>(extents.size()); ++d)
      if (d != last && d != cross)
        others.push_back(d);
    const int64_t wide = std::min<int64_t>(16 / elementBytes(op.getY().getType().getElementType()), kMaxWidth);
    if (wide * kWideThreads >= kSide && last >= 0 && extents[last] % wide == 0 && extents[cross] % wide == 0) {
      width = wide;
      side = wide * kWideThreads;
    }
  }
  SmallVector<int64_t> otherExtents() const {
    return llvm::map_to_vector(others, [&](int64_t d) { return extents[d]; });
  }
  int64_t tiles(int64_t d) const { return llvm::divideCeil(extents[d], side); }
  int64_t blocks() const {
    int64_t count = tiles(last) * tiles(cross);
    for (int64_t extent : otherExtents())
      count *= extent;
    return count;
  }
};
} // namespace

nn::TransposeOp codegen::getTileTranspose(nn::KernelOp kernel) {
  nn::TransposeOp found = getSoleTranspose(kernel);
  if (!found)
    return {};
  TransposeShape shape(found);
  // A few elements beside one another are read together anyway.
  auto isLong = [&](int64_t d) { return shape.extents[d] >= kLong; };
  bool worth = shape.last >= 0 && shape.last != shape.cross && isLong(shape.last) && isLong(shape.cross);
  return worth ? found : nn::TransposeOp();
}

Grid codegen::getGpuTransposeGrid(nn::TransposeOp op) { return {TransposeShape(op).blocks(), kThreads}; }

void codegen::emitGpuTranspose(KernelContext &context, nn::TransposeOp op) {
  KernelFunction &function = context.function;
  RegionEvaluator &evaluator = context.evaluator;
  TransposeShape shape(op);
  ScalarBuilder scalars(function.builder, function.loc);
  Type elementType = op.getY().getType().getElementType();
  const int64_t lanes = shape.side / shape.width, rows = kThreads / lanes;
  Value tile = function.shared(elementType, shape.side * (shape.side + 1));
  int64_t outer = shape.blocks() / (shape.tiles(shape.last) * shape.tiles(shape.cross));
  auto place = function.delinearize(function.block, {outer, shape.tiles(shape.cross), shape.tiles(shape.last)});
  SmallVector<Value> otherIndex = function.delinearize(place[0], shape.otherExtents());
  auto parts = function.delinearize(function.thread, {rows, lanes});
  Value side = function.index(shape.side), firstCross = function.mul(place[1], side),
        firstLast = function.mul(place[2], side), firstNeighbour = function.mul(parts[1], function.index(shape.width));

  /// Runs `body` with the index of the result's first element at a place of the tile, if there is one.
  auto at = [&](Value inCross, Value inLast, function_ref<void(SmallVector<Value> index)> body) {
    SmallVector<Value> index(shape.extents.size());
    for (auto [d, i] : llvm::zip_equal(shape.others, otherIndex))
      index[d] = i;
    index[shape.cross] = function.add(firstCross, inCross);
    index[shape.last] = function.add(firstLast, inLast);
    Value inside;
    for (int64_t d : {shape.cross, shape.last})
      if (shape.extents[d] % shape.side) {
        Value here = scalars.compare(Compare::LT, index[d], function.index(shape.extents[d]));
        inside = inside ? scalars.logicalAnd(inside, here) : here;
      }
    if (!inside)
      return body(index);
    scf::IfOp::create(function.builder, function.loc, inside, [&](OpBuilder &builder, Location loc) {
      RegionEvaluator::Scope scope(evaluator);
      body(index);
      scf::YieldOp::create(builder, loc);
    });
  };
  auto inTile = [&](Value inLast, Value inCross) {
    return function.add(function.mul(inLast, function.index(shape.side + 1)), inCross);
  };
  auto neighbour = [&](int64_t number) { return function.add(firstNeighbour, function.index(number)); };
  for (int64_t row = 0; row < shape.side; row += rows) {
    Value inLast = function.add(parts[0], function.index(row));
    at(firstNeighbour, inLast, [&](SmallVector<Value> index) {
      SmallVector<Value> elements;
      for (int64_t i = 0; i < shape.width; ++i) {
        index[shape.cross] = function.add(firstCross, neighbour(i));
        SmallVector<Value> source(index.size());
        for (auto [d, from] : llvm::enumerate(shape.permutation))
          source[from] = index[d];
        elements.push_back(evaluator.element(op.getX(), source));
      }
      for (auto [i, element] : llvm::enumerate(elements))
        function.store(tile, elementType, inTile(inLast, neighbour(int64_t(i))), element);
    });
  }
  function.barrier();
  for (int64_t row = 0; row < shape.side; row += rows) {
    Value inCross = function.add(parts[0], function.index(row));
    at(inCross, firstNeighbour, [&](SmallVector<Value> index) {
      SmallVector<Value> elements;
      for (int64_t i = 0; i < shape.width; ++i)
        elements.push_back(function.load(tile, elementType, inTile(neighbour(i), inCross)));
      for (auto [i, element] : llvm::enumerate(elements)) {
        index[shape.last] = function.add(firstLast, neighbour(int64_t(i)));
        function.store(context.getResultPointer(0), elementType, function.linearize(index, shape.extents), element);
      }
    });
  }
}
