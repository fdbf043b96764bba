//===- GemmRules.cpp - what cuBLASLt takes of "gemm" ----------------------===//

#include "runtime/calls/Gemm/GemmShape.h"

#include <algorithm>
#include <span>

namespace lowtide::rt {
namespace {

enum Row : size_t {
  GemmTypes,
  GemmBias,
  GemmWideBias,
  GemmSizes,
  GemmStrides,
  GemmFunctions,
  GemmFunctionInputs,
  GemmMasks,
  GemmColumnSums,
  GemmOperandSums,
};

constexpr LibraryRule rules[] = {
    {"cuBLASLt", "operands f32 or f64 with results of the same type, f16 or bf16 with results of the same type or f32",
     "its operand and result types are not a supported pair",
     "cuBLAS 13.0 documentation, cublasLtMatmul(), table of supported data types", false},
    {"cuBLASLt", "an addend of the size of the result, or one value per column of the row-major result",
     "its addend has one value per row of the result, which no epilogue adds to a row-major result",
     "cuBLAS 13.0 documentation, cublasLtEpilogue_t: the bias has one value per row of the column-major D", false},
    {"cuBLASLt", "values per column with results of f32, f16 and bf16", "it adds values per column to f64",
     "cuBLAS 13.0 documentation, cublasLtMatmul(): the epilogues of the f64 row are not listed", false},
    {"cuBLASLt", "m, n, k and batch up to 2^31 - 1", "a size is 2^31 or more",
     "cuBLAS 13.0 documentation, cublasLtMatrixLayoutCreate(); 32-bit sizes inside the kernels", false},
    {"cuBLASLt", "stored rows that do not overlap", "stored rows of an operand or of the result overlap",
     "cuBLAS 13.0 documentation, CUBLASLT_MATRIX_LAYOUT_LD", false},
    {"cuBLASLt", "ReLU, GELU (tanh) and their derivatives after one product without batch, not in f64",
     "it applies a function to f64 or to a batch",
     "cuBLAS 13.0 documentation, cublasLtEpilogue_t; that ReLU makes 0 of NaN is reported "
     "(forums.developer.nvidia.com, 329783)",
     false},
    {"cuBLASLt",
     "inputs of GELU kept or read with 16-bit operands and results, in rows of a multiple of 8 elements; no values per "
     "column in front of the derivative",
     "it keeps or reads the input of a function in a type, layout or combination that no epilogue has",
     "cuBLAS 13.0 documentation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD; cublasLtEpilogue_t", false},
    {"cuBLASLt",
     "a bit for each element that ReLU leaves, kept or read with results of the operands' type, in rows filled up to a "
     "multiple of 128 bits; no values per column in front of the derivative",
     "it keeps or reads the bits of ReLU in a type or combination that no epilogue has",
     "cuBLAS 13.0 documentation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD; cublasLtEpilogue_t: RELU_AUX, DRELU; the order "
     "of the bits is the library's own",
     false},
    {"cuBLASLt", "derivatives of ReLU and GELU without sums of their columns", "it sums the columns of a derivative",
     "cuBLASLt 13.1 on an H100: DGELU_BGRAD of 16384×3072×768 in bf16 takes 0.48 ms, the same product with a bias "
     "0.14 (docs/measurements/gpu.md), and has no algorithm without a workspace",
     true},
    {"cuBLASLt",
     "sums over k of B or of A next to a product of 16-bit operands into f32, A stored transposed and B not, without "
     "batch and addend",
     "it sums an operand in a type, orientation or combination that is not taken",
     "cuBLAS 13.0 documentation, cublasLtEpilogue_t: BGRADA and BGRADB, whose sums over k have D's type", false},
};

} // namespace

std::span<const LibraryRule> getGemmRules() { return rules; }

const LibraryRule *declineGemm(const GemmShape &shape) {
  bool sameTypes = shape.dtype == shape.resultDtype;
  bool narrow = isNarrow(shape.dtype);
  bool known = shape.dtype == plan::F32 || shape.dtype == plan::F64 || narrow;
  if (!known || !(sameTypes || (narrow && shape.resultDtype == plan::F32)))
    return &rules[GemmTypes];
  if (shape.addend == GemmShape::Addend::Column)
    return &rules[GemmBias];
  if (shape.addend == GemmShape::Addend::Row && shape.dtype == plan::F64)
    return &rules[GemmWideBias];
  if (std::max({shape.m, shape.n, shape.k, shape.batchCount()}) > mostElements)
    return &rules[GemmSizes];
  int64_t columnsA = shape.transposeA ? shape.m : shape.k, columnsB = shape.transposeB ? shape.k : shape.n;
  if (shape.lda < columnsA || shape.ldb < columnsB || (shape.m > 1 && shape.ldd < shape.n))
    return &rules[GemmStrides];
  using Epilogue = GemmShape::Epilogue;
  const bool takesSums = narrow && shape.resultDtype == plan::F32 && shape.transposeA && !shape.transposeB &&
                         shape.batchCount() == 1 && shape.addend == GemmShape::Addend::None;
  if ((shape.sumsOperand || shape.sumsLeft) && !takesSums)
    return &rules[GemmOperandSums];
  if (shape.epilogue == Epilogue::None)
    return nullptr;
  if (shape.dtype == plan::F64 || shape.batchCount() != 1)
    return &rules[GemmFunctions];
  if (!shape.keepsInput && !shape.keepsMask && !shape.isDerivative())
    return nullptr;
  const bool hasBits = shape.keepsMask || shape.epilogue == Epilogue::ReluGrad;
  const bool possible =
      hasBits ? sameTypes : narrow && sameTypes && shape.epilogue != Epilogue::Relu && shape.ldd % 8 == 0;
  if (!possible || (shape.isDerivative() && shape.addend == GemmShape::Addend::Row))
    return &rules[hasBits ? GemmMasks : GemmFunctionInputs];
  if (shape.sumsColumns)
    return &rules[GemmColumnSums];
  return nullptr;
}

} // namespace lowtide::rt
