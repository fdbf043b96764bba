//===- CrossLaunches.cpp - one traversal for rows and sums of columns -----===//
//
// The gradients of scales, offsets and biases add up, column by column, what other kernels read or write row by row
// just before. A launch that does both reads it once.
//
//   1. Each column kernel, in program order, looks for a kernel that makes or reads its largest operands: the one that
//      saves most bytes, then the nearest before it, then after it.
//   2. The sums move up to there, if all they need is there and nothing in between reads what they overwrite; or down,
//   if
//      nothing in between reads them or overwrites what they read.
//   3. Code generation says whether one launch can do it.
//
// Sums over everything, such as a norm's, come first: what a loop makes for one alone is made in it. For the CPU they
// stay apart, since it adds up serially what its threads make.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Fusion/CrossLaunches.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Fusion/CheapProducers.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

/// Kernels that are tried for one column kernel; operands and results of a launch.
static constexpr size_t kMaxTrials = 3, kMaxPointers = 60;
/// What may be kept for sums that wait.
static constexpr int64_t kFewElements = 1 << 16, kFewNumbers = 16;

namespace {

class CrossLaunches {
public:
  CrossLaunches(func::FuncOp step, codegen::KernelModule &kernels, unsigned reach,
                function_ref<void(Operation *)> forget)
      : step(step), block(step.getBody().front()), kernels(kernels), reach(reach), forget(forget) {
    unsigned next = 0;
    for (Operation &op : block)
      positions[&op] = next += 2;
    for (OpOperand &use : block.getTerminator()->getOpOperands())
      if (Attribute binding = step.getResultAttr(use.getOperandNumber(), bindingAttrName))
        results[binding].push_back(use.getOperandNumber());
    for (BlockArgument argument : block.getArguments())
      if (Attribute binding = step.getArgAttr(argument.getArgNumber(), bindingAttrName))
        arguments[binding].push_back(argument);
  }
  unsigned run();

private:
  SmallVector<nn::KernelOp> findPartners(nn::KernelOp sums);
  SmallVector<unsigned> getResultsOf(nn::KernelOp kernel);
  bool mayMoveUp(nn::KernelOp sums, nn::KernelOp partner);
  bool isReadFrom(Value root, unsigned position);
  bool mayMoveDown(nn::KernelOp sums, nn::KernelOp partner);
  bool isMadeOfArguments(Operation *maker);
  unsigned findUpdate(BlockArgument argument);
  bool join(nn::KernelOp partner, nn::KernelOp sums);
  nn::KernelOp findLoop(nn::KernelOp total);
  nn::KernelOp absorb(nn::KernelOp loop, nn::KernelOp total);

  func::FuncOp step;
  Block &block;
  codegen::KernelModule &kernels;
  unsigned reach;
  function_ref<void(Operation *)> forget;
  DenseMap<Operation *, unsigned> positions;
  /// Numbers of the step's results, and its arguments, by what they are bound to.
  DenseMap<Attribute, SmallVector<unsigned, 1>> results;
  DenseMap<Attribute, SmallVector<BlockArgument, 1>> arguments;
};

} // namespace

static int64_t countElements(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

static void forEachReader(Value value, function_ref<void(Operation *)> visit) {
  for (Operation *user : value.getUsers())
    if (StepStorage::isView(user))
      forEachReader(user->getResult(0), visit);
    else
      visit(user);
}

/// Kernels that make or read the largest operands of `sums`, the best first.
SmallVector<nn::KernelOp> CrossLaunches::findPartners(nn::KernelOp sums) {
  int64_t most = 0;
  for (Value operand : sums.getOperands())
    most = std::max(most, countElements(operand));
  llvm::MapVector<Operation *, uint64_t> saved;
  llvm::SmallSetVector<Value, 8> roots;
  for (Value operand : sums.getOperands())
    if (countElements(operand) == most)
      roots.insert(StepStorage::getRoot(operand));
  for (Value root : roots) {
    llvm::SmallSetVector<Operation *, 8> near;
    if (Operation *maker = root.getDefiningOp())
      near.insert(maker);
    forEachReader(root, [&](Operation *reader) { near.insert(reader); });
    for (Operation *op : near)
      if (auto kernel = dyn_cast<nn::KernelOp>(op);
          kernel && kernel->getBlock() == &block && kernel != sums &&
          llvm::is_contained({nn::Emitter::row, nn::Emitter::loop, nn::Emitter::cross}, kernel.getEmitter()) &&
          !kernel->hasAttr(recomputedAttrName))
        saved[op] += getTensorBytes(root.getType()).value_or(0);
  }
  auto ranked = saved.takeVector();
  const unsigned own = positions.lookup(sums);
  auto order = [&](auto &each) {
    const unsigned at = positions.lookup(each.first);
    return std::make_tuple(each.second, at < own, at < own ? at : ~at);
  };
  llvm::sort(ranked, [&](auto &a, auto &b) { return order(a) > order(b); });
  SmallVector<nn::KernelOp> partners;
  for (auto &[op, bytes] : ArrayRef(ranked).take_front(kMaxTrials))
    partners.push_back(cast<nn::KernelOp>(op));
  return partners;
}

/// Whether `maker` makes a few numbers of the step's arguments, such as the inverse of a scale: it can come earlier.
bool CrossLaunches::isMadeOfArguments(Operation *maker) {
  auto kernel = dyn_cast<nn::KernelOp>(maker);
  return kernel && !kernel->hasAttr(recomputedAttrName) &&
         llvm::all_of(kernel->getResults(), [](Value result) { return countElements(result) <= kFewNumbers; }) &&
         llvm::all_of(kernel->getOperands(), [&](Value operand) { return isa<BlockArgument>(operand); });
}

/// Numbers of the step's results that show bytes which `kernel` makes.
SmallVector<unsigned> CrossLaunches::getResultsOf(nn::KernelOp kernel) {
  SmallVector<unsigned> numbers;
  SmallVector<Value> shown(kernel->getResults());
  while (!shown.empty())
    for (OpOperand &use : shown.pop_back_val().getUses())
      if (use.getOwner() == block.getTerminator())
        numbers.push_back(use.getOperandNumber());
      else if (StepStorage::isView(use.getOwner()))
        shown.push_back(use.getOwner()->getResult(0));
  return numbers;
}

/// Whether all that `sums` reads is there at `partner`, and nothing in between reads what it overwrites.
bool CrossLaunches::mayMoveUp(nn::KernelOp sums, nn::KernelOp partner) {
  const unsigned from = positions.lookup(partner), to = positions.lookup(sums);
  if (to - from > 2 * reach)
    return false;
  for (Value operand : sums.getOperands()) {
    Operation *maker = StepStorage::getRoot(operand).getDefiningOp();
    if (maker && maker->getBlock() == &block && maker != partner && positions.lookup(maker) >= from &&
        !isMadeOfArguments(maker))
      return false;
  }
  for (unsigned number : getResultsOf(sums)) {
    Attribute binding = step.getResultAttr(number, bindingAttrName);
    for (BlockArgument argument : binding ? ArrayRef(arguments[binding]) : ArrayRef<BlockArgument>()) {
      bool isRead = false;
      forEachReader(argument, [&](Operation *reader) {
        Operation *at = block.findAncestorOpInBlock(*reader);
        isRead |= at != sums && at != partner && positions.lookup(at) > from && positions.lookup(at) < to;
      });
      if (isRead)
        return false;
    }
  }
  return true;
}

/// Position of what writes over `argument`; 0: nothing does.
unsigned CrossLaunches::findUpdate(BlockArgument argument) {
  Attribute binding = step.getArgAttr(argument.getArgNumber(), bindingAttrName);
  unsigned update = 0;
  for (unsigned number : binding ? ArrayRef(results[binding]) : ArrayRef<unsigned>())
    if (Operation *maker = StepStorage::getRoot(block.getTerminator()->getOperand(number)).getDefiningOp())
      update = std::max(update, positions.lookup(maker));
  return update;
}

/// Whether `root` stays for a reader at `position` or later. Arguments always do, and all layers may read one.
bool CrossLaunches::isReadFrom(Value root, unsigned position) {
  bool isRead = isa<BlockArgument>(root);
  if (!isRead)
    forEachReader(
        root, [&](Operation *reader) { isRead |= positions.lookup(block.findAncestorOpInBlock(*reader)) >= position; });
  return isRead;
}

/// Whether `sums` can wait for `partner`.
bool CrossLaunches::mayMoveDown(nn::KernelOp sums, nn::KernelOp partner) {
  const unsigned from = positions.lookup(sums), to = positions.lookup(partner);
  if (to - from > 2 * reach)
    return false;
  for (Value result : sums->getResults()) {
    bool isRead = false;
    forEachReader(result, [&](Operation *reader) {
      Operation *at = block.findAncestorOpInBlock(*reader);
      isRead |= !at->hasTrait<OpTrait::IsTerminator>() && positions.lookup(at) <= to;
    });
    if (isRead)
      return false;
  }
  // Nothing lives longer for it but a few numbers.
  for (Value operand : sums.getOperands()) {
    Value root = StepStorage::getRoot(operand);
    if (auto argument = dyn_cast<BlockArgument>(root)) {
      const unsigned update = argument.getOwner() == &block ? findUpdate(argument) : 0;
      if (update > from && update <= to)
        return false;
    }
    if (countElements(root) > kFewElements && !isReadFrom(root, to))
      return false;
  }
  return true;
}

/// Makes one kernel of both, in the place of `partner`.
bool CrossLaunches::join(nn::KernelOp partner, nn::KernelOp sums) {
  OpBuilder builder(partner);
  SmallVector<Operation *> made;
  struct Moved {
    Operation *op, *next;
    unsigned position;
  };
  SmallVector<Moved> moved;
  auto bring = [&](auto &self, Value value) -> Value {
    Operation *view = value.getDefiningOp();
    if (!view || view->getBlock() != &block || positions.lookup(view) < positions.lookup(partner))
      return value;
    if (auto kernel = dyn_cast<nn::KernelOp>(view)) {
      moved.push_back({kernel, kernel->getNextNode(), positions.lookup(kernel)});
      kernel->moveBefore(partner);
      positions[kernel] = positions.lookup(partner) - 1;
      return value;
    }
    Value operand = self(self, view->getOperand(0));
    Operation *copy = builder.clone(*view);
    copy->setOperand(0, operand);
    positions[copy] = positions.lookup(partner);
    made.push_back(copy);
    return copy->getResult(0);
  };
  auto isHandedOn = [&](Value value) { return StepStorage::getRoot(value).getDefiningOp() == partner; };
  llvm::SmallSetVector<Value, 16> operands(partner.operand_begin(), partner.operand_end());
  DenseMap<Value, Value> brought;
  for (Value operand : sums.getOperands())
    if (!isHandedOn(operand))
      operands.insert(brought[operand] = bring(bring, operand));
  SmallVector<Type> types(partner->getResultTypes());
  llvm::append_range(types, sums->getResultTypes());
  auto joined = nn::KernelOp::create(builder, builder.getFusedLoc({partner.getLoc(), sums.getLoc()}),
                                     nn::Emitter::cross, operands.getArrayRef(), types);
  made.push_back(joined);
  builder.setInsertionPointToEnd(joined.getBlock());
  auto argumentOf = [&](Value operand) {
    return joined.getBlock()->getArgument(llvm::find(operands, operand) - operands.begin());
  };
  SmallVector<Value> yielded;
  IRMapping inner;
  for (auto [argument, operand] : llvm::zip_equal(partner.getBlock()->getArguments(), partner.getOperands()))
    inner.map(argument, argumentOf(operand));
  for (Operation &op : partner.getBlock()->without_terminator())
    builder.clone(op, inner);
  for (Value value : partner.getYield().getOperands())
    yielded.push_back(inner.lookup(value));
  // A result of `partner`, as the sums see it.
  auto handOn = [&](auto &self, Value value) -> Value {
    if (value.getDefiningOp() == partner)
      return yielded[cast<OpResult>(value).getResultNumber()];
    Value operand = self(self, value.getDefiningOp()->getOperand(0));
    Operation *copy = builder.clone(*value.getDefiningOp());
    copy->setOperand(0, operand);
    return copy->getResult(0);
  };
  IRMapping outer;
  for (auto [argument, operand] : llvm::zip_equal(sums.getBlock()->getArguments(), sums.getOperands()))
    outer.map(argument, isHandedOn(operand) ? handOn(handOn, operand) : argumentOf(brought.lookup(operand)));
  for (Operation &op : sums.getBlock()->without_terminator())
    builder.clone(op, outer);
  for (Value value : sums.getYield().getOperands())
    yielded.push_back(outer.lookup(value));
  nn::YieldOp::create(builder, joined.getLoc(), yielded);
  if (joined.getNumOperands() + joined.getNumResults() > kMaxPointers || failed(kernels.add(joined))) {
    for (Operation *op : llvm::reverse(made))
      op->erase();
    for (const Moved &each : llvm::reverse(moved)) {
      each.op->moveBefore(each.next);
      positions[each.op] = each.position;
    }
    return false;
  }
  positions[joined] = positions.lookup(partner);
  for (auto [i, result] : llvm::enumerate(llvm::concat<Value>(partner.getResults(), sums.getResults())))
    result.replaceAllUsesWith(joined.getResult(i));
  for (nn::KernelOp gone : {sums, partner}) {
    forget(gone);
    positions.erase(gone);
    gone.erase();
  }
  return true;
}

/// A loop that makes nothing but one operand of `total`, element by element.
nn::KernelOp CrossLaunches::findLoop(nn::KernelOp total) {
  for (auto [argument, operand] : llvm::zip_equal(total.getBlock()->getArguments(), total.getOperands())) {
    auto loop = operand.getDefiningOp<nn::KernelOp>();
    if (!loop || loop.getEmitter() != nn::Emitter::loop || loop->getNumResults() != 1 || !operand.hasOneUse() ||
        loop->hasAttr(recomputedAttrName) || loop->getBlock() != &block || countElements(operand) <= kFewNumbers)
      continue;
    const bool isPlain = llvm::all_of(loop.getBlock()->without_terminator(), [](Operation &op) {
      return op.hasTrait<OpTrait::Elementwise>() || op.hasTrait<OpTrait::ConstantLike>() || repeatsElements(&op);
    });
    const bool isTakenInPlace = llvm::all_of(argument.getUsers(), [](Operation *user) {
      return user->hasTrait<OpTrait::Elementwise>() || isa<ReductionInterface>(user);
    });
    const unsigned from = positions.lookup(loop), to = positions.lookup(total);
    const bool isOverwritten = llvm::any_of(loop->getOperands(), [&](Value read) {
      auto root = dyn_cast<BlockArgument>(StepStorage::getRoot(read));
      const unsigned update = root && root.getOwner() == &block ? findUpdate(root) : 0;
      return update > from && update <= to;
    });
    // What it reads lives as long as what it made did: that must not be more.
    uint64_t keptBytes = 0;
    for (Value read : loop->getOperands()) {
      Value root = StepStorage::getRoot(read);
      if (countElements(root) > kFewNumbers && !isReadFrom(root, to))
        keptBytes += getTensorBytes(root.getType()).value_or(0);
    }
    if (isPlain && isTakenInPlace && !isOverwritten && to - from <= 2 * reach &&
        keptBytes <= getTensorBytes(operand.getType()).value_or(0))
      return loop;
  }
  return {};
}

/// `total` with what `loop` makes; null, with nothing changed, where no kernel can do both.
nn::KernelOp CrossLaunches::absorb(nn::KernelOp loop, nn::KernelOp total) {
  OpBuilder builder(total);
  const Value made = loop.getResult(0);
  llvm::SmallSetVector<Value, 16> operands(loop.operand_begin(), loop.operand_end());
  for (Value operand : total.getOperands())
    if (operand != made)
      operands.insert(operand);
  auto both = nn::KernelOp::create(builder, builder.getFusedLoc({loop.getLoc(), total.getLoc()}), total.getEmitter(),
                                   operands.getArrayRef(), total->getResultTypes());
  builder.setInsertionPointToEnd(both.getBlock());
  auto argumentOf = [&](Value operand) {
    return both.getBlock()->getArgument(llvm::find(operands, operand) - operands.begin());
  };
  IRMapping inner, outer;
  for (auto [argument, operand] : llvm::zip_equal(loop.getBlock()->getArguments(), loop.getOperands()))
    inner.map(argument, argumentOf(operand));
  for (Operation &op : loop.getBlock()->without_terminator())
    builder.clone(op, inner);
  for (auto [argument, operand] : llvm::zip_equal(total.getBlock()->getArguments(), total.getOperands()))
    outer.map(argument, operand == made ? inner.lookup(loop.getYield().getOperand(0)) : Value(argumentOf(operand)));
  for (Operation &op : *total.getBlock())
    builder.clone(op, outer);
  if (operands.size() + both.getNumResults() > kMaxPointers || failed(kernels.add(both))) {
    both.erase();
    return {};
  }
  positions[both] = positions.lookup(total);
  total.replaceAllUsesWith(both.getResults());
  for (nn::KernelOp gone : {total, loop}) {
    forget(gone);
    positions.erase(gone);
    gone.erase();
  }
  return both;
}

unsigned CrossLaunches::run() {
  unsigned numGone = 0;
  SmallVector<nn::KernelOp> totals;
  for (auto kernel : block.getOps<nn::KernelOp>())
    if (kernel.getEmitter() == nn::Emitter::row && !kernel->hasAttr(recomputedAttrName) &&
        llvm::all_of(kernel->getResults(), [](Value result) { return countElements(result) == 1; }))
      totals.push_back(kernel);
  for (nn::KernelOp total : totals)
    while (nn::KernelOp loop = total ? findLoop(total) : nn::KernelOp())
      if ((total = absorb(loop, total)))
        ++numGone;
  SmallVector<nn::KernelOp> columns;
  for (auto kernel : block.getOps<nn::KernelOp>())
    if (kernel.getEmitter() == nn::Emitter::column && !kernel->hasAttr(recomputedAttrName))
      columns.push_back(kernel);
  for (nn::KernelOp sums : columns)
    for (nn::KernelOp partner : findPartners(sums))
      if ((positions.lookup(partner) < positions.lookup(sums) ? mayMoveUp(sums, partner)
                                                              : mayMoveDown(sums, partner)) &&
          join(partner, sums)) {
        ++numGone;
        break;
      }
  return numGone;
}

unsigned lowtide::crossLaunches(func::FuncOp step, codegen::KernelModule &kernels, unsigned reach,
                                function_ref<void(Operation *)> forget) {
  return CrossLaunches(step, kernels, reach, forget).run();
}
