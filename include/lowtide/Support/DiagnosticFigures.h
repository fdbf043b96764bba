//===- DiagnosticFigures.h - numbers of a remark ----------------*- C++ -*-===//
//
// What a remark says in words for people, programs take from numbers that travel with it: no text is parsed for them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Diagnostics.h"
#include <map>
#include <string>
#include <utility>

namespace lowtide {

/// Attaches numbers by name ("saved_bytes") to a diagnostic that is being written.
void attachFigures(mlir::InFlightDiagnostic &diagnostic, llvm::ArrayRef<std::pair<llvm::StringRef, uint64_t>> figures);
/// The numbers that were attached; empty: none.
std::map<std::string, uint64_t> readFigures(mlir::Diagnostic &diagnostic);

} // namespace lowtide
