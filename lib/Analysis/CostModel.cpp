//===- CostModel.cpp - what an instruction costs in time ------------------===//
//
// A roofline of the target's figures.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/CostModel.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Interfaces/OpInterfaces.h"

using namespace mlir;
using namespace lowtide;

CostModel CostModel::get(const TargetInfo &target) {
  return {target.libraryFlops, target.kernelFlops, target.bytesPerSecond, target.launchSeconds};
}

static std::optional<solve::Lane> findLink(const TargetInfo &target, StringRef from, StringRef to) {
  for (const MemoryLink &link : target.links)
    if (link.from == from && link.to == to)
      return solve::Lane{link.latencySeconds ? link.latencySeconds : target.launchSeconds, link.bytesPerSecond};
  return std::nullopt;
}

solve::Lane lowtide::getLane(const TargetInfo &target, StringRef from, StringRef to) {
  if (std::optional<solve::Lane> lane = findLink(target, from, to))
    return *lane;
  if (target.isGpu() && (from == "file" || to == "file")) {
    const solve::Lane near = getLane(target, from == "file" ? "host" : from, to == "file" ? "host" : to),
                      far = getLane(getDefaultTarget(), from, to);
    return {near.latencySeconds + far.latencySeconds, 1 / (1 / near.bytesPerSecond + 1 / far.bytesPerSecond)};
  }
  // Not this machine's row: a plan does not depend on where it is made.
  const TargetInfo usual = target.isGpu() ? *findTarget("cuda") : getDefaultTarget();
  if (std::optional<solve::Lane> lane = findLink(usual, from, to))
    return *lane;
  return {target.launchSeconds, target.bytesPerSecond};
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
  // A lane's time is not the device's.
  if (StepStorage::isMove(op))
    return 0;
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
