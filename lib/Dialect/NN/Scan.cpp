//===- Scan.cpp - nn.scan: syntax, verification, canonical form -----------===//
//
// The loop over the steps of a sequence.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Scan.h"
#include "lowtide/Dialect/NN/RecordSupport.h"
#include "lowtide/Interfaces/RepeatSyntax.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// Lists of operands, in order.
static constexpr StringRef keywords[] = {"slices", "carries", "reads"};

NextOp ScanOp::getNext() { return cast<NextOp>(getBlock()->getTerminator()); }

uint64_t nn::scanFlops(ScanOp scan) {
  uint64_t flops = 0;
  for (Operation &op : *scan.getBlock())
    if (auto facts = dyn_cast<FactsInterface>(op))
      flops += facts.getFlops();
  return flops * static_cast<uint64_t>(scan.getRounds());
}

void ScanOp::build(OpBuilder &builder, OperationState &state, int64_t rounds, bool reversed, ValueRange sliced,
                   ValueRange carried, ValueRange captured, TypeRange rows) {
  buildRepeat(builder, state, rounds, reversed, {sliced, carried, captured}, rows);
}

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &result) { return parseRepeat(parser, result, keywords); }

void ScanOp::print(OpAsmPrinter &p) {
  printRepeat(p, *this, keywords, {getNumSliced(), getNumCarried(), unsigned(getCaptured().size())});
}

LogicalResult ScanOp::verify() { return verifyRepeat(*this, getRounds(), getNumSliced()); }

LogicalResult ScanOp::verifyRegions() {
  return verifyRounds(*this, getRounds(), getNumSliced(), getNumCarried(), NextOp::getOperationName());
}

//===-- canonical form ----------------------------------------------------===//

namespace {
/// Rows that are not read, states that only they need, operands that no round reads.
struct DropUnused : OpRewritePattern<ScanOp> {
  using OpRewritePattern::OpRewritePattern;

  /// What the rounds are for: which results are read, and which values of the body those are made of.
  static llvm::DenseSet<Value> findLive(ScanOp scan) {
    NextOp next = scan.getNext();
    llvm::DenseSet<Value> live;
    SmallVector<Value> worklist;
    auto need = [&](Value value) {
      if (live.insert(value).second)
        worklist.push_back(value);
    };
    for (OpResult result : scan->getResults())
      if (!result.use_empty())
        need(next->getOperand(result.getResultNumber()));
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      if (Operation *op = value.getDefiningOp()) {
        llvm::for_each(op->getOperands(), need);
        continue;
      }
      const unsigned number = cast<BlockArgument>(value).getArgNumber();
      if (number >= scan.getNumSliced() && number < scan.getNumSliced() + scan.getNumCarried())
        need(next->getOperand(number - scan.getNumSliced()));
    }
    return live;
  }

  LogicalResult matchAndRewrite(ScanOp scan, PatternRewriter &rewriter) const override {
    NextOp next = scan.getNext();
    const llvm::DenseSet<Value> live = findLive(scan);
    const unsigned sliced = scan.getNumSliced(), carried = scan.getNumCarried();
    llvm::BitVector keptArguments(scan->getNumOperands()), keptResults(scan->getNumResults());
    for (unsigned i = 0; i < scan->getNumOperands(); ++i)
      if (live.contains(scan.getBlock()->getArgument(i)))
        keptArguments.set(i);
    for (unsigned i = 0; i < scan->getNumResults(); ++i)
      if (!scan->getResult(i).use_empty() || (i < carried && keptArguments[sliced + i]))
        keptResults.set(i);
    for (unsigned i = 0; i < carried; ++i)
      if (keptResults[i])
        keptArguments.set(sliced + i);
    if (keptArguments.all() && keptResults.all())
      return failure();
    SmallVector<Value> lists[3], handedOn, rows;
    for (unsigned i : keptArguments.set_bits())
      lists[i < sliced ? 0 : i < sliced + carried ? 1 : 2].push_back(scan->getOperand(i));
    for (unsigned i : keptResults.set_bits())
      (i < carried ? handedOn : rows).push_back(next->getOperand(i));
    auto smaller = ScanOp::create(rewriter, scan.getLoc(), scan.getRounds(), scan.getReversed(), lists[0], lists[1],
                                  lists[2], TypeRange(ValueRange(rows)));
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(smaller.getBlock());
    IRMapping mapping;
    for (auto [to, from] : llvm::enumerate(keptArguments.set_bits()))
      mapping.map(scan.getBlock()->getArgument(from), smaller.getBlock()->getArgument(to));
    for (Operation &op : scan.getBlock()->without_terminator())
      if (llvm::any_of(op.getResults(), [&](Value result) { return live.contains(result); }))
        rewriter.clone(op, mapping);
    auto mapped = [&](Value value) { return mapping.lookup(value); };
    NextOp::create(rewriter, next.getLoc(), llvm::map_to_vector(handedOn, mapped), llvm::map_to_vector(rows, mapped));
    for (auto [to, from] : llvm::enumerate(keptResults.set_bits()))
      rewriter.replaceAllUsesWith(scan->getResult(from), smaller->getResult(to));
    rewriter.eraseOp(scan);
    return success();
  }
};

/// One round is no loop.
struct InlineOnlyRound : OpRewritePattern<ScanOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScanOp scan, PatternRewriter &rewriter) const override {
    if (scan.getRounds() != 1)
      return failure();
    NextOp next = scan.getNext();
    IRMapping mapping;
    mapping.map(scan.getBlock()->getArguments(), scan->getOperands());
    for (Operation &op : scan.getBlock()->without_terminator())
      rewriter.clone(op, mapping);
    rewriter.replaceOp(scan,
                       llvm::map_to_vector(next->getOperands(), [&](Value value) { return mapping.lookup(value); }));
    return success();
  }
};

/// What a round makes of nothing but what is the same in every round, and of no more bytes than it leaves, is made
/// once.
struct HoistFixed : OpRewritePattern<ScanOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScanOp scan, PatternRewriter &rewriter) const override {
    const unsigned first = scan.getNumSliced() + scan.getNumCarried();
    auto isRead = [&](Value value) {
      auto argument = dyn_cast<BlockArgument>(value);
      return argument && argument.getArgNumber() >= first;
    };
    auto isFixed = [&](Operation &op) {
      if (op.getNumResults() != 1 || op.getNumRegions() || op.hasTrait<OpTrait::IsTerminator>() || !isPure(&op))
        return false;
      uint64_t read = 0;
      for (Value operand : op.getOperands()) {
        Operation *constant = operand.getDefiningOp();
        if (!isRead(operand) && !(constant && constant->hasTrait<OpTrait::ConstantLike>()))
          return false;
        read += isRead(operand) ? countElements(cast<RankedTensorType>(operand.getType())) : 0;
      }
      return read > 0 && countElements(cast<RankedTensorType>(op.getResult(0).getType())) <= read;
    };
    Operation *fixed = nullptr;
    for (Operation &op : *scan.getBlock())
      if (!fixed && isFixed(op))
        fixed = &op;
    if (!fixed)
      return failure();
    rewriter.setInsertionPoint(scan);
    IRMapping mapping;
    for (Value operand : fixed->getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand))
        mapping.map(operand, scan->getOperand(argument.getArgNumber()));
      else if (!mapping.contains(operand))
        rewriter.clone(*operand.getDefiningOp(), mapping);
    Value made = rewriter.clone(*fixed, mapping)->getResult(0);
    rewriter.modifyOpInPlace(scan, [&] {
      scan.getCapturedMutable().append(made);
      Value argument = scan.getBlock()->addArgument(made.getType(), made.getLoc());
      rewriter.replaceOp(fixed, argument);
    });
    return success();
  }
};
} // namespace

void ScanOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropUnused, HoistFixed, InlineOnlyRound>(context);
}
