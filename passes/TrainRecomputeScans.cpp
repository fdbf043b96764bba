//===- TrainRecomputeScans.cpp - segments compute what they would keep ----===//
//
// A loop over segments of steps lays down, as rows, what its derivative reads part by part. A round of the derivative
// can compute its part itself: from the segment's slices, what all rounds read, and the state that the segment started
// with, which is a row, too.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Dialect/NN/Scan.h"
#include "lowtide/Support/RecomputedSteps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINRECOMPUTESCANS
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;
using nn::Expr;

static RankedTensorType getType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The same scan with other slices, reads and rows, and an empty body.
static nn::ScanOp rebuild(nn::ScanOp scan, ValueRange slices, ValueRange reads, TypeRange rows) {
  OpBuilder builder(scan);
  return nn::ScanOp::create(builder, scan.getLoc(), scan.getRounds(), scan.getReversed(), slices, scan.getCarried(),
                            reads, rows);
}

namespace {
/// Rows of one loop that another computes itself.
class Recomputation {
public:
  Recomputation(nn::ScanOp maker, nn::ScanOp reader, bool takesSteps)
      : maker(maker), reader(reader), takesSteps(takesSteps) {}

  /// Finds the rows; how many there are.
  unsigned find();
  /// Writes the reader anew, which is returned.
  nn::ScanOp write();

private:
  bool isKeptFor(Value rows);
  bool collect(Value row);
  Value findStart(unsigned state);

  nn::ScanOp maker, reader;
  /// Steps run once more; otherwise only what is made without them.
  bool takesSteps;
  /// Of the reader's slices, those that are computed.
  llvm::SmallSetVector<unsigned, 8> slices;
  /// Ops and arguments of the maker's body that they are made of.
  llvm::DenseSet<Operation *> ops;
  llvm::SmallSetVector<BlockArgument, 8> arguments;
};
} // namespace

/// Whether nothing but loops of as many rounds reads `rows`, part by part.
bool Recomputation::isKeptFor(Value rows) {
  return llvm::all_of(rows.getUses(), [&](OpOperand &use) {
    auto scan = dyn_cast<nn::ScanOp>(use.getOwner());
    return scan && scan.getRounds() == maker.getRounds() && use.getOperandNumber() < scan.getNumSliced();
  });
}

/// Collects what `row` is made of; false where it is no more than an argument, or is not to be made once more.
bool Recomputation::collect(Value row) {
  llvm::SetVector<Operation *> needed;
  llvm::SmallSetVector<BlockArgument, 8> given;
  SmallVector<Value> worklist{row};
  bool isView = true, hasSteps = false;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      const unsigned number = argument.getArgNumber();
      hasSteps |= number >= maker.getNumSliced() && number < maker.getNumSliced() + maker.getNumCarried();
      given.insert(argument);
      continue;
    }
    Operation *op = value.getDefiningOp();
    auto facts = dyn_cast<FactsInterface>(op);
    isView &= facts && facts.getFacts().aliasing == Aliasing::View;
    hasSteps |= op->getNumRegions() > 0;
    if (needed.insert(op))
      llvm::append_range(worklist, op->getOperands());
  }
  if (isView || (hasSteps && !takesSteps))
    return false;
  ops.insert(needed.begin(), needed.end());
  arguments.insert(given.begin(), given.end());
  return true;
}

unsigned Recomputation::find() {
  for (auto [i, whole] : llvm::enumerate(reader.getSliced())) {
    auto rows = dyn_cast<OpResult>(whole);
    if (rows && rows.getOwner() == maker && rows.getResultNumber() >= maker.getNumCarried() && isKeptFor(rows) &&
        collect(maker.getNext()->getOperand(rows.getResultNumber())))
      slices.insert(unsigned(i));
  }
  return slices.size();
}

/// The rows that hold what a state is before each round; the maker is replaced by one that has them.
Value Recomputation::findStart(unsigned state) {
  Value argument = maker.getBlock()->getArgument(maker.getNumSliced() + state);
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, getType(argument).getShape());
  nn::NextOp next = maker.getNext();
  for (unsigned j = maker.getNumCarried(); j < next->getNumOperands(); ++j)
    if (auto view = next->getOperand(j).getDefiningOp<nn::ReshapeOp>();
        view && view.getX() == argument && getType(view).getShape() == ArrayRef(shape))
      return maker->getResult(j);
  OpBuilder inside(next);
  next.getRowsMutable().append(nn::reshape(Expr(inside, argument.getLoc(), argument), shape).get());
  nn::ScanOp longer = rebuild(maker, maker.getSliced(), maker.getCaptured(), next.getRows().getTypes());
  longer.getBody().takeBody(maker.getBody());
  maker->replaceAllUsesWith(longer->getResults().drop_back());
  maker.erase();
  maker = longer;
  return maker->getResults().back();
}

nn::ScanOp Recomputation::write() {
  const unsigned sliced = maker.getNumSliced(), carried = maker.getNumCarried();
  // Before anything is noted, since the maker may change.
  for (BlockArgument argument : arguments)
    if (unsigned number = argument.getArgNumber(); number >= sliced && number < sliced + carried)
      findStart(number - sliced);
  SmallVector<Value> wholes, reads(reader.getCaptured());
  SmallVector<unsigned> left;
  for (unsigned i = 0; i < reader.getNumSliced(); ++i)
    if (!slices.contains(i)) {
      left.push_back(i);
      wholes.push_back(reader.getSliced()[i]);
    }
  auto find = [](SmallVectorImpl<Value> &list, Value value) {
    auto known = llvm::find(list, value);
    if (known == list.end()) {
      list.push_back(value);
      return unsigned(list.size() - 1);
    }
    return unsigned(known - list.begin());
  };
  // What stands for an argument of the maker: a slice or a read of that number.
  SmallVector<std::pair<BlockArgument, unsigned>> parts, same;
  for (BlockArgument argument : arguments) {
    const unsigned number = argument.getArgNumber();
    if (number < sliced)
      parts.push_back({argument, find(wholes, maker->getOperand(number))});
    else if (number < sliced + carried)
      parts.push_back({argument, find(wholes, findStart(number - sliced))});
    else
      same.push_back({argument, find(reads, maker->getOperand(number))});
  }
  nn::ScanOp shorter = rebuild(reader, wholes, reads, reader.getNext().getRows().getTypes());
  Block &body = *shorter.getBlock();
  OpBuilder inside = OpBuilder::atBlockEnd(&body);
  IRMapping again, mapping;
  const unsigned firstRead = unsigned(wholes.size()) + reader.getNumCarried();
  for (auto [argument, i] : parts)
    again.map(argument, nn::reshape(Expr(inside, reader.getLoc(), body.getArgument(i)), getType(argument).getShape()));
  for (auto [argument, i] : same)
    again.map(argument, body.getArgument(firstRead + i));
  for (Operation &op : *maker.getBlock())
    if (ops.contains(&op))
      inside.clone(op, again);
  Block *old = reader.getBlock();
  for (auto [to, from] : llvm::enumerate(left))
    mapping.map(old->getArgument(from), body.getArgument(unsigned(to)));
  for (unsigned i : slices) {
    auto rows = cast<OpResult>(reader.getSliced()[i]);
    mapping.map(old->getArgument(i), again.lookup(maker.getNext()->getOperand(rows.getResultNumber())));
  }
  for (unsigned i = 0; i < reader.getNumCarried(); ++i)
    mapping.map(old->getArgument(reader.getNumSliced() + i), body.getArgument(unsigned(wholes.size()) + i));
  for (unsigned i = 0; i < reader.getCaptured().size(); ++i)
    mapping.map(old->getArgument(reader.getNumSliced() + reader.getNumCarried() + i), body.getArgument(firstRead + i));
  for (Operation &op : *old)
    inside.clone(op, mapping);
  reader->replaceAllUsesWith(shorter->getResults());
  reader.erase();
  return shorter;
}

namespace {
struct TrainRecomputeScans : StepPass<lowtide::impl::TrainRecomputeScansBase<TrainRecomputeScans>> {
  using StepPass::StepPass;

  /// What of the reader's slices a loop before it has made, which goes the other way. A round that is one step has
  /// nothing that is worth it: its derivative computes the step anyway.
  std::optional<Recomputation> findNext(nn::ScanOp reader) {
    for (Value whole : reader.getSliced()) {
      auto maker = whole.getDefiningOp<nn::ScanOp>();
      if (!maker || maker->getBlock() != reader->getBlock() || maker.getRounds() != reader.getRounds() ||
          maker.getReversed() == reader.getReversed() || maker.getBlock()->getOps<nn::ScanOp>().empty())
        continue;
      Recomputation again(maker, reader, parseRecomputedSteps(recompute) == RecomputedSteps::All);
      if (unsigned found = again.find()) {
        numRecomputed += found;
        return again;
      }
    }
    return std::nullopt;
  }

  void runOnSteps() override {
    if (failed(checkOption(
            getOperation(), "recompute", recompute,
            {OptionCheck::Kind::Words, {std::begin(recomputedStepsNames), std::end(recomputedStepsNames)}})))
      return signalPassFailure();
    if (parseRecomputedSteps(recompute) == RecomputedSteps::None)
      return;
    SmallVector<nn::ScanOp> readers;
    getOperation()->walk([&](nn::ScanOp scan) { readers.push_back(scan); });
    for (nn::ScanOp reader : readers)
      while (std::optional<Recomputation> again = findNext(reader))
        reader = again->write();
  }
};
} // namespace
