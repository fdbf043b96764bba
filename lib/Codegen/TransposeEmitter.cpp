//===- TransposeEmitter.cpp - transposes by tiles, on a CPU -----*- C++ -*-===//
//
// A transpose that moves the last dimension reads memory crosswise: one element of each line that it touches. A tile of
// 16 × 16 elements is read along the operand's lines into an array on the stack, and written along the result's.
//
//===----------------------------------------------------------------------===//

#include "Emitters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

/// Elements of a side of the tile; that of the loops that become vectors as a whole.
static constexpr int64_t kSide = 16, kTaskElements = 8192;

namespace {
/// The result's dimensions, those in one that stay neighbours, and their strides in both tensors.
struct CrossShape {
  SmallVector<int64_t> extents, from, to;
  size_t last = 0, cross = 0; // the last one; the one that is the operand's last

  explicit CrossShape(nn::TransposeOp op) {
    ArrayRef<int64_t> operand = op.getX().getType().getShape();
    for (int64_t dim : op.getPermutation()) {
      if (operand[dim] == 1)
        continue;
      const int64_t stride = ShapedType::getNumElements(operand.drop_front(dim + 1));
      if (!from.empty() && from.back() == stride * operand[dim]) {
        extents.back() *= operand[dim];
        from.back() = stride;
      } else {
        extents.push_back(operand[dim]);
        from.push_back(stride);
      }
    }
    to.assign(extents.size(), 1);
    for (size_t d = extents.size(); d-- > 1;)
      to[d - 1] = to[d] * extents[d];
    last = extents.size() - 1;
    cross = llvm::find(from, 1) - from.begin();
  }
  int64_t tiles() const { return llvm::divideCeil(extents[cross], kSide); }
  int64_t others() const { return ShapedType::getNumElements(extents) / (extents[last] * extents[cross]); }
};
} // namespace

nn::TransposeOp codegen::getSoleTranspose(nn::KernelOp kernel) {
  nn::TransposeOp found;
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (found || !isa<nn::TransposeOp>(op))
      return {};
    found = cast<nn::TransposeOp>(op);
  }
  return found && isa<BlockArgument>(found.getX()) && kernel.getNumResults() == 1 ? found : nn::TransposeOp();
}

nn::TransposeOp codegen::getCrosswiseTranspose(nn::KernelOp kernel) {
  nn::TransposeOp op = getSoleTranspose(kernel);
  if (!op)
    return {};
  const CrossShape shape(op);
  const bool isTile = shape.extents.size() > 1 && shape.cross != shape.last && shape.extents[shape.cross] >= kSide &&
                      shape.extents[shape.last] >= kSide;
  return isTile ? op : nn::TransposeOp();
}

LaunchShape codegen::getTransposeShape(nn::TransposeOp op) {
  CrossShape shape(op);
  return {shape.others() * shape.tiles(), std::max<int64_t>(1, kTaskElements / (kSide * shape.extents[shape.last])), 0};
}

void codegen::emitTranspose(KernelContext &context, nn::TransposeOp op) {
  KernelFunction &function = context.function;
  RegionEvaluator &evaluator = context.evaluator;
  ScalarBuilder scalars(function.builder, function.loc);
  const CrossShape shape(op);
  const int64_t numLast = shape.extents[shape.last], numCross = shape.extents[shape.cross];
  Type type = op.getY().getType().getElementType();
  Value source = function.getPointer(cast<BlockArgument>(op.getX()).getArgNumber());
  Value target = context.getResultPointer(0), zero = function.index(0), side = function.index(kSide);
  Value tile = function.local(type, kSide * kSide);
  auto scaled = [&](Value i, int64_t by) { return function.mul(i, function.index(by)); };

  evaluator.loop(function.begin, function.end, 1, LoopKind::Sequential, [&](Value task) {
    SmallVector<int64_t> extents;
    for (auto [d, extent] : llvm::enumerate(shape.extents))
      extents.push_back(d == shape.last ? 1 : d == shape.cross ? shape.tiles() : extent);
    SmallVector<Value> at = function.delinearize(task, extents);
    Value row = scaled(at[shape.cross], kSide), read = row, written = scaled(row, shape.to[shape.cross]);
    for (size_t d = 0; d < at.size(); ++d)
      if (d != shape.cross && d != shape.last) {
        read = function.add(read, scaled(at[d], shape.from[d]));
        written = function.add(written, scaled(at[d], shape.to[d]));
      }
    evaluator.loop(zero, function.index(numLast), kSide, LoopKind::Sequential, [&](Value column) {
      Value from = function.add(read, scaled(column, shape.from[shape.last])), to = function.add(written, column);
      auto emitWhole = [&] {
        evaluator.loop(zero, side, 1, LoopKind::Sequential, [&](Value j) {
          evaluator.loop(zero, side, 1, LoopKind::Lanes, [&](Value i) {
            Value element =
                function.load(source, type, function.add(function.add(from, scaled(j, shape.from[shape.last])), i));
            function.store(tile, type, function.add(scaled(j, kSide), i), element);
          });
        });
        evaluator.loop(zero, side, 1, LoopKind::Sequential, [&](Value i) {
          evaluator.loop(zero, side, 1, LoopKind::Lanes, [&](Value j) {
            Value element = function.load(tile, type, function.add(scaled(j, kSide), i));
            function.store(target, type, function.add(function.add(to, scaled(i, shape.to[shape.cross])), j), element);
          });
        });
      };
      if (numLast % kSide == 0 && numCross % kSide == 0)
        return emitWhole();
      Value rows = scalars.sub(function.index(numCross), row), columns = scalars.sub(function.index(numLast), column);
      Value isWhole =
          scalars.logicalAnd(scalars.compare(Compare::GE, rows, side), scalars.compare(Compare::GE, columns, side));
      auto branch = [&](function_ref<void()> body) {
        return [&evaluator, body](OpBuilder &builder, Location loc) {
          RegionEvaluator::Scope scope(evaluator);
          body();
          scf::YieldOp::create(builder, loc);
        };
      };
      auto emitPart = [&] {
        evaluator.loop(zero, function.min(rows, side), 1, LoopKind::Sequential, [&](Value i) {
          evaluator.loop(zero, function.min(columns, side), 1, LoopKind::Parallel, [&](Value j) {
            Value element =
                function.load(source, type, function.add(function.add(from, scaled(j, shape.from[shape.last])), i));
            function.store(target, type, function.add(function.add(to, scaled(i, shape.to[shape.cross])), j), element);
          });
        });
      };
      scf::IfOp::create(function.builder, function.loc, isWhole, branch(emitWhole), branch(emitPart));
    });
  });
}
