//===- ShrinkFunctions.h - what is inside a function shrinks ----*- C++ -*-===//
#pragma once

namespace lowtide {

/// Registers the pass `shrink-functions`: it drops operations, results and arguments of functions and makes extents
/// smaller, as long as a test program (`test=…`, with `test-arg=…`) finds the module interesting: it ends with 1 then,
/// as for MLIR's `reduction-tree`, which takes away whole functions.
void registerShrinkFunctions();

} // namespace lowtide
