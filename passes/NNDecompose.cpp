//===- NNDecompose.cpp - compound ops become primitives ---------*- C++ -*-===//
//
// Replaces every op that states a decomposition by it, until only primitives
// and library calls are left.
//
//===----------------------------------------------------------------------===//

#include "Passes.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_NNDECOMPOSE
#include "Passes.h.inc"
} // namespace lowtide

namespace {
struct NNDecompose : lowtide::impl::NNDecomposeBase<NNDecompose> {
  using NNDecomposeBase::NNDecomposeBase;

  /// Whether a library computes this instance as it is.
  bool isLibraryCall(Operation *op) {
    auto call = dyn_cast<LibraryCallInterface>(op);
    return library && call && !call.getCallee().empty();
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

  void runOnOperation() override {
    SmallVector<Operation *> worklist;
    getOperation()->walk([&](DecomposableInterface op) { worklist.push_back(op); });
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      auto decomposable = dyn_cast<DecomposableInterface>(op);
      if (decomposable && !isLibraryCall(op) && failed(decompose(decomposable, worklist)))
        return signalPassFailure();
    }
  }
};
} // namespace
