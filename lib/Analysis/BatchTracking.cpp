//===- BatchTracking.cpp - where a step counts samples ----------*- C++ -*-===//
//
// 1. One walk in the order of the text.
// 2. A state that follows the parts starts each of them from what the one before left, so whatever is made of it
//    belongs to the part, too: such states are marked, and the walk is taken again until no further one is found.
// 3. Where a draw counts samples and what reads it has none, or has them elsewhere, the draw is made for the whole
//    batch, and the walk is taken again.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Analysis/BatchTracking.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

FailureOr<BatchTracking> BatchTracking::compute(func::FuncOp step) {
  if (!step.getBody().hasOneBlock())
    return step.emitError("is not one block of instructions");
  BatchTracking tracking;
  while (true) {
    BatchTracking next;
    const size_t draws = tracking.wholeDraws.size();
    const LogicalResult walked = tracking.run(step);
    next.wholeDraws = tracking.wholeDraws;
    if (next.wholeDraws.size() > draws) {
      next.updates = tracking.updates;
      tracking = std::move(next);
      continue;
    }
    if (failed(walked))
      return failure();
    if (!tracking.findUpdates(step, next))
      return tracking;
    tracking = std::move(next);
  }
}

LogicalResult BatchTracking::run(func::FuncOp step) {
  for (auto [state, update] : updates)
    states[state] = {Kind::Statistic, {}};
  if (failed(start(step)))
    return failure();
  for (Operation &op : step.getBody().front().without_terminator())
    if (failed(visit(&op)))
      return failure();
  return success();
}

/// Notes the states that follow the parts in `next`; returns whether there are more than this walk knew.
bool BatchTracking::findUpdates(func::FuncOp step, BatchTracking &next) const {
  auto bindingOf = [](Attribute binding) { return dyn_cast_or_null<BindingInterface>(binding); };
  Operation *terminator = step.getBody().front().getTerminator();
  for (OpOperand &result : terminator->getOpOperands()) {
    auto made = bindingOf(step.getResultAttr(result.getOperandNumber(), bindingAttrName));
    if (getKind(result.get()) != Kind::Statistic || !made || made.getBindingKind() != BindingKind::State)
      continue;
    for (BlockArgument argument : step.getArguments()) {
      auto held = bindingOf(step.getArgAttr(argument.getArgNumber(), bindingAttrName));
      if (held && held.getBindingKind() == BindingKind::State && held.getName() == made.getName() &&
          argument != result.get())
        next.updates[argument] = result.get();
    }
  }
  return next.updates.size() > updates.size();
}

LogicalResult BatchTracking::start(func::FuncOp step) {
  StringAttr first;
  for (BlockArgument argument : step.getArguments()) {
    auto binding = dyn_cast_or_null<BindingInterface>(step.getArgAttr(argument.getArgNumber(), bindingAttrName));
    if (!binding)
      continue;
    if (binding.getBindingKind() == BindingKind::Scalar && binding.getName() == StringRef(rowScalar))
      states[argument] = {Kind::FirstSample, {BatchPosition::firstSample}};
    int64_t dim = binding.getBatchDim();
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (binding.getBindingKind() != BindingKind::Batch || dim < 0 || !type || dim >= type.getRank())
      continue;
    if (!samples) {
      samples = type.getDimSize(dim);
      first = binding.getName();
    } else if (samples != type.getDimSize(dim)) {
      return step.emitError("batch array ")
             << binding.getName() << " has " << type.getDimSize(dim) << " samples, " << first << " has " << samples;
    }
    states[argument] = {Kind::Rows, {dim}};
  }
  return success();
}

/// Notes the draws that `op` reads; whether there are further ones.
bool BatchTracking::findDraws(Operation *op) {
  llvm::SetVector<Value> read;
  auto addDrawn = [&](Operation *reader) {
    for (Value operand : reader->getOperands())
      if (drawn.contains(operand))
        read.insert(operand);
  };
  addDrawn(op);
  const size_t before = wholeDraws.size();
  for (size_t i = 0; i < read.size(); ++i) {
    Operation *maker = read[i].getDefiningOp();
    if (llvm::any_of(maker->getOperands(), [&](Value operand) { return getKind(operand) == Kind::FirstSample; }))
      wholeDraws.insert(maker);
    addDrawn(maker);
  }
  return wholeDraws.size() > before;
}

static uint64_t sumBytes(ValueRange values) {
  uint64_t bytes = 0;
  for (Value value : values)
    bytes += getTensorBytes(value.getType()).value_or(0);
  return bytes;
}

LogicalResult BatchTracking::visit(Operation *op) {
  if (wholeDraws.contains(op))
    return success();
  SmallVector<std::optional<BatchPosition>> positions;
  bool anyRows = false, anyStatistic = false, allSums = op->getNumOperands() > 0;
  for (Value operand : op->getOperands()) {
    State state = get(operand);
    bool counts = state.kind == Kind::Rows || state.kind == Kind::FirstSample;
    positions.push_back(counts ? std::optional(state.position) : std::nullopt);
    anyRows |= counts;
    anyStatistic |= state.kind == Kind::Statistic;
    allSums &= state.kind == Kind::Sum;
  }
  // What needs no part of the batch stays outside; terms are added up inside where that leaves less to keep.
  bool mayAddTerms = allSums && sumBytes(op->getResults()) <= sumBytes(op->getOperands());
  if (!anyRows && !anyStatistic && !mayAddTerms)
    return success();

  // What is no op of a model (it limits or applies gradients) takes rows of all samples, too: of a parameter that has a
  // row for each.
  auto batch = dyn_cast<BatchInterface>(op);
  if (!batch && (mayAddTerms || (!anyStatistic && !op->getNumRegions())))
    return success();
  BatchSplit split(op, samples, positions, mayAddTerms);
  split.canRenumber = true;
  LogicalResult answer = success();
  const bool anySelected =
      llvm::any_of(positions, [](const auto &position) { return position && position->selection; });
  if (op->getNumRegions() && anySelected)
    answer = split.refuse("walks over rows that data select");
  else if (anyRows || mayAddTerms)
    answer = batch ? batch.splitBatch(split) : split.refuse("does not say what it does with samples");
  if (failed(answer) && mayAddTerms)
    return success();
  if (failed(answer) && findDraws(op))
    return failure();
  if (failed(answer)) {
    InFlightDiagnostic error = op->emitError("'")
                               << op->getName() << "' cannot be computed for a part of the batch: it " << split.reason;
    error.attachNote()
        << "a step on parts of a batch needs ops that treat samples apart; compile it with a smaller batch "
           "instead of --micro-batches";
    return error;
  }
  using Answer = BatchSplit::Kind;
  auto answers = [&](Answer kind) {
    return llvm::any_of(split.results, [&](const BatchSplit::Result &result) { return result.kind == kind; });
  };
  if (mayAddTerms && !answers(Answer::Sum))
    return success();
  if (!anyStatistic && !answers(Answer::Rows) && !answers(Answer::Sum) && !answers(Answer::Statistic))
    return success(); // a draw that is the same for every sample
  for (auto [value, result] : llvm::zip_equal(op->getResults(), split.results)) {
    Kind kind = result.kind == Answer::Rows ? Kind::Rows : result.kind == Answer::Sum ? Kind::Sum : Kind::Statistic;
    states[value] = {kind, result.position};
    const bool isDrawn = llvm::all_of(op->getOperands(), [&](Value operand) {
      Kind from = getKind(operand);
      return from == Kind::Outside || from == Kind::FirstSample || drawn.contains(operand);
    });
    if (kind == Kind::Rows && isDrawn)
      drawn.insert(value);
  }
  if (answers(Answer::Statistic))
    statistics.push_back(op);
  if (mayAddTerms)
    linear.insert(op);
  required[op] = split.required;
  return success();
}
