//===- KernelDeclarations.h - kernels and the launches that they serve -*- C++ -*-===//
//
// Footprints of kernels, made from the types of the ops that their code is made from: not from the slices of a launch,
// which the verifier compares with them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/Plan/Plan.h"

#include "llvm/ADT/StringMap.h"

namespace lowtide {

/// The values of `all` whose numbers are in `some`; nothing: all.
llvm::SmallVector<mlir::Value> take(const std::optional<llvm::SmallVector<unsigned>> &some, mlir::ValueRange all);

/// Types of the operands and results that one launch takes, in their order.
struct LaunchTypes {
  llvm::SmallVector<mlir::Type> reads, writes;
  /// A result and an operand that it may take the place of, and so on: numbers in `writes` and `reads`.
  llvm::SmallVector<int64_t> inPlace;

  LaunchTypes() = default;
  /// Of `info`'s launch for `kernel`, without the partial sums that two launches hand on. `inPlace`: of the kernel, for
  /// each of its results the operands.
  LaunchTypes(nn::KernelOp kernel, const codegen::KernelInfo &info, llvm::ArrayRef<llvm::SmallVector<int, 4>> inPlace);
  LaunchTypes(nn::KernelOp kernel, const codegen::KernelInfo &info) : LaunchTypes(kernel, info, info.inPlace) {}

  void append(const LaunchTypes &other);
};

/// The kernels of a plan by their symbols.
class KernelDeclarations {
public:
  /// Declares `info`'s kernel at `builder`, unless it is there, and states in its footprints that it may serve
  /// `launch`.
  void add(const codegen::KernelInfo &info, const LaunchTypes &launch, mlir::OpBuilder &builder, mlir::Location loc);

private:
  llvm::StringMap<plan::KernelOp> kernels;
};

/// The partial sums that the first of two launches leaves to the second: bytes.
mlir::Type getSumsType(const codegen::KernelInfo &second, mlir::OpBuilder &builder);

} // namespace lowtide
