//===- Adapters.h - low-rank pairs that are trained in place of weights -*- C++ -*-===//
//
// The rules of --lora, and what the artifact says about each pair so that files of PEFT can be written and read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Support/NameList.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace lowtide::train {

/// Argument attribute of what no file holds: how it starts, as ParameterSource.random_init has it.
inline constexpr llvm::StringLiteral initAttrName = "train.init";
/// The rule of what starts as the norms of a weight's outputs; `train.adapters` says of which.
inline constexpr llvm::StringLiteral normInit = "norm";
/// Module attribute: an array of dictionaries with the fields of the plan's Adapter.
inline constexpr llvm::StringLiteral adaptersAttrName = "train.adapters";

/// `PATTERN[,PATTERN]:r=16[,alpha=32][,dropout=0.05][,rslora][,dora]`.
struct AdapterRule {
  std::string text; ///< as written
  std::vector<NamePattern> patterns;
  int64_t rank = 0;
  double alpha = 0.0;   ///< absent: the rank, a scale of 1
  double dropout = 0.0; ///< of the pair's input
  bool isRankStabilized = false;
  bool isDecomposed = false; ///< magnitudes are trained next to the pair (DoRA)

  /// What B · A is multiplied with: alpha / rank, or alpha / √rank.
  double getScale() const;
};

/// Rules separated by `;`. Errors say what was found and what is possible.
llvm::Expected<std::vector<AdapterRule>> parseAdapterRules(llvm::StringRef text);

/// The layer that a parameter belongs to, as PyTorch names modules: `h.0.qkv` of `h.0.qkv.weight`.
llvm::StringRef getLayerOf(llvm::StringRef parameter);

} // namespace lowtide::train
