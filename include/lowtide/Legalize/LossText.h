//===- LossText.h - the grammar of --loss -----------------------*- C++ -*-===//
//
// loss    := ['-'] term (('+' | '-') term)*
// term    := [number '*'] (call | name) [('*' | '/') number]
// call    := kind '(' name ',' name (',' option '=' value)* ')'
// value   := number | name | '[' number (',' number)* ']'
// name    := what holds no space and none of , ( ) [ ] { } = + * ' " — or anything, quoted
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Support/NameList.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

/// What a loss computes; options are PyTorch's.
enum class LossKind { CrossEntropy, Nll, LogNll, Mse, L1, SmoothL1, Huber, Bce, BceWithLogits, KlDiv };

/// A kind as it is written.
struct LossKindInfo {
  LossKind kind;
  llvm::StringRef name;
  /// PyTorch's function.
  llvm::StringRef function;
  /// PyTorch's module: understood for a suggestion only.
  llvm::StringRef module;
  /// What its two operands are.
  llvm::StringRef operands;
  llvm::ArrayRef<llvm::StringRef> options;
};

/// All kinds, in the order in which they are documented.
llvm::ArrayRef<LossKindInfo> listLossKinds();
const LossKindInfo &findLossKind(LossKind kind);

/// A name where it stands; columns count bytes from 0.
struct LossName {
  std::string text;
  size_t column = 0;
};

/// `weight=w`, `weight=[0.5, 1]`, `ignore_index=-1`, `reduction=sum`.
struct LossSetting {
  LossName option;
  size_t column = 0; ///< of the value
  std::string text;  ///< as written, quotes taken off
  std::optional<double> number;
  std::vector<double> list; ///< of a value in brackets
};

/// A loss, or an output that is one, times a factor.
struct LossTerm {
  double factor = 1;
  size_t column = 0;
  /// Nothing: the term is the output `output`.
  std::optional<LossKind> kind;
  LossName output, labels;
  std::vector<LossSetting> settings;

  const LossSetting *find(llvm::StringRef option) const;
};

/// What is wrong with the text, where, and what to type.
struct LossFault {
  size_t column;
  std::string message, remedy;
};

/// Reads `text` into `terms`; nothing when all of it was understood.
std::optional<LossFault> parseLoss(llvm::StringRef text, std::vector<LossTerm> &terms);

/// `name` as the grammar takes it: in quotes where it needs them.
std::string writeLossName(llvm::StringRef name);

} // namespace lowtide
