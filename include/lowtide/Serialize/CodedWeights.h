//===- CodedWeights.h - what codes of few bits change -----------*- C++ -*-===//
//
// The error of a frozen matrix that a step holds in codes (train-encode-frozen).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinAttributes.h"

namespace lowtide {

struct CodedError {
  uint64_t bytesBefore = 0, bytes = 0; ///< in f32; codes and scales
  double largest = 0;                  ///< size of the largest error, relative to the largest number of the matrix
  double rms = 0;                      ///< root of the sum of squared errors, relative to that of squared numbers
};

/// `coded`: what the argument of the codes says (train::codedAttrName); `bytes`: the matrix in the file. Returns what
/// stands in the way of encoding it, half a sentence; empty: nothing does.
std::string measureCoded(mlir::DictionaryAttr coded, llvm::StringRef bytes, CodedError &error);

} // namespace lowtide
