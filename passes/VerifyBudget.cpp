//===- VerifyBudget.cpp - a plan stays within its budget ------------------===//
//
// Adds up the arenas of the device: what they hold is all that the runtime
// allocates there.
//
//===----------------------------------------------------------------------===//
#include "StepPass.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Dialect/Plan/Plan.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_VERIFYBUDGET
#include "Passes.h.inc"
} // namespace lowtide

namespace {

class VerifyBudget : public StepPass<lowtide::impl::VerifyBudgetBase<VerifyBudget>> {
public:
  using StepPass::StepPass;
  void runOnSteps() override {
    if (!noteMissingPlan(getOperation(), getArgument()))
      return;
    auto budget = getOperation()->getAttrOfType<IntegerAttr>(deviceBudgetAttrName);
    if (!budget)
      return;
    for (auto module : getOperation().getOps<plan::ModuleOp>()) {
      uint64_t bytes = 0;
      for (auto arena : module.getBlock().getOps<plan::ArenaOp>())
        bytes += arena.getSpace() == plan::ArenaSpace::Device ? arena.getBytes() : 0;
      if (bytes > budget.getValue().getZExtValue()) {
        module.emitError("the plan needs ")
            << bytes << " bytes (" << formatBytes(bytes) << "), the budget is " << budget.getValue().getZExtValue();
        return signalPassFailure();
      }
    }
  }
};

} // namespace
