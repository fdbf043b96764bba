//===- CostModel.h - what an instruction costs in time ----------*- C++ -*-===//
//
// Estimated seconds of kernels and library calls on a target, from their
// operations and the bytes that they touch. Scheduling, rematerialization and
// its baselines use this one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/SpaceInterface.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "lowtide/Solve/Model/Timeline.h"
#include "mlir/IR/Operation.h"

namespace lowtide {

/// A memory besides the device's, and the ways to it and back.
struct OtherMemory {
  Space space;
  solve::MemoryLanes lanes;
};

/// How values of a target go from one of its memories ("device", "host", "file") to another. A target whose row states
/// no such link has that of the usual one of its kind; what goes between a GPU and a file passes through memory of the
/// host, a piece after the other, and takes both times.
solve::Lane getLane(const TargetInfo &target, llvm::StringRef from, llvm::StringRef to);

/// Roofline of a target.
struct CostModel {
  /// Floating-point operations per second of library calls and of generated
  /// kernels; bytes per second of memory; seconds to start an instruction.
  double libraryFlops, kernelFlops, bytesPerSecond, launchSeconds;
  /// Memories besides the device's; values may wait in the first. None: they stay on the device.
  llvm::SmallVector<OtherMemory, 2> memories = {};

  /// The rates that a target is planned with.
  static CostModel get(const TargetInfo &target);

  /// The larger of the time for its operations and the time for the bytes of
  /// its operands and results, and the start.
  double getSeconds(mlir::Operation *op) const;
  /// Of all instructions of a fitted block, those of loops once for each round.
  double getSeconds(mlir::Block &block) const;
  /// The same for an instruction of which only these figures are known.
  double getSeconds(bool isLibrary, uint64_t flops, uint64_t bytes) const;
};

/// Floating-point operations of an instruction; 0 where its record says none.
uint64_t getFlops(mlir::Operation *op);

} // namespace lowtide
