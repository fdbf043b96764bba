//===- VerifyPlan.cpp - the runtime's proof, as diagnostics ---------------===//
//
// Serializes the plan and asks the verifier that runs at every load. It shares
// nothing with the passes that made the plan.
//
//===----------------------------------------------------------------------===//
#include "StepPass.h"
#include "lowtide/RuntimeQuery/PlanProof.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_VERIFYPLAN
#include "Passes.h.inc"
} // namespace lowtide

namespace {

class VerifyPlan : public lowtide::impl::VerifyPlanBase<VerifyPlan> {
public:
  void runOnOperation() override {
    if (!noteMissingPlan(getOperation(), getArgument()))
      return;
    for (auto module : getOperation().getOps<plan::ModuleOp>())
      if (failed(checkTarget(module, module.getTarget())) || failed(provePlan(module)))
        return signalPassFailure();
  }
};

} // namespace
