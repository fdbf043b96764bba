//===- GemmEpilogue.cpp - what follows a matrix product --------------------===//
//
// The product is written first, then the function of its epilogue is applied element by element, in f32. What is kept
// of the product is what the function sees: rounded to the result's type.
//
//===----------------------------------------------------------------------===//

#include "runtime/CallShape.h"
#include "runtime/Element.h"
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
    if (shape.epilogue == GemmShape::Epilogue::GeluGrad)
      input_ = static_cast<const uint8_t *>(operands.reads[static_cast<size_t>(shape.reads()) - 1]);
    void *product = from_;
    size_t reads = shape.addend == GemmShape::Addend::None ? 2 : 3;
    product_ = prepareProduct(shape, {operands.reads.first(reads), {&product, 1}, operands.workspace});
  }

  int phases() const override { return product_->phases() + 1; }
  int64_t tasks(int phase) const override {
    return phase < product_->phases() ? product_->tasks(phase)
                                      : static_cast<int64_t>((shape_.spanD + grain - 1) / grain);
  }
  void run(int phase, int64_t task) const noexcept override {
    if (phase < product_->phases())
      return product_->run(phase, task);
    uint64_t size = elementBytes(shape_.resultDtype);
    uint64_t begin = static_cast<uint64_t>(task) * grain, end = std::min(shape_.spanD, begin + grain);
    for (uint64_t at = begin * size; at < end * size; at += size) {
      float z = static_cast<float>(loadElement(shape_.resultDtype, from_ + at));
      storeElement(shape_.resultDtype, to_ + at, static_cast<double>(apply(z, at)));
    }
  }

private:
  static constexpr uint64_t grain = 1 << 14;

  float apply(float z, uint64_t at) const {
    switch (shape_.epilogue) {
    case GemmShape::Epilogue::Relu:
      return z < 0 ? 0.0f : z; // NaN stays
    case GemmShape::Epilogue::Gelu:
      return gelu(z);
    case GemmShape::Epilogue::GeluGrad:
      return z * geluSlope(static_cast<float>(loadElement(shape_.resultDtype, input_ + at)));
    case GemmShape::Epilogue::None:
      break;
    }
    return z;
  }

  GemmShape shape_;
  uint8_t *to_, *from_;
  const uint8_t *input_ = nullptr;
  std::unique_ptr<PreparedCall> product_;
};

} // namespace

std::unique_ptr<PreparedCall> prepareGemmWithEpilogue(const GemmShape &shape, const CallOperands &operands) {
  if (shape.epilogue == GemmShape::Epilogue::None)
    return prepareProduct(shape, operands);
  return std::make_unique<GemmWithEpilogue>(shape, operands);
}

} // namespace lowtide::rt
