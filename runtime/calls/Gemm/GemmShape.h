//===- GemmShape.h - the call "gemm", read --------------------------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_GEMM_GEMMSHAPE_H
#define LOWTIDE_RUNTIME_CALLS_GEMM_GEMMSHAPE_H

#include "runtime/calls/CallAttributes.h"
#include "runtime/calls/CallKind.h"
#include "runtime/kernels/WideVectors.h"

#include <cstdint>
#include <memory>
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

/// Reads a "gemm" call; refuses what is missing, unknown, out of range or too large to count.
Expected<GemmShape> readGemm(const plan::Call &call);
std::span<const LibraryRule> getGemmRules();
const LibraryRule *declineGemm(const GemmShape &shape);

/// With vectors of 64 bytes, or of 32 on any machine; no bit of the result depends on it.
std::unique_ptr<PreparedCall> prepareGemm(const GemmShape &shape, const CallOperands &operands,
                                          bool usesWideVectors = kernels::prefersWideVectors());
/// The same for 16-bit operands.
std::unique_ptr<PreparedCall> prepareNarrowGemm(const GemmShape &shape, const CallOperands &operands);
/// A gemm of any types, and after it what its epilogue applies to every element.
std::unique_ptr<PreparedCall> prepareGemmWithEpilogue(const GemmShape &shape, const CallOperands &operands);

namespace cuda {
Expected<std::unique_ptr<LibraryCall>> prepareCublasLtGemm(Libraries &libraries, const GemmShape &shape,
                                                           const CallAddresses &addresses);
} // namespace cuda

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLS_GEMM_GEMMSHAPE_H
