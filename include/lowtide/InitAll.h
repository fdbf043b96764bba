//===- InitAll.h - registers everything that Lowtide adds to MLIR -*- C++ -*-===//
//
// One call each for tools that read our dialects or run our passes.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace mlir {
class DialectRegistry;
}

namespace lowtide {

/// Our dialects and those of MLIR that our stages use.
void registerAllDialects(mlir::DialectRegistry &registry);
/// Our passes and pipelines, and MLIR's canonicalize, cse and friends.
void registerAllPasses();

} // namespace lowtide
