//===- NNDecompose.cpp - compound ops become primitives ---------*- C++ -*-===//
//
// Replaces every op that states a decomposition by it, until only primitives
// and library calls are left. Scans become loops of the step.
//
//===----------------------------------------------------------------------===//

#include "LibraryCalls.h"
#include "StepPass.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/LowerScans.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Fusion/FullReductions.h"
#include "lowtide/Fusion/LabelGather.h"
#include "lowtide/Fusion/ScatterChains.h"
#include "lowtide/RuntimeQuery/LibraryQuery.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_NNDECOMPOSE
#include "Passes.h.inc"
} // namespace lowtide

static constexpr llvm::StringLiteral staticShapesOnly = "cannot be decomposed: values of a step have static shapes";

namespace {
struct NNDecompose : StepPass<lowtide::impl::NNDecomposeBase<NNDecompose>> {
  using StepPass::StepPass;

  /// Scans become loops of the train dialect; a module of train ops alone has not brought the ops that they are written
  /// out in.
  void getDependentDialects(DialectRegistry &registry) const override {
    StepPass::getDependentDialects(registry);
    registry.insert<nn::NNDialect, train::TrainDialect>();
  }

  /// Whether a library computes this instance, as it is or with its mask in the library's form.
  bool isLeft(Operation *op) {
    if (!library || !isLibraryCall(op))
      return false;
    std::string why;
    auto isCall = [&](LibraryCallInterface call) { return isTaken(call, target, &why); };
    if (isCall(cast<LibraryCallInterface>(op)) || nn::formAttention(op, isCall))
      return true;
    if (!why.empty())
      op->emitRemark() << why << "; it is written out as products";
    return false;
  }

  /// Norms and losses of 16-bit floats are computed in f32 and rounded once: sums of rounded terms would lose too much.
  static bool wantsF32(Operation *op) {
    auto facts = dyn_cast<FactsInterface>(op);
    return facts && facts.getFacts().precision == PrecisionPolicy::High &&
           (facts.getFacts().family == OpFamily::Normalization || facts.getFacts().family == OpFamily::Loss) &&
           llvm::any_of(op->getOperandTypes(), isNarrow);
  }
  static bool isNarrow(Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isF16() || element.isBF16();
  }

  /// Replaces an op by itself in f32 between casts; returns the new one.
  static Operation *widen(Operation *op) {
    IRRewriter rewriter(op);
    auto wide = [&](Type type) -> Type {
      return isNarrow(type) ? cast<RankedTensorType>(type).clone(rewriter.getF32Type()) : type;
    };
    auto converted = [&](Value value, Type type) -> Value {
      return value.getType() == type ? value : nn::CastOp::create(rewriter, op->getLoc(), type, value);
    };
    Operation *widened = rewriter.clone(*op);
    rewriter.setInsertionPoint(widened);
    for (OpOperand &operand : widened->getOpOperands())
      operand.set(converted(operand.get(), wide(operand.get().getType())));
    rewriter.setInsertionPointAfter(widened);
    SmallVector<Value> results;
    for (auto [result, old] : llvm::zip_equal(widened->getResults(), op->getResults())) {
      result.setType(wide(old.getType()));
      results.push_back(converted(result, old.getType()));
    }
    rewriter.replaceOp(op, results);
    return widened;
  }

  /// Forms of ops are computed from the extents of all that they read and write.
  static bool hasStaticShapes(Operation *op) {
    auto isStatic = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.hasStaticShape();
    };
    return llvm::all_of(op->getOperandTypes(), isStatic) && llvm::all_of(op->getResultTypes(), isStatic);
  }

  /// Replaces one op; what its decomposition is made of is visited in turn.
  LogicalResult decompose(DecomposableInterface op, SmallVectorImpl<Operation *> &worklist) {
    IRRewriter rewriter(op.getContext());
    rewriter.setInsertionPoint(op);
    Operation *before = op->getPrevNode();
    FailureOr<SmallVector<Value>> values = op.decompose(rewriter);
    if (failed(values))
      return op->emitError("cannot decompose ") << op->getName();
    Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
    for (Operation *made = first; made != op.getOperation(); made = made->getNextNode())
      worklist.push_back(made);
    rewriter.replaceOp(op, *values);
    ++numDecomposed;
    return success();
  }

  void runOnSteps() override {
    train::lowerScans(getOperation());
    SmallVector<Operation *> worklist;
    getOperation()->walk([&](DecomposableInterface op) { worklist.push_back(op); });
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      auto decomposable = dyn_cast<DecomposableInterface>(op);
      if (decomposable && !hasStaticShapes(op)) {
        op->emitError(staticShapesOnly);
        return signalPassFailure();
      }
      if (decomposable && !isLeft(op) && wantsF32(op))
        decomposable = cast<DecomposableInterface>(widen(op));
      if (decomposable && !isLeft(decomposable) && failed(decompose(decomposable, worklist)))
        return signalPassFailure();
    }
    // A CPU shares one number of two reductions among threads by its rows, a GPU by its segments; and a GPU rather
    // looks at all columns once more than starts a launch.
    if (target.isGpu()) {
      if (mergeReductions)
        mergeWholeReductions(getOperation());
      if (pickLabels)
        pickByComparison(getOperation());
    } else if (chainScatters) {
      // A GPU's kernel adds what else a sum has in registers.
      lowtide::chainScatters(getOperation(), [&](Operation *op) { return library && isLibraryCall(op); });
    }
    if (failed(lowtide::checkTypesAgree(getOperation(), staticShapesOnly)))
      signalPassFailure();
  }
};
} // namespace
