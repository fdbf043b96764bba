//===- OpFacts.h - the static facts of an op --------------------*- C++ -*-===//
//
// Plain data that an op's record states once and every pass may read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace lowtide {

/// What mixed precision does with an op's operands.
enum class PrecisionPolicy : uint8_t {
  Follow, ///< computes in the type of its operands (movement, cheap elementwise)
  Low,    ///< contraction: 16-bit operands, f32 accumulation
  High,   ///< f32 whatever comes in (norms, losses, exponentials, reductions)
};

/// How a result's bytes relate to operand 0's.
enum class Aliasing : uint8_t {
  None,    ///< a new buffer
  View,    ///< the same bytes under another shape
  InPlace, ///< may overwrite an operand of equal size that dies here
  Moved,   ///< the same numbers in another memory
};

/// How the op treats the batch dimension.
enum class BatchRule : uint8_t {
  Pointwise, ///< each sample's result depends on that sample only, same position
  Movement,  ///< as Pointwise, but the dimension may change position: ask the op
  Contract,  ///< sums over the batch when the batch dimension is reduced
  Couples,   ///< a sample's result depends on other samples (batch norm)
  Unknown,
};

/// Family of an op: decides which emitter takes it.
enum class OpFamily : uint8_t {
  Elementwise,
  Movement,
  Reduction,
  Contraction,
  Convolution,
  Pooling,
  Indexing,
  Normalization,
  Loss,
  Random,
  Constant,
  Attention,
  Optimizer,
  Fusion, ///< a group of ops that is one kernel
  Repeat, ///< runs a block several times
};

/// How the results of a family are kept in mixed precision, unless the op says otherwise: sums, losses, random numbers
/// and optimizer state only in f32.
constexpr PrecisionPolicy getStoragePolicy(OpFamily family) {
  return family == OpFamily::Reduction || family == OpFamily::Loss || family == OpFamily::Random ||
                 family == OpFamily::Optimizer
             ? PrecisionPolicy::High
             : PrecisionPolicy::Follow;
}

/// Facts that hold for every instance of an op.
struct OpFacts {
  OpFamily family;
  PrecisionPolicy precision;
  Aliasing aliasing;
  BatchRule batch;
  /// Floating-point operations per result element, for ops whose cost is proportional to their result; transcendental
  /// functions are counted as the instructions they expand to.
  uint32_t flopsPerElement;
  /// Whether an element costs more to compute twice than to read: transcendental functions do.
  constexpr bool isExpensive() const { return flopsPerElement >= 8; }
  /// Comma-separated ONNX operators that this op implements directly ("ai.onnx" domain unless prefixed).
  const char *onnxOrigin;
};

} // namespace lowtide
