//===- StepSummary.h - what a step takes, in two lines ----------*- C++ -*-===//
//
// The figure that a compile ends with.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Compiler/Figures.h"
#include "llvm/Support/raw_ostream.h"

namespace lowtide::driver {

/// Prints the bytes of the main entry by part, and where its peak is.
void printStepSummary(const Figures &figures, llvm::raw_ostream &os);

} // namespace lowtide::driver
