//===- QuantizedRules.cpp - weights that a file holds in few bits ---------===//
//
// Rules for operators that read quantized weights: codes become numbers where they are read, and stay as they are in
// the file. What quantizes values of the step has no derivative and is refused.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/MatMul.h"
#include "lowtide/Legalize/Rules.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// Codes of 1, 2, 4 or 8 bits of which bytes hold several along the last dimension; `lowFirst`: the low bits hold the
/// first.
Expr unpackBits(Expr bytes, int64_t bits, bool lowFirst = true) {
  if (bits == 8)
    return bytes;
  const int64_t perByte = 8 / bits;
  SmallVector<int64_t> parted(bytes.shape()), unpacked(bytes.shape());
  parted.push_back(1);
  unpacked.back() *= perByte;
  SmallVector<Expr> parts;
  for (int64_t i = 0; i < perByte; ++i) {
    const double shift = bits * (lowFirst ? i : perByte - 1 - i);
    Expr code = nn::logicalAnd(nn::shiftRight(bytes, bytes.like(shift)), bytes.like((1 << bits) - 1));
    parts.push_back(nn::reshape(code, parted));
  }
  return nn::reshape(nn::concat(parts, parted.size() - 1), unpacked);
}

/// The blocks' values, one for every `blockSize` elements of `axis`, spread over `extent` elements.
Expr spreadBlocks(Expr blocks, int64_t axis, int64_t blockSize, int64_t extent) {
  SmallVector<int64_t> dims, spread(blocks.shape()), joined(blocks.shape()), sizes(blocks.shape());
  for (int64_t d = 0; d < blocks.rank(); ++d)
    dims.push_back(d <= axis ? d : d + 1);
  spread.insert(spread.begin() + axis + 1, blockSize);
  joined[axis] *= blockSize;
  sizes[axis] = extent;
  Expr all = nn::reshape(nn::broadcast(blocks, spread, dims), joined);
  return nn::slice(all, SmallVector<int64_t>(blocks.rank(), 0), sizes);
}

/// (codes − zero points) · scales, all of one shape. The difference is of integers where both are.
Expr dequantize(Expr codes, Expr zeroPoints, Expr scales) {
  Type number = scales.elementType();
  if (!zeroPoints)
    return nn::cast(codes, number) * scales;
  if (!isa<IntegerType>(zeroPoints.elementType()))
    return (nn::cast(codes, number) - nn::cast(zeroPoints, number)) * scales;
  Type whole = IntegerType::get(number.getContext(), 32);
  return nn::cast(nn::cast(codes, whole) - nn::cast(zeroPoints, whole), number) * scales;
}

/// ONNX DequantizeLinear: one scale for the tensor, for every index of an axis, or for every block along it.
LogicalResult dequantizeLinear(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr codes = n.in(0), scales = n.in(1), zeros = n.in(2);
  if (!isa<IntegerType>(codes.elementType()) || !isa<FloatType>(scales.elementType()))
    return n.refuse("codes that are not integers");
  const int64_t blockSize = n.attr("block_size", 0);
  // Of one number for the tensor, one may be a scalar and the other a vector of one.
  const bool isOfTensor = blockSize == 0 && scales.rank() <= 1 && zeros && zeros.rank() <= 1 &&
                          countOf(scales.shape()) == 1 && countOf(zeros.shape()) == 1;
  if (zeros && zeros.shape() != scales.shape() && !isOfTensor)
    return n.reject("zero points and scales have unlike shapes");
  auto spread = [&](Expr values) -> FailureOr<Expr> {
    if (values.rank() == 0 || (values.rank() == 1 && values.dim(0) == 1 && blockSize == 0))
      return nn::broadcastTo(values, codes.shape());
    FailureOr<int64_t> axis = n.axis(n.attr("axis", 1), codes.rank());
    if (failed(axis))
      return failure();
    if (blockSize == 0) {
      if (values.rank() != 1 || values.dim(0) != codes.dim(*axis))
        return (void)n.reject("there is not one scale for every index of axis " + Twine(*axis)), failure();
      return nn::broadcast(values, codes.shape(), {*axis});
    }
    SmallVector<int64_t> blocks(codes.shape());
    blocks[*axis] = blockSize > 0 ? llvm::divideCeil(blocks[*axis], blockSize) : 0;
    if (blockSize < 0 || values.shape() != ArrayRef<int64_t>(blocks))
      return (void)n.reject("there is not one scale for every block of " + Twine(blockSize) + " elements of axis " +
                            Twine(*axis)),
             failure();
    return spreadBlocks(values, *axis, blockSize, codes.dim(*axis));
  };
  FailureOr<Expr> scale = spread(scales), zero = zeros ? spread(zeros) : FailureOr<Expr>(Expr());
  if (failed(scale) || failed(zero))
    return failure();
  n.set(0, dequantize(codes, *zero, *scale));
  return success();
}

/// The numbers that a matrix [N,K] of com.microsoft.MatMulNBits stands for. `codes`: [N, blocks, bytes of a block].
FailureOr<Expr> unpackMatrix(NodeView &n, int64_t rows, int64_t columns, Expr codes, Expr scales, Expr zeros) {
  const int64_t bits = n.attr("bits", 4), blockSize = n.attr("block_size", 0);
  if (bits != 2 && bits != 4 && bits != 8)
    return (void)n.refuse("codes of " + Twine(bits) + " bits"), failure();
  if (rows <= 0 || columns <= 0 || blockSize <= 0 || blockSize % (8 / bits))
    return (void)n.reject("its sizes are not positive"), failure();
  const int64_t blocks = llvm::divideCeil(columns, blockSize), perByte = 8 / bits;
  const int64_t zeroBytes = llvm::divideCeil(blocks, perByte);
  if (countOf(codes.shape()) != rows * blocks * (blockSize / perByte) || countOf(scales.shape()) != rows * blocks)
    return (void)n.reject("weights and scales are not those of " + Twine(rows) + " × " + Twine(columns) +
                          " codes in blocks of " + Twine(blockSize)),
           failure();
  Expr matrix = nn::reshape(unpackBits(nn::reshape(codes, {rows, blocks, blockSize / perByte}), bits),
                            {rows, blocks * blockSize});
  matrix = nn::slice(matrix, {0, 0}, {rows, columns});
  auto spread = [&](Expr values) {
    return spreadBlocks(nn::reshape(values, {rows, blocks}), /*axis=*/1, blockSize, columns);
  };
  // Without zero points the codes lie on both sides of the middle one.
  Expr zero;
  if (!zeros) {
    zero = n.splat(n.builder.getI32Type(), {rows, columns}, int64_t(1) << (bits - 1));
  } else if (isa<FloatType>(zeros.elementType()) && countOf(zeros.shape()) == rows * blocks) {
    zero = spread(zeros);
  } else if (!isa<FloatType>(zeros.elementType()) && countOf(zeros.shape()) == rows * zeroBytes) {
    Expr all = unpackBits(nn::reshape(zeros, {rows, zeroBytes}), bits);
    zero = spread(nn::slice(all, {0, 0}, {rows, blocks}));
  } else {
    return (void)n.reject("zero points are not those of " + Twine(rows * blocks) + " blocks"), failure();
  }
  return dequantize(matrix, zero, spread(scales));
}

/// com.microsoft.MatMulNBits: A · Bᵀ (+ bias), B in blocks of codes along K.
LogicalResult matMulNBits(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  if (n.has(4))
    return n.refuse("an order of its own for the groups (g_idx)");
  const int64_t rows = n.attr("N", 0), columns = n.attr("K", 0);
  FailureOr<Expr> matrix = unpackMatrix(n, rows, columns, n.in(1), n.in(2), n.in(3));
  if (failed(matrix))
    return failure();
  FailureOr<Expr> y = matmul(n.in(0), nn::transpose(nn::cast(*matrix, n.in(0).elementType()), {1, 0}));
  if (failed(y))
    return n.reject("matrices do not fit together");
  if (n.has(5)) {
    if (n.in(5).shape() != ArrayRef<int64_t>({rows}))
      return n.reject("the bias does not have " + Twine(rows) + " elements");
    *y = *y + nn::broadcastTo(n.in(5), y->shape());
  }
  n.set(0, *y);
  return success();
}

/// The 16 numbers that a code of com.microsoft.MatMulBnb4 stands for (bitsandbytes, functional.py): FP4, and NF4 of
/// "QLoRA: Efficient Finetuning of Quantized LLMs", appendix E.
constexpr double fp4Map[16] = {0.0,  0.00520833333,  0.66666667,  1.0,  0.33333333,  0.5,  0.16666667,  0.25,
                               -0.0, -0.00520833333, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25};
constexpr double nf4Map[16] = {-1.0,
                               -0.6961928009986877,
                               -0.5250730514526367,
                               -0.39491748809814453,
                               -0.28444138169288635,
                               -0.18477343022823334,
                               -0.09105003625154495,
                               0.0,
                               0.07958029955625534,
                               0.16093020141124725,
                               0.24611230194568634,
                               0.33791524171829224,
                               0.44070982933044434,
                               0.5626170039176941,
                               0.7229568362236023,
                               1.0};

/// com.microsoft.MatMulBnb4: A · Bᵀ, B as bitsandbytes packs it: the high bits of a byte hold the first of two codes.
LogicalResult matMulBnb4(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  const int64_t rows = n.attr("N", 0), columns = n.attr("K", 0), blockSize = n.attr("block_size", 0);
  const int64_t kind = n.attr("quant_type", 1);
  if (kind != 0 && kind != 1)
    return n.reject("quant_type is 0 (FP4) or 1 (NF4), not " + Twine(kind));
  if (n.attr("training_mode", 0) != 0 || n.attr("transB", 1) != 1)
    return n.refuse("another order of its matrix");
  Expr codes = n.in(1), scales = n.in(2);
  if (rows <= 0 || columns <= 0 || blockSize <= 0)
    return n.reject("its sizes are not positive");
  const int64_t count = countOf({rows, columns});
  if (count < 0 || countOf(codes.shape()) != int64_t(llvm::divideCeil(count, 2)) ||
      countOf(scales.shape()) != int64_t(llvm::divideCeil(count, blockSize)))
    return n.reject("weights and scales are not those of " + Twine(rows) + " × " + Twine(columns) +
                    " codes in blocks of " + Twine(blockSize));
  Expr all = unpackBits(nn::reshape(codes, {countOf(codes.shape())}), 4, /*lowFirst=*/false);
  Expr code = nn::cast(nn::slice(all, {0}, {count}), n.builder.getI32Type());
  SmallVector<float> numbers(llvm::ArrayRef<double>(kind ? nf4Map : fp4Map));
  Expr map = n.dense(DenseElementsAttr::get(RankedTensorType::get({16}, n.builder.getF32Type()), ArrayRef(numbers)));
  Expr scale = spreadBlocks(nn::reshape(scales, {countOf(scales.shape())}), /*axis=*/0, blockSize, count);
  Expr matrix = nn::gather(nn::cast(map, scale.elementType()), code, /*axis=*/0) * scale;
  matrix = nn::cast(nn::reshape(matrix, {rows, columns}), n.in(0).elementType());
  FailureOr<Expr> y = matmul(n.in(0), nn::transpose(matrix, {1, 0}));
  if (failed(y))
    return n.reject("matrices do not fit together");
  n.set(0, *y);
  return success();
}

/// com.microsoft.GatherBlockQuantized: rows of a table in blocks of codes; only the rows that are read become numbers.
LogicalResult gatherBlockQuantized(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr codes = n.in(0), indices = n.in(1), scales = n.in(2), zeros = n.in(3);
  const int64_t bits = n.attr("bits", 4), blockSize = n.attr("block_size", 128);
  FailureOr<int64_t> axis = n.axis(n.attr("gather_axis", 0), codes.rank()),
                     quantized = n.axis(n.attr("quantize_axis", 1), codes.rank());
  if (failed(axis) || failed(quantized))
    return failure();
  if (*axis != 0 || *quantized != codes.rank() - 1 || codes.rank() != 2)
    return n.refuse("another order than rows of blocks (gather_axis 0, quantize_axis last)");
  // Bytes hold several codes; a table of int4 and uint4 was unpacked when the file was read.
  const bool isPacked = codes.elementType().isUnsignedInteger(8) && (bits == 4 || bits == 2) &&
                        llvm::divideCeil(codes.dim(1), blockSize) != uint64_t(scales.dim(1));
  auto take = [&](Expr table) { return nn::gather(table, indices, /*axis=*/0); };
  Expr code = take(codes);
  if (isPacked)
    code = unpackBits(code, bits);
  const int64_t last = code.rank() - 1, extent = code.dim(last);
  if (blockSize <= 0 || scales.rank() != 2 || scales.dim(0) != codes.dim(0) ||
      scales.dim(1) != int64_t(llvm::divideCeil(extent, blockSize)))
    return n.reject("there is not one scale for every block of " + Twine(blockSize) + " elements");
  Expr zero;
  if (zeros) {
    zero = take(zeros);
    if (zeros.dim(1) != scales.dim(1))
      zero = unpackBits(zero, bits);
    SmallVector<int64_t> sizes(zero.shape());
    sizes.back() = scales.dim(1);
    zero = nn::slice(zero, SmallVector<int64_t>(zero.rank(), 0), sizes);
    zero = spreadBlocks(zero, last, blockSize, extent);
  } else if (codes.elementType().isUnsignedInteger(8)) {
    zero = n.splat(n.builder.getI32Type(), code.shape(), int64_t(1) << (bits - 1));
  }
  n.set(0, dequantize(code, zero, spreadBlocks(take(scales), last, blockSize, extent)));
  return success();
}

} // namespace

void lowtide::addQuantizedRules(RuleTable &t) {
  for (StringRef domain : {"", "com.microsoft."})
    t.add((domain + "DequantizeLinear").str(), dequantizeLinear);
  t.add("com.microsoft.MatMulNBits", matMulNBits);
  t.add("com.microsoft.MatMulBnb4", matMulBnb4);
  t.add("com.microsoft.GatherBlockQuantized", gatherBlockQuantized);
  const StringRef reason = "what it quantizes while the step runs has no derivative; keep weights alone in few bits "
                           "(DequantizeLinear, MatMulNBits), or export the model before quantization";
  for (StringRef name :
       {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv", "MatMulInteger", "ConvInteger"})
    t.addRefusal(name, reason);
  for (StringRef name :
       {"MatMulFpQ4", "QAttention", "QGemm", "QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearAveragePool",
        "QLinearGlobalAveragePool", "QLinearSigmoid", "QLinearSoftmax", "QLinearLeakyRelu", "QEmbedLayerNormalization",
        "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "MatMulIntegerToFloat", "QuantizeLinear"})
    t.addRefusal(("com.microsoft." + name).str(), reason);
}
