//===- TrainChunkLossHead.cpp - a loss without its logits -------*- C++ -*-===//
//
// 1. Loss and gradients of one head become one op, which computes the logits once.
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
#include "mlir/IR/IRMapping.h"
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

  /// The backward op of the same head, if it can be computed where `head` is.
  nn::LinearCrossEntropyGradOp findGradient(nn::LinearCrossEntropyOp head, SmallVectorImpl<Operation *> &moved) {
    for (Operation *user : head.getX().getUsers()) {
      auto gradient = dyn_cast<nn::LinearCrossEntropyGradOp>(user);
      if (!gradient || gradient->getBlock() != head->getBlock() || !head->isBeforeInBlock(gradient) ||
          gradient.getX() != head.getX() || gradient.getWeight() != head.getWeight() ||
          gradient.getBias() != head.getBias() || gradient.getLabels() != head.getLabels() ||
          gradient.getClassLast() != head.getClassLast() || gradient.getIgnoreIndex() != head.getIgnoreIndex())
        continue;
      llvm::SetVector<Operation *> needed;
      SmallVector<Operation *> worklist{gradient};
      while (!worklist.empty()) {
        Operation *op = worklist.pop_back_val();
        if (op->getBlock() != head->getBlock() || op->isBeforeInBlock(head) || !needed.insert(op))
          continue;
        for (Value operand : op->getOperands())
          if (Operation *producer = operand.getDefiningOp())
            worklist.push_back(producer);
      }
      if (needed.contains(head)) {
        head.emitRemark("the gradients of this loss depend on its value: its logits are computed twice");
        continue;
      }
      moved = needed.takeVector();
      llvm::sort(moved, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      return gradient;
    }
    return {};
  }

  void merge(nn::LinearCrossEntropyOp head) {
    SmallVector<Operation *> moved;
    nn::LinearCrossEntropyGradOp gradient = findGradient(head, moved);
    if (!gradient)
      return;
    for (Operation *op : moved)
      op->moveBefore(head);
    head.getLoss().replaceAllUsesWith(gradient.getLoss());
    head.erase();
    ++numMerged;
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

  /// The loop over chunks of rows; `rowOperands` and the results before `firstSum` count rows.
  void chunk(Operation *op, int64_t count, ArrayRef<unsigned> rowOperands, unsigned firstSum) {
    OpBuilder builder(op);
    Location loc = op->getLoc();
    SmallVector<Value> sliced, sums;
    for (unsigned operand : rowOperands)
      sliced.push_back(op->getOperand(operand));
    for (Value sum : llvm::drop_begin(op->getResults(), firstSum)) {
      auto type = cast<RankedTensorType>(sum.getType());
      if (type.getElementTypeBitWidth() < 32)
        type = RankedTensorType::get(type.getShape(), builder.getF32Type());
      sums.push_back(nn::splat(builder, loc, type, 0.0));
    }
    SmallVector<Type> rowTypes;
    for (Value rows : op->getResults().take_front(firstSum))
      rowTypes.push_back(train::AccumulateOp::getPart(cast<RankedTensorType>(rows.getType()), count));
    auto loop = train::AccumulateOp::create(builder, loc, count, sliced, sums, rowTypes);
    Block &body = *loop.getBlock();
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    auto part = [&](unsigned i) -> Value { return body.getArgument(i); };
    SmallVector<Value> rows, handedOn;
    if (auto head = dyn_cast<nn::LinearCrossEntropyOp>(op)) {
      auto inside = nn::LinearCrossEntropyOp::create(inner, loc, rowTypes[0], part(0), head.getWeight(), head.getBias(),
                                                     part(1), head.getClassLastAttr(), head.getIgnoreIndexAttr());
      rows.push_back(inside.getLoss());
    } else {
      auto gradient = cast<nn::LinearCrossEntropyGradOp>(op);
      SmallVector<Type> types(rowTypes);
      for (Value sum : sums)
        types.push_back(sum.getType());
      Value biasSum = gradient.getBias() ? part(4) : Value();
      auto inside = nn::LinearCrossEntropyGradOp::create(
          inner, loc, types, part(0), gradient.getWeight(), gradient.getBias(), part(1), part(2), part(3), biasSum,
          gradient.getClassLastAttr(), gradient.getIgnoreIndexAttr(), gradient.getTileAttr());
      rows = {inside.getLoss(), inside.getDx()};
      handedOn.push_back(inside.getDweight());
      if (biasSum)
        handedOn.push_back(inside.getDbias());
    }
    train::NextOp::create(inner, loc, handedOn, rows);
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      unsigned from = i < firstSum ? sums.size() + i : i - firstSum;
      nn::Expr whole(builder, loc, loop.getResult(from));
      result.replaceAllUsesWith(nn::cast(whole, cast<RankedTensorType>(result.getType()).getElementType()));
    }
    op->erase();
  }

  void visit(Operation *op, RankedTensorType x, RankedTensorType weight, RankedTensorType loss) {
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
    SmallVector<unsigned> rowOperands;
    unsigned rowResults = 1;
    if (auto gradient = dyn_cast<nn::LinearCrossEntropyGradOp>(op)) {
      // Within a chunk, tiles are those of the whole.
      if (rows / count == tile)
        gradient.setTile(0);
      unsigned labels = gradient.getBias() ? 3 : 2;
      rowOperands = {0, labels, labels + 1};
      rowResults = 2;
    } else {
      rowOperands = {0, cast<nn::LinearCrossEntropyOp>(op).getBias() ? 3u : 2u};
    }
    chunk(op, count, rowOperands, rowResults);
  }

  void runOnOperation() override {
    SmallVector<Operation *> heads;
    getOperation()->walk([&](nn::LinearCrossEntropyOp op) { heads.push_back(op); });
    for (Operation *op : heads)
      merge(cast<nn::LinearCrossEntropyOp>(op));
    heads.clear();
    getOperation()->walk([&](nn::LinearCrossEntropyOp op) { heads.push_back(op); });
    getOperation()->walk([&](nn::LinearCrossEntropyGradOp op) { heads.push_back(op); });
    for (Operation *op : heads) {
      auto type = [&](Value value) { return cast<RankedTensorType>(value.getType()); };
      visit(op, type(op->getOperand(0)), type(op->getOperand(1)), type(op->getResult(0)));
    }
  }
};

} // namespace

std::unique_ptr<Pass> lowtide::createWideChunkLossHead(const TrainChunkLossHeadOptions &options) {
  return std::make_unique<TrainChunkLossHead>(options, /*tileFeatures=*/4);
}
