//===- Chips.h - GPUs that kernels can be compiled for ----------*- C++ -*-===//
//
// One table: the chip's name, and the oldest PTX that knows it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

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

} // namespace lowtide::codegen
