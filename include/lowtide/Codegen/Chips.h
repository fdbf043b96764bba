//===- Chips.h - GPUs that kernels can be compiled for ----------*- C++ -*-===//
//
// One table: the chip's name, and the oldest PTX that knows it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace lowtide::codegen {

struct Chip {
  llvm::StringRef name;
  /// NVPTX feature of the PTX that is written; drivers of its age read it.
  llvm::StringRef ptx;
  /// Cards with it, for messages.
  llvm::StringRef cards;
};

/// All chips, oldest first. Below sm_80 there are no bf16 numbers.
llvm::ArrayRef<Chip> listChips();
/// Null: none of that name.
const Chip *findChip(llvm::StringRef name);

/// Everything that a step can be compiled for, by its full name and by the short ones: cpu, cpu:x86-64-v4, reference,
/// cuda, cuda:sm_90, cuda-emulated.
std::vector<std::string> listTargets();

/// The full name of a target: "cpu" → "cpu:x86-64-v3", "cuda" → "cuda:sm_90".
std::string getFullTarget(llvm::StringRef target);
/// The instruction set in a target's full name: "cuda:sm_90" → "sm_90".
std::string getMachine(llvm::StringRef target);

} // namespace lowtide::codegen
