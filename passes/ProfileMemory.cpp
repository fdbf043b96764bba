//===- ProfileMemory.cpp - what is alive at a step's peak -----------------===//
//
// A remark for every step, from its memory profile.
//
//===----------------------------------------------------------------------===//
#include "PlanLayout.h"
#include "StepFacts.h"
#include "StepPass.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_PROFILEMEMORY
#include "Passes.h.inc"
} // namespace lowtide

namespace {

class ProfileMemory : public StepPass<lowtide::impl::ProfileMemoryBase<ProfileMemory>> {
public:
  using StepPass::StepPass;

  void getDependentDialects(DialectRegistry &registry) const override {
    codegen::KernelModule::registerDialects(registry);
  }

  void runOnSteps() override {
    auto steps = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    auto &facts = getAnalysis<StepFacts>();
    FailureOr<PlanLayout> layout = PlanLayout::compute(steps, target);
    if (failed(layout) || failed(facts.update(target)))
      return signalPassFailure();
    for (func::FuncOp step : steps) {
      FailureOr<MemoryProfile> profile = MemoryProfile::compute(step, facts.getTable(), layout->getStaticBytes());
      if (failed(profile))
        return signalPassFailure();
      step.emitRemark("@") << step.getSymName() << ": at its peak " << describePeak(*profile);
    }
    markAllAnalysesPreserved();
  }
};

} // namespace
