//===- TrainChunkLossHead.cpp - a loss without its logits -------*- C++ -*-===//
//
// 1. Loss and gradients of one head become one op, or two of one loop: the logits are computed once.
// 2. A loop computes it for some rows after others; sums go tile by tile, whatever the loop.
//
//===----------------------------------------------------------------------===//

#include "TrainChunkLossHead.h"
#include "Passes.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_TRAINCHUNKLOSSHEAD
#include "Passes.h.inc"
} // namespace lowtide

/// Rows that are added up in one piece: so many, or as many as `wide`, a multiple of the number of features, at most,
/// and so many at least. Smaller tiles would cost products their speed, and a tile's sum is read and written once.
static constexpr int64_t largestTile = 256, smallestTile = 16;
/// Logits below this are not worth a loop.
static constexpr uint64_t smallLogitsBytes = uint64_t(1) << 20;

/// The largest divisor of `rows` that a tile may have, a quarter of them at most; all rows if there is none. Depends on
/// nothing that a budget or a flag changes: bits depend on it.
static int64_t chooseTile(int64_t rows, int64_t wide) {
  for (int64_t tile = std::min(std::max(rows / 4, smallestTile), std::max(wide, largestTile)); tile >= smallestTile;
       --tile)
    if (rows % tile == 0)
      return tile;
  return rows;
}

namespace {

struct TrainChunkLossHead : lowtide::impl::TrainChunkLossHeadBase<TrainChunkLossHead> {
  using TrainChunkLossHeadBase::TrainChunkLossHeadBase;
  TrainChunkLossHead(const TrainChunkLossHeadOptions &options, int64_t tileFeatures)
      : TrainChunkLossHeadBase(options), tileFeatures(tileFeatures) {}
  int64_t tileFeatures = 1;

  /// Ops that are computed together: a loss, a loss with its gradients, or both and what the cotangents are made of
  /// between them, row by row. The largest is the last.
  using Head = SmallVector<Operation *>;

  /// Gradients that belong to no head yet.
  llvm::SetVector<Operation *> gradients;

  nn::LinearCrossEntropyGradOp findGradient(nn::LinearCrossEntropyOp loss) {
    for (Operation *user : loss.getX().getUsers()) {
      auto gradient = dyn_cast<nn::LinearCrossEntropyGradOp>(user);
      if (gradient && gradients.contains(gradient) && gradient->getBlock() == loss->getBlock() &&
          loss->isBeforeInBlock(gradient) && gradient.getX() == loss.getX() &&
          gradient.getWeight() == loss.getWeight() && gradient.getBias() == loss.getBias() &&
          gradient.getLabels() == loss.getLabels() && gradient.getClassLast() == loss.getClassLast() &&
          gradient.getIgnoreIndex() == loss.getIgnoreIndex())
        return gradient;
    }
    return {};
  }

  /// Whether each number of the results is made of numbers at the same place in tensors of this shape.
  static bool isRowByRow(Operation *op, ArrayRef<int64_t> shape) {
    auto hasShape = [&](Type type) { return cast<RankedTensorType>(type).getShape() == shape; };
    return op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op) &&
           llvm::all_of(op->getOperandTypes(), hasShape) && llvm::all_of(op->getResultTypes(), hasShape);
  }

  /// The loss and its gradients, if they can be computed where the loss is: what they need is moved there.
  Head join(nn::LinearCrossEntropyOp loss) {
    nn::LinearCrossEntropyGradOp gradient = findGradient(loss);
    if (!gradient)
      return {loss};
    llvm::SetVector<Operation *> needed;
    SmallVector<Operation *> worklist{gradient};
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      if (op == loss || op->getBlock() != loss->getBlock() || op->isBeforeInBlock(loss) || !needed.insert(op))
        continue;
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          worklist.push_back(producer);
    }
    SmallVector<Operation *> ordered = needed.takeVector();
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    ordered.pop_back(); // the gradient itself
    llvm::SmallSetVector<Operation *, 8> head;
    head.insert(loss);
    for (Operation *op : ordered) {
      bool depends = llvm::any_of(op->getOperands(), [&](Value v) { return head.contains(v.getDefiningOp()); });
      if (!depends) {
        op->moveBefore(loss);
      } else if (isRowByRow(op, loss.getLoss().getType().getShape())) {
        head.insert(op);
      } else {
        loss.emitRemark("the gradients of this loss depend on its value: its logits are computed twice");
        return {loss};
      }
    }
    ++numMerged;
    gradients.remove(gradient);
    if (head.size() > 1) {
      head.insert(gradient);
      return head.takeVector();
    }
    gradient->moveBefore(loss);
    loss.getLoss().replaceAllUsesWith(gradient.getLoss());
    loss.getLse().replaceAllUsesWith(gradient.getLse());
    loss.erase();
    return {gradient};
  }

  /// How many chunks of whole tiles.
  int64_t chooseChunks(int64_t rows, int64_t tile, uint64_t logitsBytes, uint64_t weightBytes) {
    int64_t tiles = rows / tile, wanted = chunks < 0 ? tiles : int64_t(chunks);
    if (wanted == 0) {
      // Logits of one chunk as large as the weight: its gradient is as large anyway.
      uint64_t most = std::max(smallLogitsBytes, weightBytes);
      wanted = int64_t((logitsBytes + most - 1) / most);
      while (wanted < tiles && tiles % wanted)
        ++wanted;
    }
    wanted = std::clamp<int64_t>(wanted, 1, tiles);
    while (tiles % wanted)
      --wanted;
    return wanted;
  }

  static SmallVector<OpOperand *> getRowOperands(Operation *op) {
    if (auto head = dyn_cast<RowsInterface>(op))
      return head.getRowOperands();
    return llvm::to_vector(llvm::make_pointer_range(op->getOpOperands())); // row by row
  }
  static ResultRange getRowResults(Operation *op) {
    auto head = dyn_cast<RowsInterface>(op);
    return head ? head.getRowResults() : op->getResults();
  }

  /// The loop over chunks of rows.
  void chunk(const Head &head, int64_t count) {
    OpBuilder builder(head.front());
    Location loc = head.back()->getLoc();
    auto isInside = [&](Operation *op) { return llvm::is_contained(head, op); };
    llvm::SmallSetVector<Value, 8> sliced;
    SmallVector<OpResult> rowResults; // that others read
    SmallVector<Type> rowTypes;
    auto getPart = [&](Type whole) { return train::AccumulateOp::getPart(cast<RankedTensorType>(whole), count); };
    for (Operation *op : head) {
      for (OpOperand *operand : getRowOperands(op))
        if (!isInside(operand->get().getDefiningOp()))
          sliced.insert(operand->get());
      for (OpResult result : getRowResults(op))
        if (!llvm::all_of(result.getUsers(), isInside)) {
          rowResults.push_back(result);
          rowTypes.push_back(getPart(result.getType()));
        }
    }
    SmallVector<Value> sums;
    ResultRange summed = head.back()->getResults().drop_front(getRowResults(head.back()).size());
    for (Value sum : summed) {
      auto type = cast<RankedTensorType>(sum.getType());
      if (type.getElementTypeBitWidth() < 32)
        type = RankedTensorType::get(type.getShape(), builder.getF32Type());
      sums.push_back(nn::splat(builder, loc, type, 0.0));
    }
    auto loop = train::AccumulateOp::create(builder, loc, count, sliced.getArrayRef(), sums, rowTypes);
    Block &body = *loop.getBlock();
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    // By place, not by value: the weight may be what the rows are, and is not cut.
    DenseMap<Value, Value> parts;
    for (auto [whole, part] : llvm::zip(sliced, body.getArguments()))
      parts[whole] = part;
    SmallVector<Value> rows, handedOn;
    for (Operation *op : head) {
      Operation *inside = inner.clone(*op);
      for (OpOperand *operand : getRowOperands(op))
        inside->setOperand(operand->getOperandNumber(), parts.lookup(operand->get()));
      for (auto [whole, part] : llvm::zip(getRowResults(op), inside->getResults())) {
        part.setType(getPart(whole.getType()));
        parts[whole] = part;
      }
      auto gradient = dyn_cast<nn::LinearCrossEntropyGradOp>(inside);
      if (!gradient)
        continue;
      ValueRange carried = body.getArguments().drop_front(sliced.size());
      gradient.getWeightSumMutable().assign(carried[0]);
      if (gradient.getBias())
        gradient.getBiasSumMutable().assign(carried[1]);
      for (auto [sum, next] : llvm::zip(sums, inside->getResults().drop_front(getRowResults(op).size()))) {
        next.setType(sum.getType());
        handedOn.push_back(next);
      }
    }
    for (Value result : rowResults)
      rows.push_back(parts.lookup(result));
    train::NextOp::create(inner, loc, handedOn, rows);
    SmallVector<Value> replaced(summed);
    llvm::append_range(replaced, rowResults);
    for (auto [result, by] : llvm::zip(replaced, loop.getResults())) {
      nn::Expr whole(builder, loc, by);
      result.replaceAllUsesWith(nn::cast(whole, cast<RankedTensorType>(result.getType()).getElementType()));
    }
    for (Operation *op : llvm::reverse(head))
      op->erase();
  }

  void visit(const Head &head) {
    Operation *op = head.back();
    auto getType = [](Value value) { return cast<RankedTensorType>(value.getType()); };
    RankedTensorType x = getType(op->getOperand(0)), weight = getType(op->getOperand(1)),
                     loss = getType(op->getResult(0));
    int64_t rows = x.getDimSize(0), tile = chooseTile(rows, tileFeatures * x.getDimSize(1));
    if (rows == 0 || x.getDimSize(1) == 0)
      return;
    uint64_t weightBytes = getTensorBytes(weight).value_or(0);
    uint64_t classes = weight.getNumElements() / x.getDimSize(1);
    uint64_t logitsBytes = rows * classes * ((loss.getElementTypeBitWidth() + 7) / 8);
    int64_t count = chooseChunks(rows, tile, logitsBytes, weightBytes);
    if (auto gradient = dyn_cast<nn::LinearCrossEntropyGradOp>(op))
      gradient.setTile(tile == rows ? 0 : tile);
    InFlightDiagnostic remark = op->emitRemark("loss head: logits of ")
                                << formatBytes(logitsBytes) << " in " << count << (count == 1 ? " piece" : " pieces")
                                << ", sums over tiles of " << tile << " rows";
    if (chunks > 0 && count != chunks)
      remark << " (" << int64_t(chunks) << " pieces were asked for; only whole tiles can be parted)";
    remark.report();
    if (count == 1)
      return;
    ++numChunked;
    // Within a chunk, tiles are those of the whole.
    if (auto gradient = dyn_cast<nn::LinearCrossEntropyGradOp>(op); gradient && rows / count == tile)
      gradient.setTile(0);
    chunk(head, count);
  }

  void runOnOperation() override {
    SmallVector<nn::LinearCrossEntropyOp> losses;
    getOperation()->walk([&](nn::LinearCrossEntropyOp op) { losses.push_back(op); });
    gradients.clear();
    getOperation()->walk([&](nn::LinearCrossEntropyGradOp op) { gradients.insert(op); });
    // One after the other: what is between a loss and its gradients may be between those of another.
    for (nn::LinearCrossEntropyOp loss : losses)
      visit(join(loss));
    for (Operation *gradient : gradients)
      visit({gradient});
  }
};

} // namespace

std::unique_ptr<Pass> lowtide::createWideChunkLossHead(const TrainChunkLossHeadOptions &options) {
  return std::make_unique<TrainChunkLossHead>(options, /*tileFeatures=*/4);
}
