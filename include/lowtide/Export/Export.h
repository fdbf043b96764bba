//===- Export.h - a step as an ONNX graph -----------------------*- C++ -*-===//
//
// Writes a function of nn and train ops, at any graph stage, as one of `onnx` nodes: what `--emit=onnx-model` puts into
// a file (docs/onnx-model.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
class DialectRegistry;
}

namespace lowtide {

/// Marks a function that is no graph of its own: the body of an operator of the domain `lowtide`.
inline constexpr llvm::StringLiteral onnxFunctionAttrName = "onnx.function";

/// Attribute of a node whose result is the gradient that an update reads: the parameter's name.
inline constexpr llvm::StringLiteral gradientAttrName = "train.gradient";

struct ExportOptions {
  /// bf16 arithmetic as f32 operators between casts, for runtimes that have no bf16 kernels.
  bool bf16AsCastPairs = true;
  /// Updates under ONNX's convention as operators of ai.onnx.preview.training, which inference runtimes lack.
  bool previewOptimizers = false;
  /// Loops of more rounds become a `Loop`; all others are written out, round by round.
  int64_t maxUnrolledRounds = 8;
};

/// Attaches the ONNX forms of all families to their ops.
void registerOnnxForms(mlir::DialectRegistry &registry);

/// Writes `step` as a new function `name` of the `onnx` dialect, placed after it. Kernels are transparent; ops without
/// a form are decomposed or written by their element description. Arguments keep their attributes, bindings included,
/// and results theirs; values have static types. What takes many operators to say becomes a function of its own beside
/// the model (`onnx.function`). Fails with a located diagnostic for an op that cannot be written.
mlir::FailureOr<mlir::func::FuncOp> exportStep(mlir::func::FuncOp step, llvm::StringRef name,
                                               const ExportOptions &options);

} // namespace lowtide
