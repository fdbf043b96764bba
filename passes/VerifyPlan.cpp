//===- VerifyPlan.cpp - the runtime's proof, as diagnostics ---------------===//
//
// Serializes the plan and asks the verifier that runs at every load. It shares
// nothing with the passes that made the plan.
//
//===----------------------------------------------------------------------===//
#include "Passes.h"
#include "lowtide/Target/PlanProto.h"
#include "runtime/Verify.h"

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
    for (auto module : getOperation().getOps<plan::ModuleOp>()) {
      plan::Plan proto;
      if (failed(exportPlan(module, proto)))
        return signalPassFailure();
      rt::VerifyReport report;
      if (rt::Status status = rt::verifyPlan(proto, &report); !status.isOk()) {
        module.emitError("the plan cannot be proved: ") << status.str();
        return signalPassFailure();
      }
      for (auto [program, entry] : llvm::zip_equal(module.getBlock().getOps<plan::ProgramOp>(), report.entries)) {
        if (uint64_t(program.getPeakLiveBytes()) == entry.peakLiveBytes)
          continue;
        program.emitError("declares a peak of ")
            << program.getPeakLiveBytes() << " live bytes; the verifier counts " << entry.peakLiveBytes;
        return signalPassFailure();
      }
    }
  }
};

} // namespace
