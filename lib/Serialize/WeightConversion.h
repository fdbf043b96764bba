//===- WeightConversion.h - weights in the types of a step ------*- C++ -*-===//
//
// A step may keep in f64, f16, bf16 or codes of few bits what the model file has in f32.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "plan.pb.h"
#include "runtime/FewBits.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace lowtide {

/// Codes or scales of a frozen matrix: the part that one tensor of the step holds (`plan.source`'s fields).
struct CodedPart {
  rt::FewBits codec;
  bool isScale;
  uint64_t rows, columns; ///< of the matrix, in the order of its codes
  bool isTransposed;      ///< the file has it the other way round

  /// Nothing where `fields` name no codec that is known, and no matrix of whole blocks.
  static std::optional<CodedPart> get(mlir::DictionaryAttr fields);
  /// The numbers of the matrix in the order of its codes; `bytes` are those of the file.
  std::vector<float> order(llvm::StringRef bytes) const;
};

/// From f32 to the type in which a step keeps a tensor; false where that type is none that it may have made of f32.
/// `isSplit`: the tensor is one of the halves of f32 numbers (runtime/Halves.h), the upper of bf16, the lower of i16.
class WeightConversion {
public:
  /// `coded`: fields of the tensor's source, or of the argument; may be null.
  WeightConversion(mlir::Type element, mlir::DictionaryAttr coded, bool isSplit = false);

  explicit operator bool() const { return type.has_value() || coded.has_value(); }
  /// Rounds the numbers of `bytes` (to nearest even; to a half as that is rounded), or encodes them, if they are f32
  /// and their tensor takes `expected` bytes in the step; else they stay: in the step's type already, which leaves
  /// zeros to lower halves, or of a wrong number, which is the caller's to say. Returns what stands in the way, half a
  /// sentence; empty: nothing does.
  std::string apply(std::string &bytes, uint64_t expected) const;

private:
  std::optional<CodedPart> coded;
  std::optional<plan::DType> type;
  uint64_t elementBytes = 0;
  bool isSplit;
};

} // namespace lowtide
