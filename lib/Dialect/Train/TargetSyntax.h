//===- TargetSyntax.h - kinds of targets in text ----------------*- C++ -*-===//
//
// How the attribute `#train.target` prints and parses a field that is no attribute itself.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/TargetInfo.h"
#include "mlir/IR/DialectImplementation.h"

namespace mlir {
/// `cuda-emulated` and the like.
template <> struct FieldParser<lowtide::TargetKind> {
  static FailureOr<lowtide::TargetKind> parse(AsmParser &parser);
};
} // namespace mlir

namespace lowtide {
mlir::AsmPrinter &operator<<(mlir::AsmPrinter &printer, TargetKind kind);
} // namespace lowtide
