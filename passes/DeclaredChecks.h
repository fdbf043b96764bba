//===- DeclaredChecks.h - checks of declared options ------------*- C++ -*-===//
//
// What the text of an option has to be, wherever it is typed: a flag of the driver and an option of a pass are refused
// in the same words.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Support/OptionCheck.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Operation.h"

namespace lowtide {

/// The check of a declared option (DeclaredOptions.td); nothing where it names the parser that checks it. Words that
/// records of a dialect have are those that `context` has loaded.
std::vector<OptionCheck> listChecks(llvm::StringRef option, mlir::MLIRContext &context);

/// Refuses, at `op`, what an option of a pass is not: its default is always taken. A fault is the user's.
mlir::LogicalResult checkOption(mlir::Operation *op, llvm::StringRef option, llvm::StringRef text);
/// The same of several, names and texts, up to the first that is wrong.
mlir::LogicalResult checkOptions(mlir::Operation *op,
                                 llvm::ArrayRef<std::pair<llvm::StringRef, llvm::StringRef>> given);
/// The same of an option that no flag has.
mlir::LogicalResult checkOption(mlir::Operation *op, llvm::StringRef option, llvm::StringRef text,
                                const OptionCheck &check);

} // namespace lowtide
