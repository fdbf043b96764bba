//===- KernelDeclarations.cpp - kernels and the launches that they serve -----===//

#include "KernelDeclarations.h"

using namespace mlir;
using namespace lowtide;

SmallVector<Value> lowtide::take(const std::optional<SmallVector<unsigned>> &some, ValueRange all) {
  if (!some)
    return all;
  return llvm::map_to_vector(*some, [&](unsigned number) { return all[number]; });
}

LaunchTypes::LaunchTypes(nn::KernelOp kernel, const codegen::KernelInfo &info, ArrayRef<SmallVector<int, 4>> inPlace) {
  for (Value operand : take(info.reads, kernel->getOperands()))
    reads.push_back(operand.getType());
  for (Value result : take(info.writes, kernel->getResults()))
    writes.push_back(result.getType());
  auto find = [](const std::optional<SmallVector<unsigned>> &some, unsigned number) {
    return some ? llvm::find(*some, number) - some->begin() : number;
  };
  for (auto [result, operands] : llvm::enumerate(inPlace))
    for (int operand : operands) {
      const size_t write = find(info.writes, result), read = find(info.reads, operand);
      if (write < writes.size() && read < reads.size())
        llvm::append_values(this->inPlace, int64_t(write), int64_t(read));
    }
}

void LaunchTypes::append(const LaunchTypes &other) {
  for (auto [i, number] : llvm::enumerate(other.inPlace))
    inPlace.push_back(number + int64_t(i % 2 ? reads.size() : writes.size()));
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
                                               TypeRange(launch.writes), launch.inPlace, builder.getContext()));
}

Type lowtide::getSumsType(const codegen::KernelInfo &second, OpBuilder &builder) {
  return RankedTensorType::get({int64_t(second.partialBytes)}, builder.getI8Type());
}
