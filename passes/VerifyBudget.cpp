//===- VerifyBudget.cpp - a plan stays within its budget ------------------===//
//
// Adds up the arenas of the device: what they hold is all that the runtime
// allocates there. Then, for each other memory, those in which values of a step wait, and tensors that lie there.
//
//===----------------------------------------------------------------------===//
#include "Offload.h"
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
    for (auto module : getOperation().getOps<plan::ModuleOp>()) {
      if (failed(check(module, deviceBudgetAttrName, [](plan::ArenaOp arena) { return isIn(arena, Space::Device); })))
        return signalPassFailure();
      for (Space space : {Space::HostPinned, Space::File})
        if (failed(check(module, OffloadRoom::getBudgetAttrName(space), [&](plan::ArenaOp arena) {
              return isIn(arena, space) && arena.getRole() <= plan::ArenaRole::Transient;
            })))
          return signalPassFailure();
    }
  }

private:
  static bool isIn(plan::ArenaOp arena, Space space) { return arena.getSpace() == plan::ArenaSpace(space); }

  /// Adds up the arenas that a budget, an attribute of the module around the plan, is for.
  static LogicalResult check(plan::ModuleOp module, StringRef budgetName,
                             llvm::function_ref<bool(plan::ArenaOp)> isCounted) {
    auto budget = module->getParentOp()->getAttrOfType<IntegerAttr>(budgetName);
    if (!budget)
      return success();
    uint64_t bytes = 0;
    for (auto arena : module.getBlock().getOps<plan::ArenaOp>())
      bytes += isCounted(arena) ? arena.getBytes() : 0;
    if (bytes <= budget.getValue().getZExtValue())
      return success();
    return module.emitError("the plan needs ")
           << bytes << " bytes (" << formatBytes(bytes) << "), the budget is " << budget.getValue().getZExtValue();
  }
};

} // namespace
