//===- TrainSetTarget.cpp - says what a module is compiled for --*- C++ -*-===//
//
// Puts a row of the table of targets on the module.
//
//===----------------------------------------------------------------------===//

#include "DeclaredChecks.h"
#include "Passes.h"
#include "lowtide/Dialect/Train/Target.h"
#include "llvm/ADT/StringExtras.h"

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
      module.emitError("unknown target '") << target << "'; there are " << llvm::join(listTargetNames(), ", ");
      return signalPassFailure();
    }
    if (failed(checkOption(module, "threads-max", std::to_string(threadsMax))))
      return signalPassFailure();
    row->threadsMax = unsigned(threadsMax);
    if (std::optional<std::string> fault = row->findFault()) {
      module.emitError("target '") << row->name << "': " << *fault;
      return signalPassFailure();
    }
    train::setTarget(module, *row);
  }
};

} // namespace
