//===- OptionChoices.h - words that an option takes -------------*- C++ -*-===//
//
// Declared once: the flag and the pass's option of the same meaning take the same words.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace lowtide {

inline constexpr llvm::StringLiteral conventions[] = {"torch", "onnx"};
inline constexpr llvm::StringLiteral trainingModes[] = {"train", "eval", "as-is"};
inline constexpr llvm::StringLiteral sparseUpdateRules[] = {"exact", "lazy", "off"};
inline constexpr llvm::StringLiteral convLayouts[] = {"auto", "nchw", "nhwc"};
inline constexpr llvm::StringLiteral narrowPrecisions[] = {"mixed-bf16", "mixed-f16", "bf16", "f16"};
inline constexpr llvm::StringLiteral fusionStrategies[] = {"none", "fuse"};
inline constexpr llvm::StringLiteral rematStrategies[] = {"fit",        "none",    "sqrt",
                                                          "greedy-xla", "min-cut", "lp-rounding"};

/// Refuses a word that `option` does not take, at `op`.
inline llvm::LogicalResult checkChoice(mlir::Operation *op, llvm::StringRef option, llvm::StringRef word,
                                       llvm::ArrayRef<llvm::StringLiteral> words) {
  if (llvm::is_contained(words, word))
    return llvm::success();
  return op->emitError() << option << ": '" << word << "' is none of " << llvm::join(words, ", ");
}

} // namespace lowtide
