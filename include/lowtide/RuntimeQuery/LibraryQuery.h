//===- LibraryQuery.h - what a target's libraries take and need -*- C++ -*-===//
//
// The runtime's written table of libraries (runtime/LibraryTable.h) and their workspaces, as passes ask them. On a GPU
// that is what cuBLASLt and cuDNN take; the CPU's kernels take every product and convolution that the format can say.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Interfaces/TargetInfo.h"

#include <string>

namespace lowtide {

/// Whether a library of `target` computes `op` as it stands. If not, `why` gets the reason in words; it stays empty
/// where the op has no callee at all.
bool isTaken(LibraryCallInterface op, const TargetInfo &target, std::string *why = nullptr);

/// Whether it would be taken, in some form, with the f32 operands and results that mixed precision keeps in 16 bits (by
/// the op's policies) of type `narrow`; null: with the types that it has.
bool isTakenAs(LibraryCallInterface op, mlir::Type narrow, const TargetInfo &target);

/// Bytes of workspace that the plan reserves for the call. Fails, with a diagnostic, when its attributes are wrong.
llvm::FailureOr<uint64_t> queryWorkspace(LibraryCallInterface op, const TargetInfo &target);

/// The operand over whose bytes result 0 may be written; -1: none.
int getOverwritableOperand(LibraryCallInterface op);

} // namespace lowtide
