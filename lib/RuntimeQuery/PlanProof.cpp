//===- PlanProof.cpp - what the runtime says of a plan ----------*- C++ -*-===//
//
// Turns findings of the runtime's verifier into diagnostics.
//
//===----------------------------------------------------------------------===//

#include "lowtide/RuntimeQuery/PlanProof.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Serialize/PlanProto.h"
#include "lowtide/Support/Failure.h"
#include "runtime/MemorySpaces.h"
#include "runtime/Verify.h"
#include "runtime/VerifyWork.h"
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

/// Refuses a plan that is too large to be proved, before it takes long.
static LogicalResult checkWork(plan::ModuleOp module, const plan::Plan &proto) {
  for (const plan::Entry &entry : proto.entries()) {
    if (rt::countVerified(entry.instructions()) <= rt::maxInstructions)
      continue;
    const plan::Instruction *longest = nullptr;
    uint64_t most = 0;
    for (const plan::Instruction &instruction : entry.instructions())
      if (uint64_t work = instruction.has_repeat() ? rt::countVerified(instruction.repeat().body()) *
                                                         rt::countVerifiedRounds(instruction.repeat())
                                                   : 0;
          work > most)
        most = work, longest = &instruction;
    InFlightDiagnostic error = module.emitError("the step is too large: @") << entry.name();
    if (longest) {
      error << " runs its loop";
      if (!longest->location().empty())
        error << " at " << longest->location();
      error << " " << longest->repeat().count() << " times, " << most << " instructions, and";
    }
    error << " at most " << rt::maxInstructions << " instructions can be checked";
    error.attachNote() << "it would take " << formatBytes(rt::countPlannedBytes(proto, plan::Arena::DEVICE))
                       << " of memory; give smaller sizes (--batch, --dim)";
    setFailure(module->getParentOp(), FailureKind::Usage);
    return error;
  }
  return success();
}

FailureOr<SmallVector<uint64_t>> lowtide::countLiveBytes(plan::ModuleOp module) {
  plan::Plan proto;
  if (failed(exportPlan(module, proto)) || failed(checkWork(module, proto)))
    return failure();
  for (plan::Entry &entry : *proto.mutable_entries())
    entry.set_peak_live_bytes(0);
  rt::VerifyReport report;
  if (failed(prove(module, proto, report)))
    return failure();
  return llvm::map_to_vector(report.entries, [](const auto &entry) { return entry.peakLiveBytes; });
}
