//===- TrainChunkLossHead.cpp - a loss without its logits -------*- C++ -*-===//
//
// 1. What meets the rows of a head under another shape is brought to rows.
// 2. Loss and gradients of one head become one op, or two of one loop: the logits are computed once.
// 3. A loop computes it for some rows after others; sums go tile by tile, whatever the loop.
// 4. What else lies between products and losses: RowChunks.
//
//===----------------------------------------------------------------------===//

#include "HeadChunks.h"
#include "RowChunks.h"
#include "StepPass.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/RowRegion.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Patterns.h"
#include "lowtide/Dialect/Train/Train.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_TRAINCHUNKLOSSHEAD
#include "Passes.h.inc"
} // namespace lowtide

namespace {

struct TrainChunkLossHead : StepPass<lowtide::impl::TrainChunkLossHeadBase<TrainChunkLossHead>> {
  using StepPass::StepPass;
  /// On a GPU tiles have four times as many rows: there a tile's sum of the size of the weight takes longer to read and
  /// write than a product of so few rows takes to compute.
  bool isWide() const { return target.isGpu(); }

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

  static HeadShape getShape(Operation *op) {
    auto getType = [](Value value) { return cast<RankedTensorType>(value.getType()); };
    RankedTensorType x = getType(op->getOperand(0)), weight = getType(op->getOperand(1)),
                     loss = getType(op->getResult(0));
    const int64_t rows = x.getDimSize(0);
    if (rows == 0 || x.getDimSize(1) == 0)
      return {};
    const uint64_t classes = weight.getNumElements() / x.getDimSize(1);
    return {rows, x.getDimSize(1), rows * classes * ((loss.getElementTypeBitWidth() + 7) / 8),
            getTensorBytes(weight).value_or(0)};
  }

  /// The op on `more` rows, which fall into tiles. What is added are zeros with a cotangent of zero, which add zeros to
  /// the sums.
  static Operation *pad(Operation *op, int64_t rows, int64_t more) {
    OpBuilder builder(op);
    Operation *padded = builder.clone(*op);
    for (OpOperand *operand : getRowOperands(padded)) {
      builder.setInsertionPoint(padded);
      nn::Expr whole(builder, op->getLoc(), operand->get());
      SmallVector<int64_t> none(whole.rank(), 0), high(none);
      high[0] = more - rows;
      operand->set(nn::pad(whole, none, high));
    }
    builder.setInsertionPointAfter(padded);
    for (auto [result, by] : llvm::zip(op->getResults(), padded->getResults()))
      result.replaceAllUsesWith(by);
    for (OpResult result : getRowResults(padded)) {
      auto type = cast<RankedTensorType>(result.getType());
      SmallVector<int64_t> starts(type.getRank(), 0), sizes(type.getShape()), shape(sizes);
      shape[0] = more;
      result.setType(RankedTensorType::get(shape, type.getElementType()));
      if (result.use_empty())
        continue;
      nn::Expr part = nn::slice(nn::Expr(builder, op->getLoc(), result), starts, sizes);
      result.replaceAllUsesExcept(part, part.get().getDefiningOp());
    }
    op->erase();
    return padded;
  }

  void visit(Head head) {
    HeadShape shape = getShape(head.back());
    if (!shape.rows)
      return;
    // What lies between a loss and its gradients need not be finite where there are no numbers.
    if (const int64_t more = head.size() == 1 ? choosePaddedRows(shape, isWide()) : shape.rows; more != shape.rows) {
      head = {pad(head.back(), shape.rows, more)};
      shape = getShape(head.back());
    }
    Operation *op = head.back();
    const auto [rows, features, logitsBytes, weightBytes] = shape;
    const int64_t tile = chooseTile(shape, isWide()), count = chooseChunks(shape, tile, chunks);
    if (auto gradient = dyn_cast<nn::LinearCrossEntropyGradOp>(op))
      gradient.setTile(tile == rows ? 0 : tile);
    const bool isOther = chunks > 0 && count != chunks,
               isWhole = count == 1 && chunks != 1 && logitsBytes > largeLogitsBytes;
    InFlightDiagnostic remark = isOther || isWhole ? op->emitWarning() : op->emitRemark();
    remark << "loss head: logits of " << formatBytes(logitsBytes) << " in " << count
           << (count == 1 ? " piece" : " pieces") << ", sums over tiles of " << tile << " rows";
    if (isOther)
      remark << " (" << int64_t(chunks)
             << " pieces were asked for; pieces are whole tiles, so that bits do not depend on "
             << "their number)";
    if (isWhole)
      remark.attachNote() << adviseWhole(WholeReason::NoDivisor, "");
    remark.report();
    if (count == 1)
      return;
    ++numChunked;
    // Within a chunk, tiles are those of the whole.
    if (auto gradient = dyn_cast<nn::LinearCrossEntropyGradOp>(op); gradient && rows / count == tile)
      gradient.setTile(0);
    chunk(head, count);
  }

  void runOnSteps() override {
    if (failed(checkOption(getOperation(), "chunks", std::to_string(chunks),
                           {OptionCheck::Kind::Range, {}, -1, int64_t(1) << 30})))
      return signalPassFailure();
    RewritePatternSet raising(&getContext());
    nn::addReshapeRaising(raising, /*always=*/chunks > 0);
    GreedyRewriteConfig config;
    config.enableFolding(false).setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(applyPatternsGreedily(getOperation(), std::move(raising), config)))
      return signalPassFailure();
    SmallVector<nn::LinearCrossEntropyOp> losses;
    getOperation()->walk([&](nn::LinearCrossEntropyOp op) { losses.push_back(op); });
    gradients.clear();
    getOperation()->walk([&](nn::LinearCrossEntropyGradOp op) { gradients.insert(op); });
    // One after the other: what is between a loss and its gradients may be between those of another.
    for (nn::LinearCrossEntropyOp loss : losses)
      visit(join(loss));
    for (Operation *gradient : gradients)
      visit({gradient});
    FailureOr<unsigned> loops = chunkRows(getOperation(), chunks, isWide());
    if (failed(loops))
      return signalPassFailure();
    numChunked += *loops;
  }
};

} // namespace
