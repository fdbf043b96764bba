//===- WeightConversion.h - weights in the types of a step ------*- C++ -*-===//
//
// A step may keep in f64, f16 or bf16 what the model file has in f32.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "plan.pb.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace lowtide {

/// From f32 to the type in which a step keeps a tensor; false where that type is none that it may have made of f32.
/// `isSplit`: the tensor is one of the halves of f32 numbers (runtime/Halves.h), the upper of bf16, the lower of i16.
class WeightConversion {
public:
  explicit WeightConversion(mlir::Type element, bool isSplit = false);

  explicit operator bool() const { return type.has_value(); }
  /// Rounds the numbers of `bytes` (to nearest even; to a half as that is rounded) if they are f32 and their tensor
  /// takes `expected` bytes in the step; else they stay: in the step's type already, which leaves zeros to lower
  /// halves, or of a wrong number, which is the caller's to say.
  void apply(std::string &bytes, uint64_t expected) const;

private:
  std::optional<plan::DType> type;
  uint64_t elementBytes = 0;
  bool isSplit;
};

} // namespace lowtide
