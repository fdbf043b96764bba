//===- TrainSetTarget.cpp - says what a module is compiled for --*- C++ -*-===//
//
// Puts a row of the table of targets on the module.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_TRAINSETTARGET
#include "Passes.h.inc"
} // namespace lowtide

namespace {

struct TrainSetTarget : lowtide::impl::TrainSetTargetBase<TrainSetTarget> {
  using TrainSetTargetBase::TrainSetTargetBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<TargetInfo> row = findTarget(target);
    if (!row) {
      (void)refuseTarget(module, target);
      return signalPassFailure();
    }
    if (failed(checkOption(module, "threads-max", threadsMax)) ||
        StringRef(threadsMax).getAsInteger(10, row->threadsMax))
      return signalPassFailure();
    if (std::optional<std::string> fault = row->findFault()) {
      module.emitError("target '") << row->name << "': " << *fault;
      return signalPassFailure();
    }
    train::setTarget(module, *row);
  }
};

} // namespace
