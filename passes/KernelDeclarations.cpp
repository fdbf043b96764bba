//===- KernelDeclarations.cpp - kernels and the launches that they serve -----===//

#include "KernelDeclarations.h"

using namespace mlir;
using namespace lowtide;

SmallVector<Value> lowtide::take(const std::optional<SmallVector<unsigned>> &some, ValueRange all) {
  if (!some)
    return all;
  return llvm::map_to_vector(*some, [&](unsigned number) { return all[number]; });
}

LaunchTypes::LaunchTypes(nn::KernelOp kernel, const codegen::KernelInfo &info) {
  for (Value operand : take(info.reads, kernel->getOperands()))
    reads.push_back(operand.getType());
  for (Value result : take(info.writes, kernel->getResults()))
    writes.push_back(result.getType());
}

void LaunchTypes::append(const LaunchTypes &other) {
  llvm::append_range(reads, other.reads);
  llvm::append_range(writes, other.writes);
}

void KernelDeclarations::add(const codegen::KernelInfo &info, const LaunchTypes &launch, OpBuilder &builder,
                             Location loc) {
  plan::KernelOp &kernel = kernels[info.symbol];
  if (!kernel)
    kernel = plan::KernelOp::create(builder, loc, info.symbol, launch.reads.size(), launch.writes.size(),
                                    info.scratchBytes, info.description, info.threads, info.sharedBytes, ArrayAttr());
  kernel.addFootprint(plan::FootprintAttr::get(info.extent, info.grain, TypeRange(launch.reads),
                                               TypeRange(launch.writes), builder.getContext()));
}

Type lowtide::getSumsType(const codegen::KernelInfo &second, OpBuilder &builder) {
  return RankedTensorType::get({int64_t(second.partialBytes)}, builder.getI8Type());
}
