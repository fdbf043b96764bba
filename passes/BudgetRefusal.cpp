//===- BudgetRefusal.cpp - why a step does not fit ------------------------===//
//
// The instruction that needs the most whatever is recomputed, what is alive at the peak of the smallest plan, and what
// would help this model: only what it does not do yet.
//
//===----------------------------------------------------------------------===//
#include "BudgetRefusal.h"
#include "PlanLayout.h"
#include "lowtide/Dialect/Train/Train.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowtide;

/// Tensors that a note names.
static constexpr unsigned maxNamed = 4;

/// Bytes to read and bytes to type: "4.06 KiB (4160 bytes)".
static std::string formatExact(uint64_t bytes) {
  return llvm::formatv("{0} ({1} bytes)", formatBytes(bytes), bytes).str();
}

void PosedEntry::apply(const solve::FittedSchedule &plan, FactsTable &facts) {
  problem.apply(plan, facts, [](OpBuilder &builder, Location loc, Value value, Value cotangent) -> Value {
    return train::RematOp::create(builder, loc, value.getType(), value, cotangent);
  });
}

/// The instruction of a bound, in a loop if need be; null where the outputs decide.
static Operation *findForced(const StepProblem &problem, const solve::LowerBound &bound) {
  if (bound.operation >= problem.getOperations().size())
    return nullptr;
  for (auto [loop, body] : llvm::zip_equal(problem.getGraph().loops, problem.getBodies()))
    if (loop.operation == bound.operation)
      if (Operation *inside = findForced(body, solve::findLowerBound(loop.body)))
        return inside;
  return problem.getOperations()[bound.operation];
}

/// The tensors that one instruction reads and makes, the largest by name; those outside the transient arena not.
static void noteForced(InFlightDiagnostic &error, Operation *op, uint64_t bytes) {
  Diagnostic &note = error.attachNote(op->getLoc());
  note << "one instruction needs " << formatBytes(bytes) << " at once";
  if (std::string place = getResponsiblePlace(op->getLoc()); !place.empty())
    note << " (" << place << ")";
  SmallVector<std::pair<uint64_t, Value>> tensors;
  auto add = [&](Value value) {
    if (uint64_t size = getTensorBytes(value.getType()).value_or(0))
      tensors.push_back({size, value});
  };
  for (Value value : op->getOperands())
    if (!isa<BlockArgument>(StepStorage::getRoot(value)))
      add(value);
  llvm::for_each(op->getResults(), add);
  llvm::stable_sort(tensors, [](const auto &a, const auto &b) { return a.first > b.first; });
  for (auto [number, tensor] : llvm::enumerate(ArrayRef(tensors).take_front(maxNamed)))
    note << (number ? ", " : ": ") << describeTensor(tensor.second);
}

/// Samples of a step's batch; 0: nothing counts them.
static int64_t countSamples(func::FuncOp step) {
  for (BlockArgument arg : step.getArguments()) {
    auto facts = BindingFacts::get(step.getArgAttr(arg.getArgNumber(), train::bindingAttrName));
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (facts && type && facts->batchDim >= 0 && facts->batchDim < type.getRank())
      return type.getDimSize(facts->batchDim);
  }
  return 0;
}

/// Whether something in a step is held in 16 bits.
static bool usesHalfs(func::FuncOp step) {
  return step
      .walk([](Operation *op) {
        return llvm::any_of(op->getResultTypes(),
                            [](Type type) {
                              Type element = getElementTypeOrSelf(type);
                              return element.isF16() || element.isBF16();
                            })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Says which budget would do, and what would let a smaller one do. `isTransient`: activations stand in the way, not
/// what is there all the time.
static void noteRemedies(InFlightDiagnostic &error, func::FuncOp step, const StaticBytes &statics, bool isTransient,
                         uint64_t smallestBytes, uint64_t largestBytes) {
  error.attachNote() << "the smallest plan found needs " << formatExact(smallestBytes)
                     << "; without recomputation it is " << formatBytes(largestBytes);
  const int64_t samples = countSamples(step);
  Diagnostic &note = error.attachNote();
  note << "what helps: ";
  if (isTransient && samples > 1)
    note << "the batch of " << samples << " in parts (--micro-batches=2 or more), ";
  if (isTransient && !usesHalfs(step))
    note << "activations in 16 bits (--precision=mixed-bf16), ";
  if (samples > 1)
    note << "a smaller batch, ";
  if (statics.state)
    note << "an optimizer with less than " << formatBytes(statics.state) << " of state (--optimizer=sgd has none), ";
  note << "a larger budget";
}

LogicalResult lowtide::refuseStatics(ModuleOp module, ArrayRef<PosedEntry> entries, uint64_t budgetBytes,
                                     const StaticBytes &statics) {
  InFlightDiagnostic error = module.emitError("cannot fit ")
                             << formatBytes(budgetBytes) << ": parameters, optimizer state and batch alone are "
                             << formatBytes(statics.sum());
  // Entries share tensors by their names.
  llvm::MapVector<StringAttr, uint64_t> tensors;
  uint64_t smallest = 0, largest = 0;
  for (const PosedEntry &entry : entries) {
    func::FuncOp step = entry.step;
    for (BlockArgument arg : step.getArguments())
      if (auto facts = BindingFacts::get(step.getArgAttr(arg.getArgNumber(), train::bindingAttrName)))
        tensors[facts->name] = getTensorBytes(arg.getType()).value_or(0);
    smallest = std::max(smallest, entry.solved->plans.getSmallest().arenaBytes);
    largest = std::max(largest, entry.solved->front.getLargest().timeline.peakBytes);
  }
  auto sorted = tensors.takeVector();
  llvm::stable_sort(sorted, [](const auto &a, const auto &b) { return a.second > b.second; });
  Diagnostic &note = error.attachNote();
  note << "the largest of them:";
  for (auto [number, tensor] : llvm::enumerate(ArrayRef(sorted).take_front(maxNamed)))
    note << (number ? ", " : " ") << tensor.first << " of " << formatBytes(tensor.second);
  noteRemedies(error, entries.front().step, statics, /*isTransient=*/false, statics.sum() + smallest,
               statics.sum() + largest);
  return failure();
}

LogicalResult lowtide::refuseBudget(PosedEntry &entry, const BudgetRoom &room, StringRef strategy, FactsTable &facts) {
  const uint64_t staticBytes = room.statics.sum();
  const solve::LowerBound bound = solve::findLowerBound(entry.problem.getGraph());
  // What its buffers take when they are packed.
  const solve::PackedPlan &smallest = entry.solved->plans.getSmallest();
  const uint64_t smallestBytes = staticBytes + smallest.arenaBytes + room.reserveBytes,
                 largestBytes = staticBytes + entry.solved->front.getLargest().timeline.peakBytes,
                 least = staticBytes + bound.bytes;
  InFlightDiagnostic error = entry.step.emitError();
  error << "@" << entry.step.getSymName() << " cannot fit " << formatExact(room.sum()) << ": ";
  if (bound.bytes > room.transientBytes)
    error << "at least " << formatExact(least) << " are needed whatever is recomputed";
  else
    error << (strategy == "fit" ? "" : "strategy '" + strategy.str() + "' found no plan; by --remat-strategy=fit ")
          << "the smallest plan found needs " << formatExact(smallestBytes) << ", and none is below "
          << formatExact(least);
  if (Operation *op = findForced(entry.problem, bound))
    noteForced(error, op, bound.bytes);
  entry.apply(smallest.plan, facts);
  if (FailureOr<MemoryProfile> profile = MemoryProfile::compute(entry.step, facts, room.statics); succeeded(profile))
    error.attachNote() << "the smallest plan found has at its peak " << describePeak(*profile);
  noteRemedies(error, entry.step, room.statics, /*isTransient=*/true, smallestBytes, largestBytes);
  return failure();
}
