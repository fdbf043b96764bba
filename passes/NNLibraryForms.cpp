//===- NNLibraryForms.cpp - contractions as a GPU's libraries take them ---===//
//
// For each contraction, with the written table of the target's libraries at
// hand:
//
// 1. What is declined with f32 results but taken with those of its 16-bit
//    operands gets them and a cast; what is declined all the same is marked,
//    so that a generated kernel computes it.
// 2. A product computes also what follows it, as far as the table goes
//    (lib/Dialect/NN/FormEpilogue.cpp).
// 3. What is widened after a product is widened after the reshape that
//    follows, where its readers can do it themselves.
//    So is what few ops make of an argument.
// 4. Attentions take the movements around them along, as strides
//    (lib/Dialect/NN/FormStrides.cpp).
//
//===----------------------------------------------------------------------===//

#include "LibraryCalls.h"
#include "StepPass.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "lowtide/Fusion/CheapProducers.h"
#include "lowtide/RuntimeQuery/LibraryQuery.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_NNLIBRARYFORMS
#include "Passes.h.inc"
} // namespace lowtide

namespace {

struct NNLibraryForms : StepPass<lowtide::impl::NNLibraryFormsBase<NNLibraryForms>> {
  using StepPass::StepPass;

  /// 1. Whether the call is taken; it may have got another result.
  bool settle(LibraryCallInterface call) {
    std::string why;
    if (!isLibraryCall(call))
      return false;
    if (isTaken(call, target, &why))
      return true;
    Value result = call->getResult(0);
    Type narrow = getElementTypeOrSelf(call->getOperand(0)), wide = getElementTypeOrSelf(result);
    if (call->getNumResults() == 1 && narrow != wide) {
      auto type = cast<RankedTensorType>(result.getType());
      result.setType(type.clone(narrow));
      if (isTaken(call, target)) {
        OpBuilder builder(call->getContext());
        builder.setInsertionPointAfter(call.getOperation());
        auto widened = nn::CastOp::create(builder, call->getLoc(), type, result);
        result.replaceAllUsesExcept(widened.getY(), widened);
        ++numNarrowed;
        return true;
      }
      result.setType(type);
    }
    call->setAttr(generatedAttrName, UnitAttr::get(call->getContext()));
    call->emitRemark() << why << "; a generated kernel computes it";
    ++numDeclined;
    return false;
  }

  void runOnSteps() override {
    SmallVector<LibraryCallInterface> calls, taken;
    getOperation()->walk([&](LibraryCallInterface call) { calls.push_back(call); });
    for (LibraryCallInterface call : calls)
      if (settle(call))
        taken.push_back(call);
    if (epilogues)
      for (LibraryCallInterface call : taken)
        numEpilogues += nn::formEpilogue(call, [&](LibraryCallInterface form) { return isTaken(form, target); });
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks) {
      sinkWidenings(*block);
      regroupMadeOfArguments(*block);
    }
    calls.clear();
    getOperation()->walk([&](LibraryCallInterface call) {
      if (isLibraryCall(call))
        calls.push_back(call);
    });
    for (LibraryCallInterface call : calls) {
      auto isCall = [&](LibraryCallInterface form) { return isTaken(form, target); };
      // A product that is cut along k has no epilogue.
      if (nn::formStrides(call, isCall) || !epilogues || queryWorkspace(call, target).value_or(1) != 0)
        continue;
      numEpilogues += nn::formOperandSums(call, isCall);
    }
  }
};
} // namespace
