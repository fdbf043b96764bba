//===- TrainDistributeLoops.cpp - all parts of a block, then the next -----===//
//
// Loop distribution: one loop over the parts of a batch becomes several, one after the other. Forward: a loop for each
// block of the model but the last, whose loop has its derivative, too. Backward: a loop for each block before, which
// computes the block's forward part once more, from what entered it. What one loop makes and another reads is laid down
// as rows. (B. Pudipeddi et al.: Training large neural networks with constant memory using a new execution algorithm,
// 2020.)
//
//===----------------------------------------------------------------------===//

#include "LoopBlocks.h"
#include "StepPass.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINDISTRIBUTELOOPS
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

namespace {

/// A loop whose rounds run one block after the other.
class Distribution {
public:
  Distribution(train::AccumulateOp loop, const LoopBlocks &blocks)
      : loop(loop), body(*loop.getBlock()), next(loop.getNext()), blocks(blocks),
        stages(2 * size_t(blocks.getNumBlocks()) - 1) {}

  /// Says what each stage computes; false where a state that rounds hand on is read in one stage and updated in
  /// another.
  bool find();
  /// Writes the loops in the place of the one.
  void write();

private:
  /// One of the loops, in the order in which they run.
  struct Stage {
    llvm::DenseSet<Operation *> ops;
    llvm::SetVector<unsigned> sliced, carried; ///< of the loop's, by number
    llvm::SetVector<Value> read, rows;         ///< values of the body: laid down by others, and for others
    bool isEmpty() const { return ops.empty() && rows.empty(); }
  };

  size_t last() const { return blocks.getNumBlocks() - 1; }
  size_t getHome(Operation *op) const {
    const size_t block = blocks.getBlock(op);
    return blocks.isForward(op) ? block : 2 * last() - block;
  }
  /// Whether a stage of the backward pass computes an op of the forward part again.
  bool computesAgain(size_t stage, Operation *op) const {
    return blocks.isForward(op) && stage == 2 * last() - blocks.getBlock(op);
  }
  bool take(size_t stage, Value value);
  /// The stage that lays a value down as rows.
  size_t findRowsHome(Value value) const;
  RankedTensorType getRowType(Value value) const;
  void writeStage(const Stage &stage);

  train::AccumulateOp loop;
  Block &body;
  train::NextOp next;
  const LoopBlocks &blocks;
  SmallVector<Stage> stages;
  /// What stands for the loop's values after the loops that make them.
  DenseMap<Value, Value> rowsOf;
  DenseMap<unsigned, Value> carriedOut;
};

} // namespace

size_t Distribution::findRowsHome(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && !blocks.isFree(op) ? getHome(op) : last();
}

/// Notes what `stage` needs to compute or read a value of the body.
bool Distribution::take(size_t number, Value wanted) {
  Stage &stage = stages[number];
  SmallVector<Value> worklist{wanted};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (value.getParentBlock() != &body)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getArgNumber() < loop.getNumSliced()) {
        stage.sliced.insert(argument.getArgNumber());
        continue;
      }
      const unsigned carried = argument.getArgNumber() - loop.getNumSliced();
      if (!stage.carried.insert(carried))
        continue;
      Value update = next->getOperand(carried);
      if (!blocks.isCounter(carried) && (!update.getDefiningOp() || findRowsHome(update) != number))
        return false;
      worklist.push_back(update);
      continue;
    }
    Operation *op = value.getDefiningOp();
    const bool isOwn = blocks.isFree(op) || getHome(op) == number;
    if (isOwn || (computesAgain(number, op) && !blocks.isCrossing(value))) {
      if (stage.ops.insert(op).second)
        llvm::append_range(worklist, LoopBlocks::listReads(op));
      continue;
    }
    if (getHome(op) > number)
      return false;
    stage.read.insert(value);
    stages[getHome(op)].rows.insert(value);
  }
  return true;
}

bool Distribution::find() {
  for (unsigned carried = 0; carried < loop.getNumCarried(); ++carried) {
    // A counter runs where it is read.
    const size_t home = blocks.isCounter(carried) ? last() : findRowsHome(next->getOperand(carried));
    if ((!blocks.isCounter(carried) || !loop.getResult(carried).use_empty()) &&
        !take(home, body.getArgument(loop.getNumSliced() + carried)))
      return false;
  }
  for (Value row : next.getRows())
    stages[findRowsHome(row)].rows.insert(row);
  // What a stage reads is laid down by stages before it.
  for (size_t number = stages.size(); number-- > 0;)
    for (size_t row = 0; row < stages[number].rows.size(); ++row)
      if (!take(number, stages[number].rows[row]))
        return false;
  return true;
}

/// Rows have a dimension that counts them.
RankedTensorType Distribution::getRowType(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getRank() ? type : RankedTensorType::get({1}, type.getElementType());
}

static Value reshapeTo(OpBuilder &builder, Value value, RankedTensorType type) {
  return value.getType() == type ? value : nn::reshape(nn::Expr(builder, value.getLoc(), value), type.getShape()).get();
}

void Distribution::writeStage(const Stage &stage) {
  OpBuilder builder(loop);
  const unsigned sliced = loop.getNumSliced();
  SmallVector<Value> slices, carried;
  SmallVector<Type> rows;
  for (unsigned number : stage.sliced)
    slices.push_back(loop.getSliced()[number]);
  for (Value value : stage.read)
    slices.push_back(rowsOf.lookup(value));
  for (unsigned number : stage.carried)
    carried.push_back(loop.getCarried()[number]);
  for (Value value : stage.rows)
    rows.push_back(getRowType(value));
  auto made =
      train::AccumulateOp::create(builder, loop.getLoc(), loop.getRounds(), slices, carried, rows, loop.getReversed());
  for (auto [number, argument] : llvm::enumerate(llvm::drop_begin(made.getBlock()->getArguments(), slices.size())))
    argument.setLoc(body.getArgument(sliced + stage.carried[unsigned(number)]).getLoc());
  OpBuilder inside = OpBuilder::atBlockEnd(made.getBlock());
  IRMapping mapping;
  unsigned argument = 0;
  for (unsigned number : stage.sliced)
    mapping.map(body.getArgument(number), made.getBlock()->getArgument(argument++));
  for (Value value : stage.read)
    mapping.map(value,
                reshapeTo(inside, made.getBlock()->getArgument(argument++), cast<RankedTensorType>(value.getType())));
  for (unsigned number : stage.carried)
    mapping.map(body.getArgument(sliced + number), made.getBlock()->getArgument(argument++));
  for (Operation &op : body.without_terminator())
    if (stage.ops.contains(&op)) {
      auto read = llvm::map_to_vector(op.getResults(), [&](Value result) { return mapping.lookupOrNull(result); });
      inside.clone(op, mapping);
      // What another stage has laid down stays what was read.
      for (auto [result, rows] : llvm::zip_equal(op.getResults(), read))
        if (rows)
          mapping.map(result, rows);
    }
  SmallVector<Value> handedOn, laidDown;
  for (unsigned number : stage.carried)
    handedOn.push_back(mapping.lookupOrDefault(next->getOperand(number)));
  for (Value value : stage.rows)
    laidDown.push_back(reshapeTo(inside, mapping.lookupOrDefault(value), getRowType(value)));
  train::NextOp::create(inside, loop.getLoc(), handedOn, laidDown);
  for (auto [result, number] : llvm::enumerate(stage.carried))
    carriedOut[number] = made.getResult(unsigned(result));
  for (auto [row, value] : llvm::enumerate(stage.rows))
    rowsOf[value] = made.getResult(unsigned(stage.carried.size() + row));
}

void Distribution::write() {
  for (const Stage &stage : stages)
    if (!stage.isEmpty())
      writeStage(stage);
  for (unsigned carried = 0; carried < loop.getNumCarried(); ++carried)
    if (Value out = carriedOut.lookup(carried))
      loop.getResult(carried).replaceAllUsesWith(out);
  for (auto [row, value] : llvm::enumerate(next.getRows()))
    loop.getResult(loop.getNumCarried() + unsigned(row)).replaceAllUsesWith(rowsOf.lookup(value));
  loop.erase();
}

namespace {
struct TrainDistributeLoops : StepPass<lowtide::impl::TrainDistributeLoopsBase<TrainDistributeLoops>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    func::FuncOp step = getOperation();
    auto loops = llvm::to_vector(step.getBody().front().getOps<train::AccumulateOp>());
    if (loops.empty())
      return;
    const ForwardPart forward(step);
    for (train::AccumulateOp loop : loops) {
      const LoopBlocks found(loop, forward, blocks);
      if (found.getNumBlocks() < 2)
        continue;
      Distribution distribution(loop, found);
      if (!distribution.find()) {
        loop.emitRemark(
            "a state that rounds hand on is read by several blocks: each part passes all of them before the next");
        continue;
      }
      numBlocks += found.getNumBlocks();
      distribution.write();
    }
  }
};
} // namespace
