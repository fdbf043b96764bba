//===- VerifyEquivalence.cpp - two functions, one value graph -------------===//
//
// Compares two functions of a module by hand; compiles check every exact pass
// by themselves (Analysis/ValueEquivalence).
//
//===----------------------------------------------------------------------===//
#include "StepPass.h"
#include "lowtide/Analysis/ValueEquivalence.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_VERIFYEQUIVALENCE
#include "Passes.h.inc"
} // namespace lowtide

namespace {

class VerifyEquivalence : public StepPass<lowtide::impl::VerifyEquivalenceBase<VerifyEquivalence>> {
public:
  using StepPass::StepPass;
  void runOnSteps() override {
    auto find = [&](StringRef name) {
      auto step = getOperation().lookupSymbol<func::FuncOp>(name);
      if (!step)
        getOperation().emitError("has no function @") << name;
      return step;
    };
    func::FuncOp first = find(before), second = find(after);
    const UnrolledLoops unrolled = parts ? UnrolledLoops::Parts : rounds ? UnrolledLoops::Steps : UnrolledLoops::None;
    if (!first || !second ||
        failed(compareFingerprints(fingerprintStep(first, unrolled), fingerprintStep(second, unrolled), second,
                                   "the rewrite")))
      signalPassFailure();
  }
};

} // namespace
