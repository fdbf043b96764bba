//===- CallShape.h - the attributes of library calls, read and checked -----===//
//
// One reading of Call.attributes for everybody: verifier, workspace query, executor. The attributes are described in
// docs/artifact.md.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CALLSHAPE_H
#define LOWTIDE_RUNTIME_CALLSHAPE_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <array>
#include <cstdint>
#include <vector>

namespace lowtide::rt {

/// D = f(alpha · op(A) · op(B) (+ addend)), for every index of the batch dimensions. Strides count elements.
struct GemmShape {
  enum class Addend { None, Full, Row, Column }; ///< m×n · n values, one per column · m values, one per row
  /// What is applied to every element z before it is written: max(z, 0) · gelu(z), the tanh form · z · gelu'(input) ·
  /// z where the bit of a mask is set, else 0.
  enum class Epilogue { None, Relu, Gelu, GeluGrad, ReluGrad };
  struct BatchDim {
    int64_t extent = 1;
    int64_t strideA = 0, strideB = 0, strideC = 0, strideD = 0;
  };

  plan::DType dtype = plan::F32;       ///< of A and B; 16-bit floats are summed in f32
  plan::DType resultDtype = plan::F32; ///< of addend and D: f32 or `dtype`
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0; ///< distance of stored rows
  bool transposeA = false, transposeB = false;
  double alpha = 1.0;
  Addend addend = Addend::None;
  bool accumulate = false; ///< the addend is what D holds
  Epilogue epilogue = Epilogue::None;
  bool keepsInput = false;  ///< a second result, laid out as D, gets what the epilogue was applied to
  bool keepsMask = false;   ///< a second result gets a bit for each element that ReLU leaves as it is
  bool sumsColumns = false; ///< a second result gets n values, the sums of D's columns
  bool sumsOperand = false; ///< a second result gets n values, the sums of the columns of op(B)
  bool sumsLeft = false;    ///< a second result gets m values, the sums of the rows of op(A)
  std::vector<BatchDim> batch;

  int64_t batchCount() const;
  bool isDerivative() const { return epilogue == Epilogue::GeluGrad || epilogue == Epilogue::ReluGrad; }
  /// Operands of the call: A, B, an addend, the input of a derivative (laid out as D) or its mask.
  int reads() const { return 2 + (addend != Addend::None) + isDerivative(); }
  int writes() const { return 1 + keepsInput + keepsMask + sumsColumns + sumsOperand + sumsLeft; }
  bool hasSums() const { return sumsColumns || sumsOperand || sumsLeft; }
  int64_t sumsCount() const { return sumsLeft ? m : n; }
  /// A mask has m rows of n bits, the lowest of a byte first, each row filled up to a multiple of 128.
  uint64_t maskRowBytes() const { return (static_cast<uint64_t>(n) + 127) / 128 * 16; }
  uint64_t maskBytes() const { return static_cast<uint64_t>(m) * maskRowBytes(); }
  /// Elements from the first to one past the last one that the operand's strides reach.
  uint64_t spanA = 0, spanB = 0, spanC = 0, spanD = 0;
};

/// Spatial dimensions are brought to three by leading ones: depth, height, width.
struct ConvShape {
  enum class Kind { Forward, InputGrad, FilterGrad };
  static constexpr int spatial = 3;
  using Dims = std::array<int64_t, spatial>;

  Kind kind = Kind::Forward;
  plan::DType dtype = plan::F32;       ///< of the operands; 16-bit floats are summed in f32
  plan::DType resultDtype = plan::F32; ///< of result and bias: f32 or `dtype`
  bool channelsLast = false;           ///< dimension 1 of all three tensors is stored as the last one
  int64_t batch = 0, groups = 1;
  int64_t channels = 0;    ///< input channels per group
  int64_t outChannels = 0; ///< output channels per group
  Dims input{1, 1, 1}, filter{1, 1, 1}, output{1, 1, 1};
  Dims stride{1, 1, 1}, padBegin{0, 0, 0}, dilation{1, 1, 1};

  static int64_t volume(const Dims &dims) { return dims[0] * dims[1] * dims[2]; }
  uint64_t inputElements() const { return static_cast<uint64_t>(batch * groups * channels * volume(input)); }
  uint64_t outputElements() const { return static_cast<uint64_t>(batch * groups * outChannels * volume(output)); }
  uint64_t filterElements() const { return static_cast<uint64_t>(groups * outChannels * channels * volume(filter)); }
};

/// Where the elements of a tensor of four dimensions lie in its bytes. Both count elements.
struct TensorLayout {
  int64_t offset = 0; ///< of the first element
  std::array<int64_t, 4> strides{};
  bool isStated = false; ///< an operand may be a part of what is read then
};

/// softmax(scale · q kᵀ + mask) v for each head, and the cotangents of q, k, v. q: [batch, heads, rows, depth];
/// k: [batch, keyHeads, columns, depth]; v: [batch, keyHeads, columns, valueDepth]; o as q with valueDepth; lse, the
/// logarithm of the sum of each row's exponentials: [batch, heads, rows], f32. Packed, in that order, unless `layouts`
/// say otherwise.
struct AttentionShape {
  enum Tensor { Q, K, V, O, GradO, GradQ, GradK, GradV, numTensors };

  bool isGradient = false;
  plan::DType dtype = plan::F32; ///< of all but lse and mask
  int64_t batch = 0, heads = 0, keyHeads = 0, rows = 0, columns = 0, depth = 0, valueDepth = 0;
  double scale = 1.0;
  bool isCausal = false; ///< row t sees columns ≤ t
  bool hasMask = false;
  std::array<int64_t, 4> mask{1, 1, 1, 1}; ///< each 1 or as in [batch, heads, rows, columns]
  plan::DType maskDtype = plan::F32;       ///< `dtype` or f32
  std::array<TensorLayout, numTensors> layouts;
  bool sharesResult = false; ///< the cotangents of q, k and v are parts of one result

  /// q, k, v (o, lse, the cotangent of o) (mask); o and lse, or the cotangents of q, k and v, in one result or three.
  int reads() const { return (isGradient ? 6 : 3) + hasMask; }
  int writes() const { return !isGradient ? 2 : sharesResult ? 1 : 3; }
  std::array<int64_t, 4> dims(Tensor tensor) const;
  uint64_t elements(Tensor tensor) const;
  /// The layout in which nothing is said.
  void pack(Tensor tensor);
  /// Whether each element of each result is written once: a result without gaps, or parts of rows that fill one.
  bool fillsResults() const;
  /// Elements from the beginning of the bytes to one past the last one that the layout reaches.
  uint64_t span(Tensor tensor) const;
  uint64_t rowCount() const { return static_cast<uint64_t>(batch * heads * rows); }
  uint64_t maskElements() const { return static_cast<uint64_t>(mask[0] * mask[1] * mask[2] * mask[3]); }
};

/// Whether a call with this operand type goes through conversions to f32.
inline bool isNarrow(plan::DType dtype) { return dtype == plan::F16 || dtype == plan::BF16; }

/// Reads a "gemm" call; refuses what is missing, unknown, out of range or too large to count.
Expected<GemmShape> readGemm(const plan::Call &call);

/// Number of the read over which the first result may be written; -1: none.
int overwritableRead(const plan::Call &call);

/// Whether the callee is "attention" or "attention_grad".
bool isAttention(const plan::Call &call);
Expected<AttentionShape> readAttention(const plan::Call &call);

/// Reads "conv", "conv_input_grad" or "conv_filter_grad"; the three shapes must agree with each other.
Expected<ConvShape> readConv(const plan::Call &call);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLSHAPE_H
