//===- LibraryQuery.cpp - what a target's libraries take and need ---------===//
//
// Writes an op as the call that the plan would hold, and hands it to the runtime's own readers.
//
//===----------------------------------------------------------------------===//

#include "lowtide/RuntimeQuery/LibraryQuery.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "lowtide/Serialize/PlanProto.h"
#include "lowtide/Support/Failure.h"
#include "mlir/IR/IRMapping.h"
#include "runtime/LibraryTable.h"
#include "runtime/Workspace.h"
#include "runtime/calls/CallKind.h"
#include "llvm/Support/FormatVariadic.h"

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

bool lowtide::isTaken(LibraryCallInterface op, const TargetInfo &target, std::string *why) {
  if (op.getCallee().empty() || !target.hasLibraries())
    return false;
  FailureOr<plan::Call> call = describe(op);
  if (failed(call))
    return false;
  if (!target.isGpu())
    return rt::hasCpuKernel(*call);
  rt::Expected<const rt::LibraryRule *> rule = rt::declineCall(*call);
  if (rule && !*rule)
    return true;
  if (why)
    *why = rule ? std::string((*rule)->library) + " does not take this call: " + (*rule)->declines
                : rule.status().message();
  return false;
}

bool lowtide::isTakenAs(LibraryCallInterface op, Type narrow, const TargetInfo &target) {
  auto narrowed = [&](Type type, PrecisionPolicy policy) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(type);
    bool isNarrowed = narrow && policy == PrecisionPolicy::Low && tensor && tensor.getElementType().isF32();
    return isNarrowed ? tensor.clone(narrow) : type;
  };
  auto facts = dyn_cast<FactsInterface>(op.getOperation());
  if (!facts)
    return false;
  Block scratch;
  IRMapping mapping;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    mapping.map(operand,
                scratch.addArgument(narrowed(operand.getType(), facts.getOperandPrecision(i)), operand.getLoc()));
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&scratch);
  Operation *copy = builder.clone(*op, mapping);
  for (OpResult result : copy->getResults())
    result.setType(narrowed(result.getType(), facts.getResultPrecision(result.getResultNumber())));
  auto isCall = [&](LibraryCallInterface call) { return isTaken(call, target); };
  return isCall(cast<LibraryCallInterface>(copy)) || nn::formAttention(copy, isCall);
}

/// Whether a call's tensors are ones that a plan can hold. Attention that is written out has scores, time × time.
static LogicalResult checkSizes(Operation *op) {
  constexpr double mostElements = double(int64_t(1) << 40);
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      double elements = 1;
      for (int64_t extent : tensor ? tensor.getShape() : ArrayRef<int64_t>())
        elements *= double(extent);
      if (elements <= mostElements)
        continue;
      InFlightDiagnostic error = op->emitError("the step is too large: '");
      error << op->getName() << "' has the type " << type << ", "
            << llvm::formatv("{0:f1}", elements * 4 / (1ull << 40)).str()
            << " TiB in f32: a tensor holds at most 2^40 elements";
      error.attachNote() << "--dim and --batch set the sizes that a model leaves open";
      Operation *top = op;
      while (top->getParentOp())
        top = top->getParentOp();
      setFailure(top, FailureKind::Unsupported);
      return error;
    }
  return success();
}

FailureOr<uint64_t> lowtide::queryWorkspace(LibraryCallInterface op, const TargetInfo &target) {
  if (failed(checkSizes(op)))
    return failure();
  FailureOr<plan::Call> call = describe(op);
  if (failed(call))
    return failure();
  rt::Expected<uint64_t> bytes =
      target.isGpu() ? rt::queryGpuWorkspace(*call, target.processors) : rt::queryWorkspace(*call);
  if (!bytes)
    return op->emitError("library call '") << op.getCallee() << "': " << bytes.status().str();
  return *bytes;
}

int lowtide::getOverwritableOperand(LibraryCallInterface op) {
  FailureOr<plan::Call> call = describe(op);
  return failed(call) ? -1 : rt::overwritableRead(*call);
}
