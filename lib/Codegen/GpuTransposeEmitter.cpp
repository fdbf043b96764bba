//===- GpuTransposeEmitter.cpp - transposes through shared memory -*- C++ -*-===//
//
// Neighbouring threads read neighbours in the operand and write neighbours in the result. A row of the tile has 33
// elements, so that a column of it lies in 32 different banks.
//
//===----------------------------------------------------------------------===//

#include "GpuMovement.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

static constexpr int64_t kTile = 32, kRows = 8;

namespace {
/// The two dimensions of the result that a tile has, and the others.
struct TransposeShape {
  ArrayRef<int64_t> extents, permutation;
  int64_t last = -1;  // the result's last one
  int64_t cross = -1; // the operand's last one
  SmallVector<int64_t> others;

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
  }
  SmallVector<int64_t> otherExtents() const {
    return llvm::map_to_vector(others, [&](int64_t d) { return extents[d]; });
  }
  int64_t tiles(int64_t d) const { return llvm::divideCeil(extents[d], kTile); }
  int64_t blocks() const {
    int64_t count = tiles(last) * tiles(cross);
    for (int64_t extent : otherExtents())
      count *= extent;
    return count;
  }
};
} // namespace

nn::TransposeOp codegen::getTileTranspose(nn::KernelOp kernel) {
  nn::TransposeOp found;
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (found || !isa<nn::TransposeOp>(op))
      return {};
    found = cast<nn::TransposeOp>(op);
  }
  if (!found || !isa<BlockArgument>(found.getX()) || kernel.getNumResults() != 1)
    return {};
  TransposeShape shape(found);
  // A few elements beside one another are read together anyway.
  auto isLong = [&](int64_t d) { return shape.extents[d] >= kRows; };
  bool worth = shape.last >= 0 && shape.last != shape.cross && isLong(shape.last) && isLong(shape.cross);
  return worth ? found : nn::TransposeOp();
}

Grid codegen::getGpuTransposeGrid(nn::TransposeOp op) { return {TransposeShape(op).blocks(), kTile * kRows}; }

void codegen::emitGpuTranspose(KernelContext &context, nn::TransposeOp op) {
  KernelFunction &function = context.function;
  RegionEvaluator &evaluator = context.evaluator;
  TransposeShape shape(op);
  ScalarBuilder scalars(function.builder, function.loc);
  Type elementType = op.getY().getType().getElementType();
  Value tile = function.shared(elementType, kTile * (kTile + 1));
  int64_t outer = shape.blocks() / (shape.tiles(shape.last) * shape.tiles(shape.cross));
  auto place = function.delinearize(function.block, {outer, shape.tiles(shape.cross), shape.tiles(shape.last)});
  SmallVector<Value> otherIndex = function.delinearize(place[0], shape.otherExtents());
  auto parts = function.delinearize(function.thread, {kRows, kTile});
  Value side = function.index(kTile), firstCross = function.mul(place[1], side),
        firstLast = function.mul(place[2], side);

  /// Runs `body` with the index of the result's element at a place of the tile, if there is one.
  auto at = [&](Value inCross, Value inLast, function_ref<void(ArrayRef<Value> index)> body) {
    SmallVector<Value> index(shape.extents.size());
    for (auto [d, i] : llvm::zip_equal(shape.others, otherIndex))
      index[d] = i;
    index[shape.cross] = function.add(firstCross, inCross);
    index[shape.last] = function.add(firstLast, inLast);
    Value inside;
    for (int64_t d : {shape.cross, shape.last})
      if (shape.extents[d] % kTile) {
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
    return function.add(function.mul(inLast, function.index(kTile + 1)), inCross);
  };
  for (int64_t row = 0; row < kTile; row += kRows) {
    Value inLast = function.add(parts[0], function.index(row));
    at(parts[1], inLast, [&](ArrayRef<Value> index) {
      SmallVector<Value> source(index.size());
      for (auto [d, from] : llvm::enumerate(shape.permutation))
        source[from] = index[d];
      function.store(tile, elementType, inTile(inLast, parts[1]), evaluator.element(op.getX(), source));
    });
  }
  function.barrier();
  for (int64_t row = 0; row < kTile; row += kRows) {
    Value inCross = function.add(parts[0], function.index(row));
    at(inCross, parts[1], [&](ArrayRef<Value> index) {
      function.store(context.getResultPointer(0), elementType, function.linearize(index, shape.extents),
                     function.load(tile, elementType, inTile(parts[1], inCross)));
    });
  }
}
