//===- PlanProof.cpp - what the runtime says of a plan ----------*- C++ -*-===//
//
// Turns findings of the runtime's verifier into diagnostics.
//
//===----------------------------------------------------------------------===//

#include "lowtide/RuntimeQuery/PlanProof.h"
#include "lowtide/Serialize/PlanProto.h"
#include "runtime/Verify.h"
#include "runtime/Workspace.h"

using namespace mlir;
using namespace lowtide;

/// The op at a place of the exported plan.
static Operation *findInstruction(plan::ModuleOp module, int entry, ArrayRef<int> path) {
  Operation *found = *std::next(module.getBlock().getOps<plan::ProgramOp>().begin(), entry);
  for (int index : path)
    found = &*std::next(
        llvm::make_filter_range(found->getRegion(0).front(), [](Operation &op) { return plan::isInstruction(&op); })
            .begin(),
        index);
  return found;
}

/// Proves the exported plan; what cannot be proved is an error at the instruction.
static LogicalResult prove(plan::ModuleOp module, const plan::Plan &proto, rt::VerifyReport &report) {
  rt::Status status = rt::verifyPlan(proto, &report);
  if (status.isOk())
    return success();
  if (!report.failure)
    return module.emitError("the plan cannot be proved: ") << status.str();
  const auto &[entry, instruction, writer] = *report.failure;
  InFlightDiagnostic error = findInstruction(module, entry, instruction)->emitError("the plan cannot be proved: ");
  error << status.str();
  if (!writer.empty())
    error.attachNote(findInstruction(module, entry, writer)->getLoc()) << "what these bytes hold is written here";
  return error;
}

LogicalResult lowtide::provePlan(plan::ModuleOp module) {
  plan::Plan proto;
  rt::VerifyReport report;
  if (failed(exportPlan(module, proto)) || failed(prove(module, proto, report)))
    return failure();
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
  if (failed(prove(module, proto, report)))
    return failure();
  return llvm::map_to_vector(report.entries, [](const auto &entry) { return entry.peakLiveBytes; });
}
