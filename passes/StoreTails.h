//===- StoreTails.h - how long stores keep what they read -------*- C++ -*-===//
#pragma once

#include "lowtide/Dialect/Plan/Plan.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "llvm/ADT/MapVector.h"

namespace lowtide {

/// Of each buffer that a program stores in another memory, the last instruction that begins before its store has ended,
/// by the cost model: the lane runs on while the program goes on, and what is written over the buffer waits for it.
/// Only those that are not the store itself.
llvm::MapVector<mlir::StringAttr, mlir::Operation *> findStoreTails(plan::ProgramOp program, const TargetInfo &target);

/// Where buffers of one arena begin in it, by name.
using BufferOffsets = llvm::DenseMap<mlir::StringAttr, uint64_t>;

/// What the program takes by the same count where what is written there waits for stores that read it.
double countLaneSeconds(plan::ProgramOp program, const TargetInfo &target, const BufferOffsets &offsets);

} // namespace lowtide
