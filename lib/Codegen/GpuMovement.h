//===- GpuMovement.h - emitters of a GPU for one op that moves data -*- C++ -*-===//
//
// Transposes through shared memory, and additions at computed places by the row that they land in.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Emitters.h"

namespace lowtide::codegen {

/// The op of a kernel that is one transpose whose last dimension moves and is worth a tile, or null.
nn::TransposeOp getTileTranspose(nn::KernelOp kernel);
Grid getGpuTransposeGrid(nn::TransposeOp op);
/// A block moves a tile of 32 × 32 elements: it reads along the operand's last dimension and writes along the result's.
void emitGpuTranspose(KernelContext &context, nn::TransposeOp op);

/// The scatter of a kernel for a GPU, or null. Ops that make its indices element by element may stand in front, and
/// such that make the kernel's one result of its sums after it: those are for rows that look for their updates.
ScatterInterface findScatter(nn::KernelOp kernel);
/// Whether the place of an update does not depend on the dimensions that are passed on: then a row of the result can
/// look for its updates.
bool canSearch(nn::KernelOp kernel, ScatterInterface op);
Grid getGpuSearchGrid(ScatterInterface op);
/// A warp owns a row of the result (an index into the dimensions that are not passed on): its lanes look through the
/// updates together and add those that land here in ascending order.
void emitGpuSearch(KernelContext &context, ScatterInterface op);
/// The same by two kernels: the first sorts the places by row, into so many bytes; 0: searching is good enough.
uint64_t getSortedBytes(ScatterInterface op);
Grid getGpuSortGrid(ScatterInterface op);
/// The sorted places go to the function's last pointer, and come from the one after the operands.
void emitGpuSort(KernelContext &context, ScatterInterface op);
void emitGpuSorted(KernelContext &context, ScatterInterface op);

} // namespace lowtide::codegen
