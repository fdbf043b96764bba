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
#include "lowtide/Target/LibraryQuery.h"
#include "lowtide/Target/PlanProof.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lowtide;

/// The kernel without the results that the step returns, in a block of its own; null if all or none of them are.
static std::shared_ptr<RerunForm> buildRerunForm(nn::KernelOp kernel, const llvm::DenseSet<Value> &returned) {
  auto form = std::make_shared<RerunForm>();
  for (OpResult result : kernel->getResults())
    if (!returned.contains(result))
      form->results.push_back(result.getResultNumber());
  if (form->results.empty() || form->results.size() == kernel.getNumResults())
    return nullptr;
  // What the other results need of the body.
  llvm::DenseSet<Operation *> needed;
  llvm::DenseSet<Value> arguments;
  SmallVector<Value> worklist;
  for (unsigned number : form->results)
    worklist.push_back(kernel.getYield().getOperand(number));
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (isa<BlockArgument>(value))
      arguments.insert(value);
    else if (needed.insert(value.getDefiningOp()).second)
      llvm::append_range(worklist, value.getDefiningOp()->getOperands());
  }
  form->block = std::make_unique<Block>();
  SmallVector<Value> captures;
  for (BlockArgument argument : kernel.getBlock()->getArguments())
    if (arguments.contains(argument)) {
      form->operands.push_back(argument.getArgNumber());
      captures.push_back(form->block->addArgument(argument.getType(), argument.getLoc()));
    }
  auto types = llvm::map_to_vector(form->results, [&](unsigned number) { return kernel.getResult(number).getType(); });
  OpBuilder builder(kernel.getContext());
  builder.setInsertionPointToEnd(form->block.get());
  auto rerun = nn::KernelOp::create(builder, kernel.getLoc(), kernel.getEmitter(), captures, TypeRange(types));
  builder.setInsertionPointToEnd(rerun.getBlock());
  IRMapping mapping;
  for (auto [number, argument] : llvm::zip_equal(form->operands, rerun.getBlock()->getArguments()))
    mapping.map(kernel.getBlock()->getArgument(number), argument);
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (needed.contains(&op))
      builder.clone(op, mapping);
  auto yielded = llvm::map_to_vector(
      form->results, [&](unsigned number) { return mapping.lookup(kernel.getYield().getOperand(number)); });
  nn::YieldOp::create(builder, kernel.getLoc(), yielded);
  form->op = rerun;
  return form;
}

static LogicalResult addKernelFacts(nn::KernelOp kernel, unsigned threadsMax, codegen::KernelModule &kernels,
                                    InstructionFacts &facts) {
  FailureOr<codegen::KernelInfo> info = kernels.query(kernel);
  if (failed(info))
    return failure();
  if (__builtin_mul_overflow(info->scratchBytes, countScratchParts(info->extent, info->grain, threadsMax),
                             &facts.workspaceBytes))
    return kernel.emitError("scratch of ") << info->scratchBytes << " bytes per thread is too large";
  facts.workspaceBytes += info->partialBytes;
  facts.inPlace.append(info->inPlace.begin(), info->inPlace.end());
  return success();
}

LogicalResult StepFacts::updateBlock(Block &block, StringRef target, unsigned threadsMax,
                                     codegen::KernelModule &kernels) {
  llvm::DenseSet<Value> returned;
  for (Value value : block.getTerminator()->getOperands())
    returned.insert(StepStorage::getRoot(value));
  for (Operation &op : block.without_terminator()) {
    if (StepStorage::isView(&op) || table.contains(&op))
      continue;
    if (isa<RepeatInterface>(op)) {
      if (failed(updateBlock(op.getRegion(0).front(), target, threadsMax, kernels)))
        return failure();
      continue;
    }
    InstructionFacts facts;
    if (auto kernel = dyn_cast<nn::KernelOp>(op); kernel && !isLibraryCall(&op)) {
      if (failed(addKernelFacts(kernel, threadsMax, kernels, facts)))
        return failure();
      // What a launch has taken along is formed behind every decision to compute again.
      if (kernel.getEmitter() != "cross")
        facts.rerun = buildRerunForm(kernel, returned);
      if (facts.rerun &&
          failed(addKernelFacts(cast<nn::KernelOp>(facts.rerun->op), threadsMax, kernels, facts.rerun->facts)))
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

LogicalResult StepFacts::update(StringRef target, StringRef cpu, unsigned threadsMax) {
  codegen::KernelModule kernels(module->getContext(), codegen::CodegenOptions::get(cpu));
  for (Region &region : module->getRegions())
    for (func::FuncOp step : region.getOps<func::FuncOp>())
      if (failed(updateBlock(step.getBody().front(), target, threadsMax, kernels)))
        return failure();
  return success();
}
