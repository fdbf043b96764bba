//===- CheapProducers.h - what readers compute themselves -------*- C++ -*-===//
//
// Ops that cost less where their result is needed than reading that result would.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/ForwardPart.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace lowtide {

/// Extents of a tensor without the ones that are 1.
llvm::SmallVector<int64_t> dropUnits(mlir::Value tensor);
/// Whether `op` moves the elements of one operand to more places.
bool repeatsElements(mlir::Operation *op);
/// Whether `op` picks rows of what another op makes, each of them at least twice: what is read stays near. Of
/// arguments, and of views of them, it is not said: their updates would be to be minded.
bool repeatsRows(mlir::Operation *op);
/// Whether few cheap ops make the value of `op` of constants alone.
bool isMadeOfConstants(mlir::Operation *op);
/// Whether `op` only adds or drops dimensions of extent 1.
bool isUnitReshape(mlir::Operation *op);

/// Widens 16-bit floats after a reshape instead of in front of it: what reads them then can do it itself.
void sinkWidenings(mlir::Block &block);
/// What few elementwise ops make of an argument for a reshape alone is made after that reshape, where it is read.
void regroupMadeOfArguments(mlir::Block &block);
/// Ops that cheaply make their value of the step's batch and of constants, through few ops and views: the batch lies
/// there all step long, so that the backward pass can recompute the value.
llvm::DenseSet<mlir::Operation *> findMadeOfBatch(mlir::Block &block);
/// Recomputes such values of the forward pass in front of each generated op after the loss that reads them.
void recomputeAfterLoss(mlir::Block &block, const ForwardPart &forward,
                        llvm::function_ref<bool(mlir::Operation *)> isGenerated);
/// Repeated elements and rows, widened floats and what few ops make of constants, once for each generated op that reads
/// them.
void cloneCheapProducers(mlir::Block &block, llvm::function_ref<bool(mlir::Operation *)> isGenerated);
/// Few elements are picked out of many that cheap ops make of few: the label's of what was interpolated. Such ops are
/// cloned in front of what picks, with which they form a kernel: what they make need not be in memory for it. Returns
/// the clones, each with the op that picks.
llvm::SmallVector<std::pair<mlir::Operation *, mlir::Operation *>>
clonePickedProducers(mlir::Block &block, llvm::function_ref<bool(mlir::Operation *)> isGenerated);

} // namespace lowtide
