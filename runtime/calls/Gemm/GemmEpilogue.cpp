//===- GemmEpilogue.cpp - what follows a matrix product --------------------===//
//
// The product is written first, then the function of its epilogue is applied element by element, in f32. What is kept
// of the product is what the function sees, and what columns are summed of is what is written: rounded to the result's
// type. Sums over k of an operand are f32's. A mask is written and read row by row, so that no two tasks share a byte.
//
//===----------------------------------------------------------------------===//

#include "runtime/Element.h"
#include "runtime/calls/Gemm/GemmShape.h"
#include "runtime/kernels/PreparedCall.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lowtide::rt {
namespace {

constexpr float slope = 0.79788456080286536f, cube = 0.044715f; ///< gelu(x) = x/2 · (1 + tanh(slope · (x + cube · x³)))

float gelu(float x) { return 0.5f * x * (1.0f + std::tanh(slope * (x + cube * x * x * x))); }
float geluSlope(float x) {
  float t = std::tanh(slope * (x + cube * x * x * x));
  return 0.5f * (t + 1.0f) + 0.5f * x * (1.0f - t * t) * (slope * (3.0f * cube * x * x + 1.0f));
}

std::unique_ptr<PreparedCall> prepareProduct(const GemmShape &shape, const CallOperands &operands) {
  return isNarrow(shape.dtype) ? prepareNarrowGemm(shape, operands) : prepareGemm(shape, operands);
}

class GemmWithEpilogue final : public PreparedCall {
public:
  GemmWithEpilogue(const GemmShape &shape, const CallOperands &operands)
      : shape_(shape), to_(static_cast<uint8_t *>(operands.writes[0])),
        from_(static_cast<uint8_t *>(operands.writes[shape.keepsInput ? 1 : 0])) {
    if (shape.isDerivative())
      input_ = static_cast<const uint8_t *>(operands.reads[static_cast<size_t>(shape.reads()) - 1]);
    a_ = static_cast<const uint8_t *>(operands.reads[0]), b_ = static_cast<const uint8_t *>(operands.reads[1]);
    if (shape.keepsMask)
      mask_ = static_cast<uint8_t *>(operands.writes[1]);
    if (shape.hasSums())
      sums_ = static_cast<uint8_t *>(operands.writes[1]);
    void *product = from_;
    size_t reads = shape.addend == GemmShape::Addend::None ? 2 : 3;
    product_ = prepareProduct(shape, {operands.reads.first(reads), {&product, 1}, operands.workspace});
  }

  int phases() const override { return product_->phases() + 1 + (sums_ != nullptr); }
  int64_t tasks(int phase) const override {
    if (phase < product_->phases())
      return product_->tasks(phase);
    if (phase > product_->phases())
      return shape_.sumsCount();
    return hasBits() ? shape_.m : static_cast<int64_t>((shape_.spanD + grain - 1) / grain);
  }
  void run(int phase, int64_t task) const noexcept override {
    if (phase < product_->phases())
      return product_->run(phase, task);
    if (phase > product_->phases())
      return shape_.sumsColumns ? sumColumn(static_cast<uint64_t>(task)) : sumOperand(task);
    if (shape_.sumsOperand || shape_.sumsLeft)
      return;
    if (hasBits())
      return applyBits(static_cast<uint64_t>(task));
    uint64_t size = elementBytes(shape_.resultDtype);
    uint64_t begin = static_cast<uint64_t>(task) * grain, end = std::min(shape_.spanD, begin + grain);
    for (uint64_t at = begin * size; at < end * size; at += size) {
      float z = static_cast<float>(loadElement(shape_.resultDtype, from_ + at));
      storeElement(shape_.resultDtype, to_ + at, static_cast<double>(apply(z, at)));
    }
  }

private:
  static constexpr uint64_t grain = 1 << 14;

  void sumColumn(uint64_t column) const noexcept {
    uint64_t size = elementBytes(shape_.resultDtype);
    float sum = 0;
    for (int64_t row = 0; row < shape_.m; ++row)
      sum += static_cast<float>(
          loadElement(shape_.resultDtype, to_ + (static_cast<uint64_t>(row * shape_.ldd) + column) * size));
    storeElement(shape_.resultDtype, sums_ + column * size, static_cast<double>(sum));
  }

  /// Over k, of a column of op(B) or a row of op(A).
  void sumOperand(int64_t number) const noexcept {
    const bool isInner = shape_.sumsLeft ? !shape_.transposeA : shape_.transposeB;
    const int64_t ld = shape_.sumsLeft ? shape_.lda : shape_.ldb;
    const uint8_t *from = shape_.sumsLeft ? a_ : b_;
    uint64_t size = elementBytes(shape_.dtype);
    float sum = 0;
    for (int64_t i = 0; i < shape_.k; ++i) {
      int64_t at = isInner ? number * ld + i : i * ld + number;
      sum += static_cast<float>(loadElement(shape_.dtype, from + static_cast<uint64_t>(at) * size));
    }
    storeElement(shape_.resultDtype, sums_ + static_cast<uint64_t>(number) * elementBytes(shape_.resultDtype),
                 static_cast<double>(sum));
  }

  bool hasBits() const { return mask_ || shape_.epilogue == GemmShape::Epilogue::ReluGrad; }

  /// ReLU of a row and its bits, or its derivative by such bits.
  void applyBits(uint64_t row) const noexcept {
    const uint64_t size = elementBytes(shape_.resultDtype), bytes = shape_.maskRowBytes();
    uint8_t *to = to_ + row * static_cast<uint64_t>(shape_.ldd) * size;
    if (mask_)
      std::fill_n(mask_ + row * bytes, bytes, uint8_t(0));
    for (uint64_t i = 0; i < static_cast<uint64_t>(shape_.n); ++i) {
      const double z = loadElement(shape_.resultDtype, to + i * size);
      const auto bit = static_cast<uint8_t>(1u << (i % 8));
      const uint64_t at = row * bytes + i / 8;
      if (mask_) {
        storeElement(shape_.resultDtype, to + i * size, z < 0 ? 0.0 : z);
        if (z > 0)
          mask_[at] |= bit;
      } else if (!(input_[at] & bit)) {
        storeElement(shape_.resultDtype, to + i * size, 0.0);
      }
    }
  }

  float apply(float z, uint64_t at) const {
    switch (shape_.epilogue) {
    case GemmShape::Epilogue::Relu:
      return z < 0 ? 0.0f : z; // NaN stays
    case GemmShape::Epilogue::Gelu:
      return gelu(z);
    case GemmShape::Epilogue::GeluGrad:
      return z * geluSlope(static_cast<float>(loadElement(shape_.resultDtype, input_ + at)));
    case GemmShape::Epilogue::ReluGrad: // applyBits
    case GemmShape::Epilogue::None:
      break;
    }
    return z;
  }

  GemmShape shape_;
  uint8_t *to_, *from_, *sums_ = nullptr, *mask_ = nullptr;
  const uint8_t *input_ = nullptr, *a_ = nullptr, *b_ = nullptr;
  std::unique_ptr<PreparedCall> product_;
};

} // namespace

std::unique_ptr<PreparedCall> prepareGemmWithEpilogue(const GemmShape &shape, const CallOperands &operands) {
  if (shape.epilogue == GemmShape::Epilogue::None && !shape.hasSums())
    return prepareProduct(shape, operands);
  return std::make_unique<GemmWithEpilogue>(shape, operands);
}

} // namespace lowtide::rt
