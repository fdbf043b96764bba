//===- LabelGather.cpp - one element of each row of a matrix ---*- C++ -*-===//
//
// A launch of its own for each row's element is mostly the start of a launch; a GPU makes rows as fast as it reads
// them.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Fusion/LabelGather.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"

#include <limits>

using namespace mlir;
using namespace lowtide;

/// The value before reshapes that only add or drop dimensions.
static Value peel(Value value) {
  while (auto view = value.getDefiningOp<nn::ReshapeOp>())
    value = view.getX();
  return value;
}

/// Whether each column of a matrix of type `matrix` is compared with its row's entry of `labels`.
static bool isCompared(Value labels, RankedTensorType matrix) {
  for (Operation *user : labels.getUsers()) {
    auto spread = dyn_cast<nn::BroadcastOp>(user);
    if (!spread || spread.getY().getType().getShape() != matrix.getShape() || spread.getDims() != ArrayRef<int64_t>{0})
      continue;
    for (Operation *reader : spread.getY().getUsers())
      if (auto compare = dyn_cast<nn::CompareOp>(reader);
          compare && compare.getPredicate() == nn::ComparePredicate::eq &&
          llvm::any_of(compare->getOperands(), [](Value side) { return side.getDefiningOp<nn::IotaOp>() != nullptr; }))
        return true;
  }
  return false;
}

void lowtide::pickByComparison(Operation *root) {
  root->walk([](nn::GatherElementsOp gather) {
    auto matrix = gather.getX().getType();
    Value labels = peel(gather.getIndices());
    auto type = cast<RankedTensorType>(labels.getType());
    if (matrix.getRank() != 2 || gather.getAxis() != 1 || !isa<FloatType>(matrix.getElementType()) ||
        type.getRank() != 1 || type.getDimSize(0) != matrix.getDimSize(0) || !isCompared(labels, matrix) ||
        gather.getIndices().getType().getNumElements() != matrix.getDimSize(0))
      return;
    OpBuilder builder(gather);
    nn::Expr x(builder, gather.getLoc(), gather.getX());
    auto labelType = RankedTensorType::get(matrix.getShape(), type.getElementType());
    nn::Expr isLabel =
        nn::equal(nn::iota(builder, gather.getLoc(), labelType, 1), nn::unreduce(x.with(labels), labelType, 1));
    nn::Expr picked = nn::sum(nn::select(isLabel, x, x.like(0.0)), 1);
    // No column is that of a label out of range; gathered it is NaN, and a loss must not hide it.
    nn::Expr label = x.with(labels);
    nn::Expr isInRange = nn::logicalAnd(nn::greaterEqual(label, 0.0), nn::less(label, double(matrix.getDimSize(1))));
    picked = nn::select(isInRange, picked, picked.like(std::numeric_limits<double>::quiet_NaN()));
    gather.replaceAllUsesWith(nn::reshape(picked, gather.getType().getShape()).get());
    gather.erase();
  });
}
