//===- PlanProof.cpp - what the runtime says of a plan ----------*- C++ -*-===//
//
// Turns findings of the runtime's verifier into diagnostics.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Target/PlanProof.h"
#include "lowtide/Target/PlanProto.h"
#include "runtime/Verify.h"
#include "runtime/Workspace.h"

using namespace mlir;
using namespace lowtide;

LogicalResult lowtide::provePlan(plan::ModuleOp module) {
  plan::Plan proto;
  if (failed(exportPlan(module, proto)))
    return failure();
  rt::VerifyReport report;
  if (rt::Status status = rt::verifyPlan(proto, &report); !status.isOk())
    return module.emitError("the plan cannot be proved: ") << status.str();
  for (auto [program, entry] : llvm::zip_equal(module.getBlock().getOps<plan::ProgramOp>(), report.entries))
    if (uint64_t(program.getPeakLiveBytes()) != entry.peakLiveBytes)
      return program.emitError("declares a peak of ")
             << program.getPeakLiveBytes() << " live bytes; the verifier counts " << entry.peakLiveBytes;
  return success();
}

uint64_t lowtide::countScratchParts(int64_t extent, int64_t grain, uint32_t threadsMax) {
  return rt::countScratchParts(extent, grain, threadsMax);
}

FailureOr<SmallVector<uint64_t>> lowtide::countLiveBytes(plan::ModuleOp module) {
  plan::Plan proto;
  if (failed(exportPlan(module, proto)))
    return failure();
  for (plan::Entry &entry : *proto.mutable_entries())
    entry.set_peak_live_bytes(0);
  rt::VerifyReport report;
  if (rt::Status status = rt::verifyPlan(proto, &report); !status.isOk())
    return module.emitError("the plan cannot be proved: ") << status.str();
  return llvm::map_to_vector(report.entries, [](const auto &entry) { return entry.peakLiveBytes; });
}
