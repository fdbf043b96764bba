//===- NNSegmentScans.cpp - long loops over steps as loops of loops -------===//
//
// A scan of T steps becomes a scan of segments of about √T steps whose round is a scan of one segment's steps. Its
// derivative, which is one by the same rule, then lets a plan keep the state at the start of each segment only.
//
//   1. The state after the last step is read there, not from the rows of all steps.
//   2. What a slice is made of step by step (the products with the input) is made segment by segment, followed
//      backwards op by op (BatchInterface), with steps for samples. A batch whose steps are in another dimension than
//      the first is read there by their numbers, and never transposed whole.
//   3. Steps that are left when T is no multiple of a segment's come after the segments, in a scan of their own.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/Scan.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

namespace lowtide {
#define GEN_PASS_DEF_NNSEGMENTSCANS
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;
using nn::Expr;

static RankedTensorType getType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Steps of a segment: a divisor of `steps` near its root where there is one, since what is left takes copies.
static int64_t chooseSegment(int64_t steps) {
  const auto root = int64_t(std::llround(std::sqrt(double(steps))));
  for (int64_t away = 0; away <= root / 2; ++away)
    for (int64_t length : {root + away, root - away})
      if (length > 1 && steps % length == 0)
        return length;
  return root;
}

namespace {
/// What the slices of a scan are made of step by step: dimension 0 of all these values counts steps.
class Producers {
public:
  explicit Producers(nn::ScanOp scan) : scan(scan), steps(scan.getRounds()) {
    for (Value whole : scan.getSliced())
      follow(whole);
  }

  /// Values that are cut into steps, and values that are the same in every step.
  llvm::SmallSetVector<Value, 4> leaves, fixed;
  /// Arrays of the batch with steps in another dimension than the first: read there, they need not be transposed whole.
  llvm::SmallSetVector<Operation *, 2> turned;
  /// Writes what leads from `count` steps' parts of the leaves to the slices; `mapping` has the parts.
  void write(OpBuilder &builder, int64_t count, IRMapping &mapping) const;
  RankedTensorType ofSteps(Value whole, int64_t count) const {
    SmallVector<int64_t> shape(getType(whole).getShape());
    shape[0] = shape[0] / steps * count;
    return getType(whole).clone(shape);
  }

private:
  void follow(Value whole);
  std::optional<SmallVector<bool>> findCut(Operation *op) const;
  bool isTurnedBatch(Operation *op) const;
  bool countsSteps(Value value) const {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() && type.getDimSize(0) && type.getDimSize(0) % steps == 0;
  }
  BatchPosition positionOf(Value value) const { return {0, 1, getType(value).getDimSize(0) / steps}; }

  nn::ScanOp scan;
  int64_t steps;
  /// Makers before readers.
  llvm::SmallSetVector<Operation *, 8> ops;
};

/// A scan on its way into segments.
class Segments {
public:
  explicit Segments(nn::ScanOp scan)
      : scan(scan), builder(scan), steps(scan.getRounds()), length(chooseSegment(steps)), producers(scan) {}

  /// Bytes that the steps leave for their derivative.
  static uint64_t countKeptBytes(nn::ScanOp scan);
  void write();

private:
  using Parts = std::pair<SmallVector<Value>, SmallVector<Value>>;
  Value cut(Value leaf, int64_t first, int64_t count);
  Parts writeSteps(OpBuilder &where, int64_t count, IRMapping &mapping, ValueRange carried);
  Parts writeSegments(int64_t first, int64_t count);

  nn::ScanOp scan;
  OpBuilder builder;
  int64_t steps, length;
  Producers producers;
};
} // namespace

/// Which operands of `op` are cut into steps when its result is; nothing: it does not treat steps one by one.
std::optional<SmallVector<bool>> Producers::findCut(Operation *op) const {
  auto facts = dyn_cast<FactsInterface>(op);
  auto batch = dyn_cast<BatchInterface>(op);
  if (!facts || !batch || op->getNumRegions() || op->getNumResults() != 1 || !isPure(op))
    return std::nullopt;
  const OpFamily family = facts.getFacts().family;
  if (family != OpFamily::Elementwise && family != OpFamily::Movement && family != OpFamily::Contraction)
    return std::nullopt;
  for (OpOperand &tried : op->getOpOperands()) {
    if (!countsSteps(tried.get()))
      continue;
    SmallVector<std::optional<BatchPosition>> positions(op->getNumOperands());
    positions[tried.getOperandNumber()] = positionOf(tried.get());
    BatchSplit answer(op, steps, positions, /*allSums=*/false);
    if (failed(batch.splitBatch(answer)) || answer.results.front().kind != BatchSplit::Kind::Rows ||
        !(answer.results.front().position == positionOf(op->getResult(0))))
      continue;
    answer.required[tried.getOperandNumber()] = positions[tried.getOperandNumber()];
    SmallVector<bool> cut;
    bool isWhole = true;
    for (auto [operand, required] : llvm::zip_equal(op->getOperands(), answer.required)) {
      cut.push_back(required.has_value());
      isWhole &= !required || (countsSteps(operand) && *required == positionOf(operand));
    }
    if (isWhole)
      return cut;
  }
  return std::nullopt;
}

/// Whether `op` brings the steps of an array of the batch, which needs no gradient, to the front.
bool Producers::isTurnedBatch(Operation *op) const {
  auto transpose = dyn_cast_or_null<nn::TransposeOp>(op);
  auto array = transpose ? dyn_cast<BlockArgument>(transpose.getX()) : BlockArgument();
  auto step = array ? dyn_cast<func::FuncOp>(array.getOwner()->getParentOp()) : func::FuncOp();
  return step && isa_and_nonnull<train::BatchAttr>(train::getArgBinding(step, array.getArgNumber())) &&
         getType(transpose.getY()).getDimSize(0) == steps;
}

void Producers::follow(Value whole) {
  Operation *op = whole.getDefiningOp();
  if (isTurnedBatch(op)) {
    turned.insert(op);
    fixed.insert(op->getOperand(0));
    return;
  }
  DenseElementsAttr constant;
  if (op && matchPattern(op, m_Constant(&constant)) && constant.isSplat()) {
    ops.insert(op);
    return;
  }
  // A value that repeats a smaller one in every step.
  auto broadcast = dyn_cast_or_null<nn::BroadcastOp>(op);
  if (broadcast && !llvm::is_contained(broadcast.getDims(), 0)) {
    fixed.insert(broadcast.getX());
    ops.insert(op);
    return;
  }
  // What others read, too, is made once; views are free, and so is what repeats a smaller value.
  const bool isFree = broadcast || (op && StepStorage::isView(op));
  std::optional<SmallVector<bool>> cut = op && (isFree || whole.hasOneUse()) ? findCut(op) : std::nullopt;
  if (!cut) {
    leaves.insert(whole);
    return;
  }
  for (auto [operand, isCut] : llvm::zip_equal(op->getOperands(), *cut))
    if (isCut)
      follow(operand);
    else
      fixed.insert(operand);
  ops.insert(op);
}

void Producers::write(OpBuilder &builder, int64_t count, IRMapping &mapping) const {
  for (Operation *op : ops) {
    Operation *part = builder.clone(*op, mapping);
    RankedTensorType type = ofSteps(op->getResult(0), count);
    part->getResult(0).setType(type);
    if (auto constant = dyn_cast<nn::ConstantOp>(part))
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type));
  }
}

uint64_t Segments::countKeptBytes(nn::ScanOp scan) {
  uint64_t slices = 0, states = 0;
  for (Value whole : scan.getSliced())
    slices += getTensorBytes(whole.getType()).value_or(0);
  for (Value state : scan.getCarried())
    states += getTensorBytes(state.getType()).value_or(0);
  return slices + states * uint64_t(scan.getRounds());
}

Value Segments::cut(Value leaf, int64_t first, int64_t count) {
  if (count == steps)
    return leaf;
  Expr whole(builder, scan.getLoc(), leaf);
  SmallVector<int64_t> starts(whole.rank(), 0);
  starts[0] = whole.dim(0) / steps * first;
  return nn::slice(whole, starts, producers.ofSteps(leaf, count).getShape());
}

/// `count` steps, one after the other: what they carry on, and their rows.
Segments::Parts Segments::writeSteps(OpBuilder &where, int64_t count, IRMapping &mapping, ValueRange carried) {
  producers.write(where, count, mapping);
  auto mapped = [&](Value value) { return mapping.lookupOrDefault(value); };
  nn::NextOp next = scan.getNext();
  auto loop =
      nn::ScanOp::create(where, scan.getLoc(), count, scan.getReversed(), llvm::map_to_vector(scan.getSliced(), mapped),
                         carried, llvm::map_to_vector(scan.getCaptured(), mapped), next.getRows().getTypes());
  IRMapping inside;
  inside.map(scan.getBlock()->getArguments(), loop.getBlock()->getArguments());
  OpBuilder body = OpBuilder::atBlockEnd(loop.getBlock());
  for (Operation &op : *scan.getBlock())
    body.clone(op, inside);
  const unsigned numCarried = scan.getNumCarried();
  return {SmallVector<Value>(loop->getResults().take_front(numCarried)),
          SmallVector<Value>(loop->getResults().drop_front(numCarried))};
}

/// A loop over the segments of `count` steps from `first` on.
Segments::Parts Segments::writeSegments(int64_t first, int64_t count) {
  for (Value value : scan.getCaptured())
    producers.fixed.insert(value);
  SmallVector<Value> slices;
  for (Value leaf : producers.leaves)
    slices.push_back(cut(leaf, first, count));
  if (!producers.turned.empty())
    slices.push_back(
        cut(nn::iota(builder, scan.getLoc(), RankedTensorType::get({steps}, builder.getI64Type()), 0), first, count));
  SmallVector<Type> rows;
  for (Value row : scan.getNext().getRows()) {
    SmallVector<int64_t> shape(getType(row).getShape());
    shape[0] *= length;
    rows.push_back(getType(row).clone(shape));
  }
  auto loop = nn::ScanOp::create(builder, scan.getLoc(), count / length, scan.getReversed(), slices, scan.getCarried(),
                                 producers.fixed.getArrayRef(), rows);
  auto arguments = loop.getBlock()->getArguments();
  IRMapping mapping;
  mapping.map(producers.leaves.getArrayRef(), arguments.take_front(producers.leaves.size()));
  mapping.map(producers.fixed.getArrayRef(), arguments.take_back(producers.fixed.size()));
  OpBuilder inside = OpBuilder::atBlockEnd(loop.getBlock());
  for (Operation *op : producers.turned) {
    auto transpose = cast<nn::TransposeOp>(op);
    Expr array(inside, scan.getLoc(), mapping.lookup(transpose.getX())),
        numbers = array.with(arguments[producers.leaves.size()]);
    Expr part = nn::gather(array, numbers, transpose.getPermutation()[0]);
    mapping.map(transpose.getY(), nn::transpose(part, transpose.getPermutation()).get());
  }
  auto [carried, made] = writeSteps(inside, length, mapping, arguments.slice(slices.size(), scan.getNumCarried()));
  nn::NextOp::create(inside, scan.getLoc(), carried, made);
  const unsigned numCarried = scan.getNumCarried();
  return {SmallVector<Value>(loop->getResults().take_front(numCarried)),
          SmallVector<Value>(loop->getResults().drop_front(numCarried))};
}

void Segments::write() {
  const int64_t left = steps % length;
  // A reversed scan walks from the last step on.
  auto [carried, rows] = writeSegments(scan.getReversed() ? left : 0, steps - left);
  if (left) {
    IRMapping mapping;
    for (Value leaf : producers.leaves)
      mapping.map(leaf, cut(leaf, scan.getReversed() ? 0 : steps - left, left));
    for (Operation *op : producers.turned)
      mapping.map(op->getResult(0), cut(op->getResult(0), scan.getReversed() ? 0 : steps - left, left));
    auto [last, others] = writeSteps(builder, left, mapping, carried);
    carried = last;
    for (auto [row, other] : llvm::zip_equal(rows, others)) {
      Expr main(builder, scan.getLoc(), row), rest = main.with(other);
      row = scan.getReversed() ? nn::concat({rest, main}, 0) : nn::concat({main, rest}, 0);
    }
  }
  llvm::append_range(carried, rows);
  scan->replaceAllUsesWith(carried);
  scan->erase();
}

/// The row of the last step is the state that the scan carries on: who reads that row alone reads the state.
static void readLastState(nn::ScanOp scan) {
  const unsigned carried = scan.getNumCarried();
  for (auto [j, row] : llvm::enumerate(scan.getNext().getRows())) {
    auto view = row.getDefiningOp<nn::ReshapeOp>();
    const auto state = llvm::find(scan.getNext().getCarried(), view ? view.getX() : Value());
    if (state == scan.getNext().getCarried().end() || getType(row).getDimSize(0) != 1 ||
        getType(row).getShape().drop_front() != getType(*state).getShape())
      continue;
    OpBuilder builder(scan->getBlock(), std::next(Block::iterator(scan)));
    Value result = scan->getResult(unsigned(state - scan.getNext().getCarried().begin()));
    auto readAt = [&](nn::SliceOp slice, int64_t dim, ArrayRef<int64_t> permutation) {
      if (slice.getType().getDimSize(dim) != 1 ||
          slice.getStarts()[dim] != (scan.getReversed() ? 0 : scan.getRounds() - 1))
        return;
      builder.setInsertionPoint(slice);
      Expr last(builder, slice.getLoc(), result);
      last = nn::reshape(last, getType(row).getShape());
      if (!permutation.empty())
        last = nn::transpose(last, permutation);
      SmallVector<int64_t> starts(slice.getStarts());
      starts[dim] = 0;
      slice.replaceAllUsesWith(nn::slice(last, starts, slice.getType().getShape(), slice.getStrides()).get());
    };
    for (Operation *user : scan->getResult(carried + unsigned(j)).getUsers()) {
      if (auto slice = dyn_cast<nn::SliceOp>(user))
        readAt(slice, 0, {});
      if (auto turned = dyn_cast<nn::TransposeOp>(user)) {
        const auto dim = llvm::find(turned.getPermutation(), 0) - turned.getPermutation().begin();
        for (Operation *reader : turned->getUsers())
          if (auto slice = dyn_cast<nn::SliceOp>(reader))
            readAt(slice, dim, turned.getPermutation());
      }
    }
  }
}

namespace {
struct NNSegmentScans : StepPass<lowtide::impl::NNSegmentScansBase<NNSegmentScans>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    auto model = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!model || model.isExternal())
      return;
    SmallVector<nn::ScanOp> scans;
    for (auto scan : model.getBody().front().getOps<nn::ScanOp>())
      scans.push_back(scan);
    for (nn::ScanOp scan : scans) {
      const uint64_t bytes = Segments::countKeptBytes(scan);
      // A loop in a loop is one of segments already, or has no steps of one kind.
      if (scan.getRounds() < kFewestSteps || bytes < uint64_t(minBytes) || scan.getNumCarried() == 0 ||
          !scan.getBlock()->getOps<nn::ScanOp>().empty())
        continue;
      readLastState(scan);
      Segments segments(scan);
      const int64_t steps = scan.getRounds(), length = chooseSegment(steps);
      scan.emitRemark("loop of ") << steps << " steps, which leaves " << formatBytes(bytes)
                                  << " for its derivative, in segments of " << length;
      segments.write();
      ++numSegmented;
    }
  }

  static constexpr int64_t kFewestSteps = 8;
};
} // namespace
