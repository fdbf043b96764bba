//===- OptionChoices.h - words that an option takes -------------*- C++ -*-===//
//
// Declared once: the flag and the pass's option of the same meaning take the same words.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace lowtide {

inline constexpr llvm::StringLiteral conventions[] = {"torch", "onnx"};
inline constexpr llvm::StringLiteral trainingModes[] = {"train", "eval", "as-is"};
inline constexpr llvm::StringLiteral sparseUpdateRules[] = {"exact", "lazy", "off"};
inline constexpr llvm::StringLiteral updateTimes[] = {"now", "deferred"};
inline constexpr llvm::StringLiteral convLayouts[] = {"auto", "nchw", "nhwc"};
inline constexpr llvm::StringLiteral precisions[] = {"f32", "mixed-bf16", "mixed-f16", "bf16", "f16", "f64"};
inline constexpr llvm::StringLiteral frozenStorages[] = {"auto", "f32", "bf16", "f16", "int8", "nf4", "fp8"};
inline constexpr llvm::StringLiteral rematStrategies[] = {"fit",        "none",    "sqrt",
                                                          "greedy-xla", "min-cut", "lp-rounding"};

/// What a switch may be given; without a text it is on.
inline constexpr llvm::StringLiteral switchedOn[] = {"true", "on", "yes", "1"};
inline constexpr llvm::StringLiteral switchedOff[] = {"false", "off", "no", "0"};
inline bool isOn(llvm::StringRef text) { return llvm::is_contained(switchedOn, text); }
inline bool isOff(llvm::StringRef text) { return llvm::is_contained(switchedOff, text); }

/// Whether frozen matrices that are held so have codes, each block with a scale.
inline bool isCodedStorage(llvm::StringRef storage) {
  return storage == "int8" || storage == "nf4" || storage == "fp8";
}

/// Whether a step of that precision keeps values in 16 bits.
inline bool isNarrow(llvm::StringRef precision) { return precision.ends_with("16"); }

} // namespace lowtide
