//===- StepFacts.cpp - what kernels and libraries need --------------------===//
//
// Generates each kernel once, in a module of its own that is thrown away: its
// scratch and what it may overwrite are known only then.
//
//===----------------------------------------------------------------------===//
#include "StepFacts.h"
#include "LibraryCalls.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/RuntimeQuery/LibraryQuery.h"
#include "lowtide/RuntimeQuery/PlanProof.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lowtide;

/// What some values of a kernel's body are made from: ops, and leaves, which are arguments of the body and `base`.
struct BodySlice {
  llvm::DenseSet<Operation *> ops;
  llvm::SetVector<Value> leaves;

  BodySlice(SmallVector<Value> values, Value base) {
    while (!values.empty()) {
      Value value = values.pop_back_val();
      if (isa<BlockArgument>(value) || value == base)
        leaves.insert(value);
      else if (ops.insert(value.getDefiningOp()).second)
        llvm::append_range(values, value.getDefiningOp()->getOperands());
    }
  }
  bool reduces() const {
    return llvm::any_of(ops, [](Operation *op) { return isa<ReductionInterface>(op); });
  }
};

/// Splits what a kernel makes: some results are recomputed from another one, `base`, without what that is made from.
struct Split {
  /// The number of the result; -1: there is no such one.
  int base = -1;
  SmallVector<unsigned> fromBase;
};

/// A residual stream and its norm in one kernel, say: with the sum kept, the normalized values need not be, nor both
/// addends. The base that frees the most bytes of operands, and more than it takes.
static Split findSplit(nn::KernelOp kernel, ArrayRef<unsigned> results) {
  Split best;
  uint64_t mostFreed = 0;
  if (!llvm::is_contained({nn::Emitter::row, nn::Emitter::column, nn::Emitter::loop}, kernel.getEmitter()))
    return best;
  auto yielded = [&](unsigned number) { return kernel.getYield().getOperand(number); };
  for (unsigned base = 0; base < kernel.getNumResults(); ++base) {
    if (isa<BlockArgument>(yielded(base)))
      continue;
    SmallVector<unsigned> fromBase;
    SmallVector<Value> values;
    for (unsigned number : results)
      if (number != base && yielded(number) != yielded(base) &&
          BodySlice({yielded(number)}, yielded(base)).leaves.contains(yielded(base))) {
        fromBase.push_back(number);
        values.push_back(yielded(number));
      }
    const BodySlice whole(values, nullptr), cut(values, yielded(base));
    uint64_t freed = 0;
    for (Value leaf : whole.leaves)
      if (!cut.leaves.contains(leaf))
        freed += getTensorBytes(leaf.getType()).value_or(0);
    if (freed > getTensorBytes(yielded(base).getType()).value_or(0) && freed > mostFreed) {
      mostFreed = freed;
      best = {int(base), std::move(fromBase)};
    }
  }
  return best;
}

/// The part of a kernel that makes `results`, in a block of its own; `base`: another result that it reads, -1: none.
static std::shared_ptr<RerunForm> buildRerunForm(nn::KernelOp kernel, ArrayRef<unsigned> results, int base) {
  auto form = std::make_shared<RerunForm>();
  form->results.assign(results.begin(), results.end());
  const Value baseValue = base < 0 ? Value() : kernel.getYield().getOperand(base);
  const BodySlice slice(
      llvm::map_to_vector(results, [&](unsigned number) { return kernel.getYield().getOperand(number); }), baseValue);
  form->block = std::make_unique<Block>();
  SmallVector<Value> captures, inner;
  auto take = [&](unsigned number, Value value) {
    form->operands.push_back(number);
    captures.push_back(form->block->addArgument(value.getType(), value.getLoc()));
    inner.push_back(value);
  };
  for (BlockArgument argument : kernel.getBlock()->getArguments())
    if (slice.leaves.contains(argument))
      take(argument.getArgNumber(), argument);
  if (base >= 0 && slice.leaves.contains(baseValue))
    take(kernel->getNumOperands() + base, baseValue);
  auto types = llvm::map_to_vector(results, [&](unsigned number) { return kernel.getResult(number).getType(); });
  // What reduces nothing is a plain loop, if all results have one shape.
  nn::Emitter emitter = kernel.getEmitter();
  if (llvm::is_contained({nn::Emitter::row, nn::Emitter::column}, emitter) && !slice.reduces() &&
      llvm::all_of(types, [&](Type type) {
        return cast<ShapedType>(type).getShape() == cast<ShapedType>(types.front()).getShape();
      }))
    emitter = nn::Emitter::loop;
  OpBuilder builder(kernel.getContext());
  builder.setInsertionPointToEnd(form->block.get());
  auto rerun = nn::KernelOp::create(builder, kernel.getLoc(), emitter, captures, TypeRange(types));
  builder.setInsertionPointToEnd(rerun.getBlock());
  IRMapping mapping;
  for (auto [value, argument] : llvm::zip_equal(inner, rerun.getBlock()->getArguments()))
    mapping.map(value, argument);
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (slice.ops.contains(&op))
      builder.clone(op, mapping);
  auto yields = llvm::map_to_vector(
      results, [&](unsigned number) { return mapping.lookup(kernel.getYield().getOperand(number)); });
  nn::YieldOp::create(builder, kernel.getLoc(), yields);
  form->op = rerun;
  return form;
}

/// The parts in which a kernel runs again: without the results that the step returns, and what is made from another
/// result apart from that. None where it runs again as it stands.
static SmallVector<std::shared_ptr<RerunForm>, 1> buildRerunForms(nn::KernelOp kernel,
                                                                  const llvm::DenseSet<Value> &returned) {
  SmallVector<unsigned> results;
  for (OpResult result : kernel->getResults())
    if (!returned.contains(result))
      results.push_back(result.getResultNumber());
  SmallVector<std::shared_ptr<RerunForm>, 1> forms;
  if (results.empty())
    return forms;
  if (const Split split = findSplit(kernel, results); split.base >= 0) {
    SmallVector<unsigned> others;
    for (unsigned number : results)
      if (!llvm::is_contained(split.fromBase, number))
        others.push_back(number);
    if (!others.empty())
      forms.push_back(buildRerunForm(kernel, others, -1));
    forms.push_back(buildRerunForm(kernel, split.fromBase, split.base));
  } else if (results.size() < kernel.getNumResults()) {
    forms.push_back(buildRerunForm(kernel, results, -1));
  }
  return forms;
}

static LogicalResult addKernelFacts(nn::KernelOp kernel, unsigned threadsMax, codegen::KernelModule &kernels,
                                    InstructionFacts &facts) {
  bool isSaid = false;
  FailureOr<codegen::KernelInfo> info = failure();
  {
    ScopedDiagnosticHandler watch(kernel.getContext(), [&](Diagnostic &diagnostic) {
      isSaid |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
      return failure(); // others print it
    });
    info = kernels.query(kernel);
  }
  if (failed(info) && !isSaid)
    return kernel.emitError("no code is generated for a '")
           << stringifyEmitter(kernel.getEmitter()) << "' kernel of this form";
  if (failed(info))
    return failure();
  if (__builtin_mul_overflow(info->scratchBytes, countScratchParts(info->extent, info->grain, threadsMax),
                             &facts.workspaceBytes))
    return kernel.emitError("scratch of ") << info->scratchBytes << " bytes per thread is too large";
  facts.workspaceBytes += info->partialBytes;
  facts.inPlace.append(info->inPlace.begin(), info->inPlace.end());
  return success();
}

LogicalResult StepFacts::updateBlock(Block &block, const TargetInfo &target, codegen::KernelModule &kernels) {
  llvm::DenseSet<Value> returned;
  for (Value value : block.getTerminator()->getOperands())
    returned.insert(StepStorage::getRoot(value));
  for (Operation &op : block.without_terminator()) {
    if (StepStorage::isView(&op) || table.contains(&op))
      continue;
    if (isa<RepeatInterface>(op)) {
      if (failed(updateBlock(op.getRegion(0).front(), target, kernels)))
        return failure();
      continue;
    }
    InstructionFacts facts;
    if (auto kernel = dyn_cast<nn::KernelOp>(op); kernel && kernel.isEmpty()) {
      // It is no instruction.
    } else if (StepStorage::isMove(&op)) {
      // A copy needs nothing.
    } else if (kernel && !isLibraryCall(&op)) {
      if (failed(addKernelFacts(kernel, target.threadsMax, kernels, facts)))
        return failure();
      // What a launch computes besides is decided after every decision to compute again.
      if (kernel.getEmitter() != nn::Emitter::cross)
        facts.reruns = buildRerunForms(kernel, returned);
      for (const std::shared_ptr<RerunForm> &form : facts.reruns)
        if (failed(addKernelFacts(cast<nn::KernelOp>(form->op), target.threadsMax, kernels, form->facts)))
          return failure();
    } else if (isLibraryCall(&op)) {
      auto call = cast<LibraryCallInterface>(op);
      FailureOr<uint64_t> bytes = queryWorkspace(call, target);
      if (failed(bytes))
        return failure();
      facts.workspaceBytes = *bytes;
      if (int operand = getOverwritableOperand(call); operand >= 0)
        facts.inPlace.push_back({operand});
    } else {
      return op.emitError("is neither in a kernel nor a library call: run nn-cluster first");
    }
    table[&op] = std::move(facts);
  }
  return success();
}

LogicalResult StepFacts::update(const TargetInfo &target) {
  codegen::KernelModule kernels(module->getContext(), codegen::CodegenOptions::get(target));
  for (Region &region : module->getRegions())
    for (func::FuncOp step : region.getOps<func::FuncOp>())
      if (failed(updateBlock(step.getBody().front(), target, kernels)))
        return failure();
  return success();
}
