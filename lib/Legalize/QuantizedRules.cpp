//===- QuantizedRules.cpp - weights that a file holds in few bits ---------===//
//
// Rules for operators that read quantized weights: codes become numbers where they are read, and stay as they are in
// the file. What quantizes values of the step and reads them back at once is fake quantization, with the gradient that
// torch.fake_quantize_per_tensor_affine has (PyTorch, FakeQuantizeCore: the mask of what is in range); anything else
// that quantizes them has no derivative and is refused.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/MatMul.h"
#include "lowtide/Legalize/Rules.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

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

/// Scales or zero points of ONNX's QuantizeLinear and DequantizeLinear, one for each element of `shape`: there is one
/// for the tensor, for every index of an axis, or for every block along it.
FailureOr<Expr> spreadOver(NodeView &n, Expr values, ArrayRef<int64_t> shape) {
  const int64_t blockSize = n.attr("block_size", 0);
  if (values.rank() == 0 || (values.rank() == 1 && values.dim(0) == 1 && blockSize == 0))
    return nn::broadcastTo(values, shape);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", 1), shape.size());
  if (failed(axis))
    return failure();
  if (blockSize == 0) {
    if (values.rank() != 1 || values.dim(0) != shape[*axis])
      return (void)n.reject("there is not one scale for every index of axis " + Twine(*axis)), failure();
    return nn::broadcast(values, shape, {*axis});
  }
  SmallVector<int64_t> blocks(shape);
  blocks[*axis] = blockSize > 0 ? llvm::divideCeil(blocks[*axis], blockSize) : 0;
  if (blockSize < 0 || values.shape() != ArrayRef<int64_t>(blocks))
    return (void)n.reject("there is not one scale for every block of " + Twine(blockSize) + " elements of axis " +
                          Twine(*axis)),
           failure();
  return spreadBlocks(values, *axis, blockSize, shape[*axis]);
}

const char *const withoutDerivative =
    "what it quantizes while the step runs has no derivative; keep weights alone in few bits (DequantizeLinear, "
    "MatMulNBits), or export the model before quantization";

/// Whether numbers are all that becomes of the codes `codes`, bounds in between included.
bool isOnlyDequantized(Value codes) {
  return llvm::all_of(codes.getUses(), [](OpOperand &use) {
    auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
    if (!node || use.getOperandNumber() != 0)
      return false;
    return node.getOpType() == "DequantizeLinear" ||
           (node.getOpType() == "Clip" && isOnlyDequantized(node.getResult(0)));
  });
}

/// The lowest and the highest code of a type.
std::pair<double, double> rangeOf(Type codes) {
  const unsigned bits = codes.getIntOrFloatBitWidth();
  if (codes.isUnsignedInteger())
    return {0, std::ldexp(1.0, bits) - 1};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

/// The codes of ONNX QuantizeLinear before they are bounded, as numbers, and their type.
struct Rounded {
  Expr numbers;
  Type type;
};

FailureOr<Rounded> roundToCodes(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0), scales = n.in(1), zeros = n.in(2);
  constexpr int64_t types[][3] = {{2, 8, 0}, {3, 8, 1}, {4, 16, 0}, {5, 16, 1}}; // onnx.proto: number, bits, signed
  Type type = zeros ? zeros.elementType() : n.builder.getIntegerType(8, /*isSigned=*/false);
  if (const int64_t wanted = n.attr("output_dtype", 0); wanted && !zeros) {
    type = {};
    for (auto [number, bits, isSigned] : types)
      if (number == wanted)
        type = isSigned ? n.builder.getIntegerType(bits) : n.builder.getIntegerType(bits, false);
  }
  // Codes of 4 bits were put in 8 when the file was read, by nodes of which the last one is a Reshape.
  auto made = n.has(2) ? n.op.getInputs()[2].getDefiningOp<onnx::NodeOp>() : onnx::NodeOp();
  if (!type || !isa<IntegerType>(type) || type.getIntOrFloatBitWidth() > 16 || (made && made.getOpType() == "Reshape"))
    return (void)n.refuse("codes other than of 8 and 16 bits"), failure();
  if (!isa<FloatType>(x.elementType()) || !isa<FloatType>(scales.elementType()))
    return (void)n.refuse("numbers or scales that are integers"), failure();
  FailureOr<Expr> scale = spreadOver(n, nn::cast(scales, x.elementType()), x.shape());
  if (failed(scale))
    return failure();
  Expr numbers = nn::round(x / *scale);
  if (zeros) {
    FailureOr<Expr> spread = spreadOver(n, nn::cast(zeros, x.elementType()), x.shape());
    if (failed(spread))
      return failure();
    numbers = numbers + *spread;
  }
  return Rounded{numbers, type};
}

Expr clampTo(Expr x, double low, double high) { return nn::min(nn::max(x, low), high); }

/// ONNX QuantizeLinear, whose codes become numbers at once: fake quantization.
LogicalResult quantizeLinear(NodeView &n) {
  if (!isOnlyDequantized(n.op.getResult(0)))
    return n.refuse(withoutDerivative);
  FailureOr<Rounded> rounded = roundToCodes(n);
  if (failed(rounded))
    return failure();
  auto [low, high] = rangeOf(rounded->type);
  n.set(0, nn::cast(clampTo(rounded->numbers, low, high), rounded->type));
  return success();
}

/// Whether the two are one value, or constants of equal elements.
bool areEqual(LegalizeContext &context, Value a, Value b) {
  Value x = context.lookup(a).tensor, y = context.lookup(b).tensor;
  DenseElementsAttr constant = LegalizeContext::constantOf(x);
  return x == y || (constant && constant == LegalizeContext::constantOf(y));
}

/// `numbers` with the gradient of x, where `isInside`, as torch.fake_quantize has it.
Expr moveWith(NodeView &n, Expr numbers, Expr x, Expr isInside) {
  if (n.context.noteOnce("QuantizeLinear"))
    emitWarning(n.getLoc()) << "what is quantized while the step runs trains as through torch.fake_quantize: its "
                               "gradient is that of the number which was quantized, zero where the code was out of "
                               "range; scales and zero points are not trained";
  Expr moves = nn::select(isInside, x - nn::detach(x), x.like(0.0));
  return nn::detach(numbers) + nn::cast(moves, numbers.elementType());
}

/// `numbers`, which DequantizeLinear `n` made of codes, with the gradient that torch.fake_quantize gives them: that of
/// what was quantized, where its code is within the bounds. Codes of the file have none.
LogicalResult passGradient(NodeView &n, Expr &numbers) {
  Value codes = n.op.getInputs()[0];
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  auto node = codes.getDefiningOp<onnx::NodeOp>();
  for (; node && node.getOpType() == "Clip"; node = node.getInputs()[0].getDefiningOp<onnx::NodeOp>()) {
    NodeView clip(node, n.context, n.builder);
    std::optional<Shape> least = clip.constantInts(1), most = clip.constantInts(2);
    if ((clip.has(1) && !least) || (clip.has(2) && !most))
      return n.refuse("bounds of codes that are computed from data");
    low = least ? std::max(low, double(least->front())) : low;
    high = most ? std::min(high, double(most->front())) : high;
  }
  if (!node || node.getOpType() != "QuantizeLinear")
    return success();
  NodeView quantize(node, n.context, n.builder);
  if (!areEqual(n.context, node.getInputs()[1], n.op.getInputs()[1]))
    return n.refuse("codes that are read with another scale than they were made with");
  FailureOr<Rounded> rounded = roundToCodes(quantize);
  if (failed(rounded))
    return failure();
  auto [lowest, highest] = rangeOf(rounded->type);
  Expr x = quantize.in(0), bounded = clampTo(rounded->numbers, std::max(low, lowest), std::min(high, highest));
  numbers = moveWith(n, numbers, x, nn::equal(bounded, rounded->numbers));
  return success();
}

/// ONNX DequantizeLinear.
LogicalResult dequantizeLinear(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr codes = n.in(0), scales = n.in(1), zeros = n.in(2);
  // Codes of a float type became numbers when the file was read.
  if (!isa<FloatType>(scales.elementType()))
    return n.refuse("scales that are not of a float type");
  // Of one number for the tensor, one may be a scalar and the other a vector of one.
  const bool isOfTensor = n.attr("block_size", 0) == 0 && scales.rank() <= 1 && zeros && zeros.rank() <= 1 &&
                          countOf(scales.shape()) == 1 && countOf(zeros.shape()) == 1;
  if (zeros && zeros.shape() != scales.shape() && !isOfTensor)
    return n.reject("zero points and scales have unlike shapes");
  FailureOr<Expr> scale = spreadOver(n, scales, codes.shape()),
                  zero = zeros ? spreadOver(n, zeros, codes.shape()) : FailureOr<Expr>(Expr());
  if (failed(scale) || failed(zero))
    return failure();
  Expr numbers = dequantize(codes, *zero, *scale);
  if (failed(passGradient(n, numbers)))
    return failure();
  n.set(0, numbers);
  return success();
}

/// Quant of QONNX, which brevitas writes: x, scale, zero point and bits, the last three spread over x. Bounded before
/// it is rounded (qonnx, int_quant).
LogicalResult quant(NodeView &n) {
  if (failed(n.need(4)))
    return failure();
  Expr x = n.in(0);
  for (unsigned i : {0, 1, 2})
    if (!isa<FloatType>(n.in(i).elementType()))
      return n.refuse("numbers or scales that are integers");
  const std::optional<SmallVector<double>> widths = n.constantFloats(3);
  if (!widths || widths->empty() || !llvm::all_equal(*widths))
    return n.refuse("a number of bits that is computed from data, or differs from element to element");
  const double bits = widths->front();
  const bool isSigned = n.attr("signed", 1) != 0, isNarrow = n.attr("narrow", 0) != 0;
  if (bits != std::floor(bits) || bits < (isSigned || isNarrow ? 2 : 1) || bits > 24)
    return n.refuse("codes of " + Twine(bits == std::floor(bits) ? std::to_string(int64_t(bits)) : "half") +
                    " bits, other than 2 to 24");
  const std::string rounding = StringRef(n.attrString("rounding_mode", "ROUND")).upper();
  if (rounding != "ROUND" && rounding != "HALF_EVEN")
    return n.refuse("rounding_mode " + rounding + ", other than ROUND");
  auto spread = [&](unsigned i) -> Expr {
    FailureOr<Shape> shape = broadcastShapes(n.in(i).shape(), x.shape());
    return succeeded(shape) && ArrayRef(*shape) == x.shape()
               ? nn::broadcastTo(nn::cast(n.in(i), x.elementType()), x.shape())
               : Expr();
  };
  Expr scale = spread(1), zero = spread(2);
  if (!scale || !zero)
    return n.reject("its scale and zero point do not fit what it quantizes");
  const double steps = std::ldexp(1.0, int(bits)), least = isSigned ? -steps / 2 : 0;
  Expr code = x / scale + zero;
  // Without a sign, narrow takes a code away at the top.
  Expr bounded = clampTo(code, least + (isSigned && isNarrow), least + steps - 1 - (!isSigned && isNarrow));
  n.set(0, moveWith(n, (nn::round(bounded) - zero) * scale, x, nn::equal(bounded, code)));
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
  for (StringRef domain : {"", "com.microsoft."}) {
    t.add((domain + "QuantizeLinear").str(), quantizeLinear);
    t.add((domain + "DequantizeLinear").str(), dequantizeLinear);
  }
  for (StringRef domain : {"qonnx.custom_op.general.", "onnx.brevitas.", "finn.custom_op.general."})
    for (StringRef name : {"Quant", "IntQuant"})
      t.add((domain + name).str(), quant);
  t.add("com.microsoft.MatMulNBits", matMulNBits);
  t.add("com.microsoft.MatMulBnb4", matMulBnb4);
  t.add("com.microsoft.GatherBlockQuantized", gatherBlockQuantized);
  for (StringRef name : {"DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv", "MatMulInteger", "ConvInteger"})
    t.addRefusal(name, withoutDerivative);
  for (StringRef name :
       {"MatMulFpQ4", "QAttention", "QGemm", "QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearAveragePool",
        "QLinearGlobalAveragePool", "QLinearSigmoid", "QLinearSoftmax", "QLinearLeakyRelu", "QEmbedLayerNormalization",
        "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "MatMulIntegerToFloat"})
    t.addRefusal(("com.microsoft." + name).str(), withoutDerivative);
}
