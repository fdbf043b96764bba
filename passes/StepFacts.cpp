//===- StepFacts.cpp - what kernels and libraries need --------------------===//
//
// Generates each kernel once, in a module of its own that is thrown away: its
// scratch and what it may overwrite are known only then.
//
//===----------------------------------------------------------------------===//
#include "StepFacts.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Target/PlanProof.h"

using namespace mlir;
using namespace lowtide;

static bool isView(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts && facts.getFacts().aliasing == Aliasing::View;
}

LogicalResult StepFacts::update(StringRef cpu, unsigned threadsMax) {
  codegen::CodegenOptions options;
  options.cpu = cpu.str();
  codegen::KernelModule kernels(module->getContext(), options);
  for (Region &region : module->getRegions())
    for (func::FuncOp step : region.getOps<func::FuncOp>())
      for (Operation &op : step.getBody().front().without_terminator()) {
        if (isView(&op) || table.contains(&op))
          continue;
        InstructionFacts facts;
        if (auto kernel = dyn_cast<nn::KernelOp>(op)) {
          FailureOr<codegen::KernelInfo> info = kernels.add(kernel);
          if (failed(info))
            return failure();
          if (__builtin_mul_overflow(info->scratchBytes, countScratchParts(info->extent, info->grain, threadsMax),
                                     &facts.workspaceBytes))
            return op.emitError("scratch of ") << info->scratchBytes << " bytes per thread is too large";
          facts.inPlace.append(info->inPlace.begin(), info->inPlace.end());
        } else if (auto call = dyn_cast<LibraryCallInterface>(op); call && !call.getCallee().empty()) {
          FailureOr<uint64_t> bytes = queryWorkspace(call.getCallee(), call.getCallAttributes(), op.getLoc());
          if (failed(bytes))
            return failure();
          facts.workspaceBytes = *bytes;
        } else {
          return op.emitError("is neither in a kernel nor a library call: run nn-cluster first");
        }
        table[&op] = std::move(facts);
      }
  return success();
}
