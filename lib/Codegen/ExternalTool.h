//===- ExternalTool.h - runs a linker or assembler --------------*- C++ -*-===//
//
// Tools that read a file and write a file, in a temporary folder of their own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace lowtide::codegen {

/// Runs `program` on a file that holds `input`. In `arguments`, "%input" and "%output" stand for the paths. Returns the
/// bytes of the output; `log`, if given, gets what the tool printed. On failure emits "`what`: " and the tool's words
/// at `errors`.
mlir::FailureOr<std::vector<char>> runTool(mlir::Operation *errors, llvm::StringRef what, llvm::StringRef program,
                                           llvm::ArrayRef<llvm::StringRef> arguments, llvm::StringRef input,
                                           std::string *log = nullptr);

} // namespace lowtide::codegen
