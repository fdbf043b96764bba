//===- NNCluster.cpp - ops become kernels -----------------------*- C++ -*-===//
//
// Wraps every op that generated code computes into an nn.kernel; library calls
// and views stay outside. Strategy `none`: one kernel per op.
//
//===----------------------------------------------------------------------===//

#include "LibraryCalls.h"
#include "StepPass.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Fusion/FusionGroups.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_NNCLUSTER
#include "Passes.h.inc"
} // namespace lowtide

namespace {
struct NNCluster : StepPass<lowtide::impl::NNClusterBase<NNCluster>> {
  using StepPass::StepPass;

  FusionSteps steps;

  static bool isConstant(Operation *op) { return op && op->hasTrait<OpTrait::ConstantLike>(); }

  static bool isKernel(Operation *op) {
    auto facts = dyn_cast<FactsInterface>(op);
    return facts && facts.getFacts().family == OpFamily::Fusion;
  }

  /// Whether generated code computes `op`.
  bool isGenerated(Operation *op) {
    if (!isa<ElementInterface>(op) || isConstant(op))
      return false;
    if (auto facts = dyn_cast<FactsInterface>(op); facts && facts.getFacts().aliasing == Aliasing::View)
      return false;
    return !library || !isLibraryCall(op);
  }

  /// Moves `ops` (in order) into a kernel in the place of the last one.
  /// Constants that they read are cloned.
  nn::KernelOp wrap(ArrayRef<Operation *> ops, nn::Emitter emitter) {
    DenseSet<Operation *> members(ops.begin(), ops.end());
    llvm::SetVector<Value> operands;
    llvm::SetVector<Operation *> constants;
    SmallVector<Value> results;
    for (Operation *op : ops) {
      for (Value operand : op->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (isConstant(producer) && !members.count(producer))
          constants.insert(producer);
        else if (!members.count(producer))
          operands.insert(operand);
      }
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !members.count(user); }))
          results.push_back(result);
    }
    ++numKernels;
    OpBuilder builder(ops.back());
    auto kernel = nn::KernelOp::create(builder, ops.back()->getLoc(), emitter, operands.getArrayRef(),
                                       TypeRange(ValueRange(results)));
    builder.setInsertionPointToEnd(kernel.getBlock());
    IRMapping mapping;
    mapping.map(operands.getArrayRef(), kernel.getBlock()->getArguments());
    for (Operation *constant : constants)
      builder.clone(*constant, mapping);
    for (Operation *op : ops)
      builder.clone(*op, mapping);
    SmallVector<Value> yielded = llvm::map_to_vector(results, [&](Value result) { return mapping.lookup(result); });
    nn::YieldOp::create(builder, kernel.getLoc(), yielded);
    for (auto [result, replacement] : llvm::zip_equal(results, kernel.getResults()))
      result.replaceUsesWithIf(replacement, [&](OpOperand &use) { return !members.count(use.getOwner()); });
    for (Operation *op : llvm::reverse(ops))
      op->erase();
    return kernel;
  }

  void formGroups(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isGenerated(&op) && op.use_empty() && isPure(&op))
        op.erase();
    FusionGroups groups(block, [&](Operation *op) { return isGenerated(op); }, target.isGpu(), steps);
    for (const FusionGroups::Group &group : groups.form())
      wrap(group.ops, group.emitter);
  }

  /// A loop carries its values on in place: where it starts with a constant, the constant is its own.
  void separateCarried(Operation *constant) {
    for (OpOperand &use : llvm::make_early_inc_range(constant->getUses())) {
      auto loop = dyn_cast<RepeatInterface>(use.getOwner());
      if (!loop || use.getOperandNumber() < loop.getNumSliced())
        continue;
      Operation *own = constant->clone();
      OpBuilder(use.getOwner()).insert(own);
      use.set(own->getResult(0));
      wrap(own, nn::Emitter::single);
    }
  }

  void runOnBlock(Block &block) {
    if (isOn(fuse))
      formGroups(block);
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isGenerated(&op) && op.use_empty())
        op.erase();
      else if (isGenerated(&op))
        wrap(&op, nn::Emitter::single);
      else
        for (Region &region : op.getRegions())
          for (Block &nested : region)
            if (!isKernel(&op))
              runOnBlock(nested);
    }
    // What kernels read of constants is inside them now; a library call, a view
    // or the caller needs it in memory.
    for (Operation &op : llvm::make_early_inc_range(block))
      if (isConstant(&op)) {
        separateCarried(&op);
        if (op.use_empty())
          op.erase();
        else
          wrap(&op, nn::Emitter::single);
      }
  }

  /// Says what is in kernels and what is left to libraries, loops included.
  void report() {
    size_t kernels = 0, ops = 0, calls = 0;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (library && isLibraryCall(op)) {
        ++calls;
        return WalkResult::skip();
      }
      auto kernel = dyn_cast<nn::KernelOp>(op);
      if (!kernel)
        return WalkResult::advance();
      ++kernels;
      ops += llvm::range_size(kernel.getBlock()->without_terminator());
      return WalkResult::skip();
    });
    // At the place, not at the op: a function that lowtide-opt prints beside a remark is verified first, and remarks of
    // functions on other threads are lost meanwhile.
    emitRemark(getOperation().getLoc()) << "@" << getOperation().getSymName() << ": " << ops << " ops in " << kernels
                                        << " kernels, " << calls << " library calls";
  }

  void runOnSteps() override {
    if (failed(checkOption(getOperation(), "fuse", fuse)))
      return signalPassFailure();
    if (std::optional<StringRef> unknown = steps.leaveOut(without)) {
      getOperation().emitError("without: there is no step '")
          << *unknown << "'; steps are " << llvm::join(FusionSteps::listNames(), ", ");
      return signalPassFailure();
    }
    for (Block &block : getOperation().getFunctionBody())
      runOnBlock(block);
    report();
  }
};
} // namespace
