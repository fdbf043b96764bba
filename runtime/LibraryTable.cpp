//===- LibraryTable.cpp - what cuBLASLt and cuDNN take ---------------------===//

#include "runtime/LibraryTable.h"

#include "runtime/Verify.h"
#include "runtime/kernels/Attention.h"

#include <algorithm>

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
  ConvTypes,
  ConvSizes,
  ConvChannelsLast,
  ConvBias,
  AttentionTypes,
  AttentionHeads,
  AttentionRows,
  AttentionMask,
  AttentionSizes,
  AttentionLayouts,
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
     "sums over k of B or of A beside a product of 16-bit operands into f32, A stored transposed and B not, without "
     "batch and addend",
     "it sums an operand in a type, orientation or combination that is not taken",
     "cuBLAS 13.0 documentation, cublasLtEpilogue_t: BGRADA and BGRADB, whose sums over k have D's type", false},
    {"cuDNN", "f32, f16 and bf16 operands with results of the same type, f32 arithmetic",
     "its operand and result types are not a supported set",
     "cuDNN 9 documentation, convolutions of packed tensors: PSEUDO_HALF, PSEUDO_BFLOAT16 and FLOAT "
     "configurations",
     true, true},
    {"cuDNN", "tensors below 2^31 elements", "a tensor has 2^31 elements or more",
     "cuDNN 9 documentation, 64-bit indexing is offered by part of the engines only", false},
    {"cuDNN",
     "convolutions channels last in 16 bits; where there are groups, each with a multiple of 8 channels on both sides",
     "it has its channels last in f32, or groups of channels that are no multiple of 8",
     "NVIDIA, Convolutional Layers User's Guide: tensor layouts in memory, channels in and out; cuDNN pads channels, "
     "but not those of groups",
     false, true},
    {"cuDNN", "convolutions without a bias", "it adds a bias, for which no engine is offered by itself",
     "cuDNN 9.26, asked for engines for sm_80 and sm_90: none adds one value per channel to tensors with channels "
     "first",
     false, true},
    {"cuDNN", "attention of f16 or bf16 with f32 logarithms of sums, from version 9.16 on",
     "its operands are not f16 or bf16",
     "cuDNN 9 documentation, Attention: supported graph patterns; before 9.16 columns had to be a multiple of 128 "
     "(cuDNN frontend 1.32, scaled_dot_product_flash_attention.h)",
     true, true},
    {"cuDNN", "attention heads of a multiple of 8 up to 128 elements, heads a multiple of the key heads",
     "the size of its heads is no multiple of 8 up to 128",
     "cuDNN 9 documentation, Attention: hidden dimensions on Ampere and, for the derivative, in general; 16-byte loads",
     false, true},
    {"cuDNN", "attention of two rows or more", "it has one row, which the derivative does not take",
     "cuDNN frontend 1.32, scaled_dot_product_flash_attention.h, sdpa_support_surface.h; cuDNN 9.26 ends the process "
     "on "
     "some of them",
     false, true},
    {"cuDNN", "a mask of the operands' type, written out over rows and columns, for all or each sample and head",
     "its mask has another type, or repeats along rows or columns",
     "cuDNN 9 documentation, Attention: bias of shape [1 or B, 1 or H, rows, columns]", false, true},
    {"cuDNN", "attention with fewer than 2^31 elements in any operand or row of scores",
     "an operand has 2^31 elements or more",
     "cuDNN 9 documentation, 64-bit indexing is offered by part of the engines only", false},
    {"cuDNN",
     "attention on parts of larger tensors and in any order of batch, heads and rows: a head's elements side by "
     "side, everything else in steps of 16 bytes",
     "elements of a head are apart, or a step is no multiple of 16 bytes",
     "cuDNN 9 documentation, Attention: layouts BHSD, BSHD and interleaved, forward and backward; 16-byte loads", false,
     true},
};

constexpr int64_t maxSize = (int64_t(1) << 31) - 1;

} // namespace

std::span<const LibraryRule> libraryRules() { return rules; }

Expected<const LibraryRule *> declineCall(const plan::Call &call) {
  if (call.callee() == "gemm") {
    Expected<GemmShape> shape = readGemm(call);
    if (!shape)
      return shape.takeStatus();
    return declineGemm(*shape);
  }
  if (isAttention(call)) {
    Expected<AttentionShape> shape = readAttention(call);
    if (!shape)
      return shape.takeStatus();
    return declineAttention(*shape);
  }
  Expected<ConvShape> shape = readConv(call);
  if (!shape)
    return shape.takeStatus();
  return declineConv(*shape, call.reads_size() > 2);
}

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
  if (std::max({shape.m, shape.n, shape.k, shape.batchCount()}) > maxSize)
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

const LibraryRule *declineConv(const ConvShape &shape, bool biased) {
  if (biased)
    return &rules[ConvBias];
  bool narrow = isNarrow(shape.dtype);
  if (!(shape.dtype == plan::F32 || narrow) || shape.resultDtype != shape.dtype)
    return &rules[ConvTypes];
  if (std::max({shape.inputElements(), shape.outputElements(), shape.filterElements()}) >
      static_cast<uint64_t>(maxSize))
    return &rules[ConvSizes];
  const bool isGrouped = shape.groups > 1;
  if (shape.channelsLast && (!narrow || (isGrouped && (shape.channels % 8 || shape.outChannels % 8))))
    return &rules[ConvChannelsLast];
  return nullptr;
}

const LibraryRule *declineAttention(const AttentionShape &shape) {
  if (!isNarrow(shape.dtype))
    return &rules[AttentionTypes];
  auto isHeadSize = [](int64_t size) { return size % 8 == 0 && size <= 128; };
  if (!isHeadSize(shape.depth) || !isHeadSize(shape.valueDepth))
    return &rules[AttentionHeads];
  if (shape.rows < 2 || shape.columns < 2)
    return &rules[AttentionRows];
  if (shape.hasMask &&
      (shape.maskDtype != shape.dtype || shape.mask[2] != shape.rows || shape.mask[3] != shape.columns))
    return &rules[AttentionMask];
  uint64_t largest = shape.maskElements();
  for (int i = 0; i < AttentionShape::numTensors; ++i) {
    auto tensor = static_cast<AttentionShape::Tensor>(i);
    if (i > AttentionShape::O && !shape.isGradient)
      continue;
    largest = std::max(largest, shape.span(tensor));
    std::array<int64_t, 4> dims = shape.dims(tensor);
    const TensorLayout &layout = shape.layouts[tensor];
    bool isLoadable = layout.offset % 8 == 0 && (dims[3] == 1 || layout.strides[3] == 1);
    for (size_t d = 0; d < 3; ++d)
      isLoadable &= dims[d] == 1 || layout.strides[d] % 8 == 0;
    if (!isLoadable)
      return &rules[AttentionLayouts];
  }
  return largest > static_cast<uint64_t>(maxSize) ? &rules[AttentionSizes] : nullptr;
}

bool hasCpuKernel(const plan::Call &call) {
  if (isAttention(call)) {
    Expected<AttentionShape> attention = readAttention(call);
    return attention && hasAttentionKernel(*attention);
  }
  Expected<ConvShape> conv = call.callee() == "gemm" ? ConvShape() : readConv(call);
  return !conv || !conv->channelsLast;
}

} // namespace lowtide::rt
