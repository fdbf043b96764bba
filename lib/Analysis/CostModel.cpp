//===- CostModel.cpp - what an instruction costs in time ------------------===//
//
// Rates are rounded from measurements of this project's kernels (CPU) and from
// the vendor's tables at three quarters (CUDA): what counts is their ratio.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/CostModel.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Interfaces/OpInterfaces.h"

using namespace mlir;
using namespace lowtide;

CostModel CostModel::get(StringRef target) {
  if (target.starts_with("cuda"))
    return {3e14, 3e13, 3e12, 3e-6};
  if (target == "reference")
    return {1e9, 5e8, 5e9, 1e-6};
  return {1.5e11, 2e10, 2e10, 2e-6};
}

uint64_t lowtide::getFlops(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts ? facts.getFlops() : 0;
}

double CostModel::getSeconds(Block &block) const {
  double seconds = 0;
  for (Operation &op : block.without_terminator())
    if (auto loop = dyn_cast<RepeatInterface>(op))
      seconds += double(loop.getRounds()) * getSeconds(op.getRegion(0).front());
    else if (!StepStorage::isView(&op))
      seconds += getSeconds(&op);
  return seconds;
}

double CostModel::getSeconds(Operation *op) const {
  uint64_t bytes = 0;
  for (Value value : op->getOperands())
    bytes += getTensorBytes(value.getType()).value_or(0);
  for (Value value : op->getResults())
    bytes += getTensorBytes(value.getType()).value_or(0);
  auto call = dyn_cast<LibraryCallInterface>(op);
  return getSeconds(call && !call.getCallee().empty(), getFlops(op), bytes);
}

double CostModel::getSeconds(bool isLibrary, uint64_t flops, uint64_t bytes) const {
  return launchSeconds +
         std::max(double(flops) / (isLibrary ? libraryFlops : kernelFlops), double(bytes) / bytesPerSecond);
}
