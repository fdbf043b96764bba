//===- LibraryQuery.cpp - what a target's libraries take and need ---------===//
//
// Writes an op as the call that the plan would hold, and hands it to the runtime's own readers.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Target/LibraryQuery.h"
#include "lowtide/Target/PlanProto.h"
#include "runtime/LibraryTable.h"
#include "runtime/Workspace.h"

using namespace mlir;
using namespace lowtide;

/// The call without addresses: operands are counted only.
static FailureOr<plan::Call> describe(LibraryCallInterface op) {
  plan::Call call;
  call.set_callee(op.getCallee().str());
  if (failed(exportCallOptions(op.getCallAttributes(), call, op->getLoc())))
    return failure();
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    call.add_reads();
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    call.add_writes();
  return call;
}

bool lowtide::isTaken(LibraryCallInterface op, StringRef target, std::string *why) {
  if (op.getCallee().empty())
    return false;
  if (!rt::isGpu(target))
    return true;
  FailureOr<plan::Call> call = describe(op);
  if (failed(call))
    return false;
  rt::Expected<const rt::LibraryRule *> rule = rt::declineCall(*call);
  if (rule && !*rule)
    return true;
  if (why)
    *why = rule ? std::string((*rule)->library) + " does not take this call: " + (*rule)->declines
                : rule.status().message();
  return false;
}

FailureOr<uint64_t> lowtide::queryWorkspace(LibraryCallInterface op, StringRef target) {
  FailureOr<plan::Call> call = describe(op);
  if (failed(call))
    return failure();
  rt::Expected<uint64_t> bytes = rt::isGpu(target) ? rt::queryGpuWorkspace(*call) : rt::queryWorkspace(*call);
  if (!bytes)
    return op->emitError("library call '") << op.getCallee() << "': " << bytes.status().str();
  return *bytes;
}

int lowtide::getOverwritableOperand(LibraryCallInterface op) {
  FailureOr<plan::Call> call = describe(op);
  return failed(call) ? -1 : rt::overwritableRead(*call);
}
