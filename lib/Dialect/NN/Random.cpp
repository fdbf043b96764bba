//===- Random.cpp - nn.random_uniform ---------------------------*- C++ -*-===//
//
// The counter-based generator, written in scalar integer arithmetic.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

LogicalResult RandomUniformOp::verify() {
  for (Value scalar : getOperands()) {
    auto type = cast<RankedTensorType>(scalar.getType());
    if (type.getRank() != 0 || !type.getElementType().isInteger(64))
      return emitOpError("seed, step and row must be tensor<i64>");
  }
  int64_t batchDim = getBatchDim();
  if (batchDim < -1 || batchDim >= getY().getType().getRank())
    return emitOpError("batch_dim ") << batchDim << " is not below rank " << getY().getType().getRank();
  return success();
}

namespace {
/// 32-bit words of Philox4x32-10.
struct Philox {
  ElementBuilder &b;
  Type word = b.builder.getI32Type(), wide = b.builder.getI64Type();

  Value low(Value x) { return b.cast(x, word); }
  Value high(Value x) { return b.cast(b.shiftRight(x, b.constantInt(wide, 32)), word); }
  Value constant(uint32_t value) { return b.constantInt(word, value); }

  /// First word of the block that `counter` numbers under `key`.
  Value firstWord(std::array<Value, 4> counter, std::array<Value, 2> key) {
    for (int round = 0; round < 10; ++round) {
      Value p0 = multiply(counter[0], 0xD2511F53), p1 = multiply(counter[2], 0xCD9E8D57);
      counter = {b.logicalXor(b.logicalXor(high(p1), counter[1]), key[0]), low(p1),
                 b.logicalXor(b.logicalXor(high(p0), counter[3]), key[1]), low(p0)};
      key = {b.add(key[0], constant(0x9E3779B9)), b.add(key[1], constant(0xBB67AE85))};
    }
    return counter[0];
  }

private:
  Value multiply(Value x, uint32_t factor) {
    return b.mul(b.cast(x, wide, /*fromUnsigned=*/true), b.constantInt(wide, factor));
  }
};
} // namespace

Value RandomUniformOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  Philox philox{b};
  Value seed = b.operand(0, {}), step = b.operand(1, {}), row = b.operand(2, {});
  auto type = getY().getType();
  int64_t batchDim = getBatchDim();
  Value sample = b.constantInt(philox.wide, 0), position = sample;
  int64_t perSample = 1;
  for (auto [dim, i] : llvm::enumerate(index)) {
    Value wide = b.cast(i, philox.wide);
    if (static_cast<int64_t>(dim) == batchDim) {
      sample = b.add(row, wide);
      continue;
    }
    perSample *= type.getDimSize(dim);
    position = b.add(b.mul(position, b.constantInt(philox.wide, type.getDimSize(dim))), wide);
  }
  Value element = b.add(b.mul(sample, b.constantInt(philox.wide, perSample)), position);
  Value word = philox.firstWord(
      {philox.low(element), philox.high(element), philox.low(step), philox.constant(static_cast<uint32_t>(getOpId()))},
      {philox.low(seed), philox.high(seed)});
  Type real = scalarType(getY());
  Value bits = b.cast(b.shiftRight(word, philox.constant(8)), real.isF64() ? real : b.builder.getF32Type());
  return b.cast(b.mul(bits, 1.0 / (1 << 24)), real);
}
