//===- Storage.cpp - numbers in fewer bits ----------------------*- C++ -*-===//
//
// Scalar rules of the ops that store f32 numbers in 16 or 8 bits, and the tables of codes.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Storage.h"
#include "ReshapedElement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "runtime/FewBits.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

template <typename Op, typename... Args> static Expr build(Expr at, Type element, Args &&...args) {
  auto type = RankedTensorType::get(at.shape(), element);
  return at.with(Op::create(at.getBuilder(), at.getLoc(), type, std::forward<Args>(args)...)->getResult(0));
}

Expr nn::regroup(Expr x, ArrayRef<int64_t> shape) {
  if (x.shape() == shape)
    return x;
  auto type = RankedTensorType::get(shape, x.elementType());
  return x.with(RegroupOp::create(x.getBuilder(), x.getLoc(), type, x.get()));
}
Expr nn::bitCast(Expr x, Type elementType) { return build<BitCastOp>(x, elementType, x.get()); }
Expr nn::highHalf(Expr x, Type type) { return build<HighHalfOp>(x, type, x.get()); }
Expr nn::lowHalf(Expr x) { return build<LowHalfOp>(x, x.getBuilder().getI16Type(), x.get()); }
Expr nn::joinHalves(Expr high, Expr low, Type type) { return build<JoinHalvesOp>(high, type, high.get(), low.get()); }
Expr nn::stochasticHalf(Expr x, Expr draw, Type type) { return build<StochasticHalfOp>(x, type, x.get(), draw.get()); }
Expr nn::toCode(CodeMap map, Expr x) {
  return build<ToCodeOp>(x, x.getBuilder().getIntegerType(8, /*isSigned=*/false), map, x.get());
}
Expr nn::fromCode(CodeMap map, Expr code, Type type) { return build<FromCodeOp>(code, type, map, code.get()); }

//===-- blocks ------------------------------------------------------------===//

LogicalResult RegroupOp::verify() {
  auto from = getX().getType(), to = getY().getType();
  if (from.getElementType() == to.getElementType() && from.getNumElements() == to.getNumElements())
    return success();
  return emitOpError("shows ") << from << " as " << to << ", which are not the same elements";
}

Value RegroupOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  return emitReshapedElement(b, getX().getType(), getY().getType(), index);
}

//===-- bits --------------------------------------------------------------===//

LogicalResult BitCastOp::verify() {
  const Type from = getX().getType().getElementType(), to = getY().getType().getElementType();
  const Type integer = isa<FloatType>(from) ? to : from;
  if (isa<FloatType>(from) != isa<FloatType>(to) && (integer.isInteger(32) || integer.isInteger(64)))
    return success();
  return emitOpError("is of a float type and an integer one of 32 or 64 bits, found ") << from << " and " << to;
}

Value nn::emitBitCast(ScalarBuilder &b, Value x, Type to) {
  const bool isFloat = isa<FloatType>(x.getType());
  const Type integer = isFloat ? to : x.getType();
  const Type number = integer.isInteger(64) ? Type(b.builder.getF64Type()) : Type(b.builder.getF32Type());
  if (isFloat)
    return b.builder.createOrFold<arith::BitcastOp>(b.loc, to, b.cast(x, number));
  return b.cast(b.builder.createOrFold<arith::BitcastOp>(b.loc, number, x), to);
}

//===-- 16 bits -----------------------------------------------------------===//

// A result of 16 bits is rounded from f32, which changes nothing of a number whose lower half is zero.

static Value toBits(ScalarBuilder &b, Value x) {
  return b.builder.createOrFold<arith::BitcastOp>(b.loc, b.builder.getI32Type(), x);
}
static Value fromBits(ScalarBuilder &b, Value bits) {
  return b.builder.createOrFold<arith::BitcastOp>(b.loc, b.builder.getF32Type(), bits);
}
static Value word(ScalarBuilder &b, uint32_t value) {
  return b.constantInt(b.builder.getI32Type(), static_cast<int32_t>(value));
}
static constexpr uint32_t upperHalf = 0xFFFF0000, exponent = 0x7F800000, quiet = 0x00400000;

/// Bits of the upper half of an f32 number, rounded; its lower half is zero. Sums of NaN's bits may be finite.
static Value emitHighBits(ScalarBuilder &b, Value x) {
  Value bits = toBits(b, x);
  Value rounded = b.add(bits, word(b, 0x8000)), keptNaN = b.logicalOr(bits, word(b, quiet));
  return b.logicalAnd(b.select(b.isNaN(x), keptNaN, rounded), word(b, upperHalf));
}

Value nn::emitHighHalf(ScalarBuilder &b, Value x) {
  return fromBits(b, emitHighBits(b, b.cast(x, b.builder.getF32Type())));
}

Value nn::emitLowHalf(ScalarBuilder &b, Value x) {
  x = b.cast(x, b.builder.getF32Type());
  return b.cast(b.sub(toBits(b, x), emitHighBits(b, x)), b.builder.getI16Type());
}

Value nn::emitJoinedHalves(ScalarBuilder &b, Value high, Value low) {
  high = b.cast(high, b.builder.getF32Type());
  Value bits = toBits(b, high);
  Value sum = b.add(bits, b.cast(low, b.builder.getI32Type()));
  Value put = b.logicalOr(bits, b.cast(low, b.builder.getI32Type(), /*fromUnsigned=*/true));
  return fromBits(b, b.select(b.isNaN(high), put, sum));
}

Value nn::emitStochasticHalf(ScalarBuilder &b, Value x, Value draw) {
  x = b.cast(x, b.builder.getF32Type());
  Value bits = toBits(b, x), rounded = b.logicalAnd(b.add(bits, draw), word(b, upperHalf));
  Value isFinite = b.compare(Compare::NE, b.logicalAnd(bits, word(b, exponent)), word(b, exponent));
  return b.select(isFinite, fromBits(b, rounded), x);
}

//===-- codes of 8 bits ---------------------------------------------------===//

/// Numbers of a dynamic map: an exponent of ten between 10^-6 and 1, for which the place of the first set bit stands,
/// and as fraction the middles of equal parts of [0.1, 1], as many as the bits that are left allow. In the arithmetic
/// of torch.linspace, which goes from both ends, on CPUs that add and multiply with one rounding.
static std::array<float, 256> makeDynamicMap(bool isSigned) {
  std::array<float, 256> numbers{};
  unsigned count = 0;
  for (int digit = 0; digit < 7; ++digit) {
    const int parts = 1 << (isSigned ? digit : digit + 1);
    const float step = (1.0F - 0.1F) / static_cast<float>(parts);
    auto boundary = [&](int i) {
      return i < (parts + 1) / 2 ? std::fma(step, static_cast<float>(i), 0.1F)
                                 : std::fma(-step, static_cast<float>(parts - i), 1.0F);
    };
    // A Python float times an f32 tensor: the factor is rounded first. 10 ** -6 is a division, 10 ** 0 an integer.
    const auto scale = static_cast<float>(std::pow(10.0, digit - 6));
    for (int i = 0; i < parts; ++i) {
      const float middle = (boundary(i) + boundary(i + 1)) / 2.0F;
      numbers[count++] = scale * middle;
      if (isSigned)
        numbers[count++] = -scale * middle;
    }
  }
  numbers[count++] = 0.0F;
  numbers[count++] = 1.0F;
  assert(count == numbers.size() && "a map has 256 numbers");
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

static std::array<float, 256> makeE4M3() {
  std::array<float, 256> numbers{};
  for (unsigned code = 0; code < numbers.size(); ++code)
    numbers[code] = rt::readE4M3(static_cast<uint8_t>(code));
  return numbers;
}

ArrayRef<float> nn::getCodeNumbers(CodeMap map) {
  static const std::array<float, 256> dynamicSigned = makeDynamicMap(true), dynamicUnsigned = makeDynamicMap(false),
                                      e4m3 = makeE4M3();
  switch (map) {
  case CodeMap::dynamic_signed:
    return dynamicSigned;
  case CodeMap::dynamic_unsigned:
    return dynamicUnsigned;
  case CodeMap::e4m3:
    return e4m3;
  case CodeMap::nf4:
    return rt::nf4Numbers;
  }
  llvm_unreachable("every map has numbers");
}

/// Element `i` (i32, below the count of numbers) of the map's numbers.
static Value numberOf(ElementBuilder &b, CodeMap map, Value i) {
  const ArrayRef<float> numbers = getCodeNumbers(map);
  auto type = RankedTensorType::get({static_cast<int64_t>(numbers.size())}, b.builder.getF32Type());
  return b.table(DenseElementsAttr::get(type, numbers), b.cast(i, b.builder.getIndexType()));
}

/// Halves of the map one after the other, then the nearer of two neighbours.
static Value searchCode(ElementBuilder &b, CodeMap map, Value x) {
  Value code = word(b, 0);
  for (uint32_t half = 128; half; half /= 2) {
    Value upper = b.add(code, word(b, half));
    code = b.select(b.compare(Compare::GE, x, numberOf(b, map, upper)), upper, code);
  }
  Value next = b.min(b.add(code, word(b, 1)), word(b, 255));
  Value below = numberOf(b, map, code), above = numberOf(b, map, next);
  Value isUpper = b.compare(Compare::GE, b.sub(x, below), b.mul(b.sub(above, below), 0.5));
  return b.select(isUpper, next, code);
}

/// How many middles of neighbours lie below x.
static Value countMiddles(ElementBuilder &b, CodeMap map, Value x) {
  const ArrayRef<float> numbers = getCodeNumbers(map);
  Value code = word(b, 0);
  for (auto [low, high] : llvm::zip(numbers.drop_back(), numbers.drop_front())) {
    Value isAbove = b.compare(Compare::GT, x, b.constant(x.getType(), (low + high) / 2.0F));
    code = b.add(code, b.select(isAbove, word(b, 1), word(b, 0)));
  }
  return code;
}

static Value roundToE4M3(ElementBuilder &b, Value x) {
  Value bits = toBits(b, x), sign = b.logicalAnd(b.shiftRight(bits, word(b, 24)), word(b, 0x80));
  Value size = b.abs(x), sizeBits = b.logicalAnd(bits, word(b, 0x7FFFFFFF));
  // Of 23 bits of fraction 3 stay; the exponent's bias goes from 127 to 7.
  Value odd = b.logicalAnd(b.shiftRight(sizeBits, word(b, 20)), word(b, 1));
  Value rounded = b.add(b.add(sizeBits, word(b, 0x7FFFF)), odd);
  Value normal = b.sub(b.shiftRight(rounded, word(b, 20)), word(b, 120 << 3));
  // Below 2^-6 numbers are multiples of 2^-9.
  Value isSmall = b.compare(Compare::LT, size, std::ldexp(1.0, -6));
  Value multiple =
      b.cast(b.round(b.mul(b.select(isSmall, size, b.constant(x.getType(), 0.0)), 512.0)), b.builder.getI32Type());
  Value isLarge = b.compare(Compare::GE, size, 448.0);
  Value code = b.select(isLarge, word(b, 0x7E), b.select(isSmall, multiple, normal));
  // What lies between 448 and the next number is rounded to 448 above; 480 is no number of this type.
  code = b.min(code, word(b, 0x7E));
  return b.logicalOr(b.select(b.isNaN(x), word(b, 0x7F), code), sign);
}

Value nn::emitCode(ElementBuilder &b, CodeMap map, Value x) {
  x = b.cast(x, b.builder.getF32Type());
  Value code = map == CodeMap::e4m3  ? roundToE4M3(b, x)
               : map == CodeMap::nf4 ? countMiddles(b, map, x)
                                     : searchCode(b, map, x);
  return b.cast(code, b.builder.getIntegerType(8));
}

Value nn::emitCodeNumber(ElementBuilder &b, CodeMap map, Value code) {
  Value number = b.cast(code, b.builder.getI32Type(), /*fromUnsigned=*/true);
  // Bytes hold more than the 16 codes of four bits.
  return numberOf(b, map, map == CodeMap::nf4 ? b.logicalAnd(number, word(b, 15)) : number);
}
