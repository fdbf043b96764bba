//===- NarrowConv.cpp - convolutions of 16-bit tensors ---------------------===//
//
// Forward and gradient of the input, image by image:
//
//   widen the filter;  for each round of images:  widen them;  f32 kernel;  round the result
//
// Gradient of the filter: both operands are widened, and the rounds' sums are added in order.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Conv/NarrowConv.h"

#include "runtime/CheckedMath.h"
#include "runtime/Workspace.h"
#include "runtime/calls/Conv/ConvPlan.h"
#include "runtime/kernels/Narrow.h"
#include "runtime/kernels/PreparedCall.h"

#include <algorithm>
#include <vector>

namespace lowtide::rt {

using namespace kernels;
using Kind = ConvShape::Kind;

/// Elements of one conversion task; widened elements that a round aims at.
static constexpr int64_t taskElements = 16 * 1024, roundElements = 256 * 1024;

ConvShape NarrowConvPlan::innerShape(const ConvShape &shape, int64_t images) {
  ConvShape inner = shape;
  inner.dtype = inner.resultDtype = plan::F32;
  inner.batch = images;
  return inner;
}

Expected<NarrowConvPlan> NarrowConvPlan::get(const ConvShape &shape) {
  NarrowConvPlan plan;
  int64_t input = static_cast<int64_t>(shape.inputElements()) / shape.batch;
  int64_t output = static_cast<int64_t>(shape.outputElements()) / shape.batch;
  plan.firstPerImage = shape.kind == Kind::InputGrad ? output : input;
  plan.otherPerImage = shape.kind == Kind::InputGrad ? input : output;
  plan.filterElements = static_cast<int64_t>(shape.filterElements());
  plan.biasElements = shape.kind == Kind::Forward ? shape.groups * shape.outChannels : 0;
  int64_t perImage = std::max<int64_t>(1, plan.firstPerImage + plan.otherPerImage);
  plan.images = std::clamp<int64_t>(std::max(roundElements / perImage, ceilDiv(shape.batch, 16)), 1, shape.batch);
  plan.rounds = ceilDiv(shape.batch, plan.images);
  plan.images = ceilDiv(shape.batch, plan.rounds);
  plan.rounds = ceilDiv(shape.batch, plan.images);

  Expected<uint64_t> inner = convWorkspaceBytes(innerShape(shape, plan.images));
  if (!inner)
    return inner.takeStatus();
  Checked end = 0;
  bool fits = true;
  auto reserve = [&](Checked bytes) {
    fits &= end.atMost(uint64_t(1) << 46);
    uint64_t at = fits ? alignUp(*end.get(), workspaceAlignment) : 0;
    end = Checked(at) + bytes;
    return at;
  };
  auto floats = [](int64_t count) { return Checked::fromSigned(count) * sizeof(float); };
  plan.filter = reserve(floats(plan.filterElements * (shape.kind == Kind::FilterGrad ? 2 : 1)));
  plan.first = reserve(floats(plan.firstPerImage) * Checked::fromSigned(plan.images));
  plan.other = reserve(floats(plan.otherPerImage) * Checked::fromSigned(plan.images));
  plan.bias = reserve(floats(plan.biasElements));
  plan.inner = reserve(Checked(*inner));
  if (!fits || !end.atMost(uint64_t(1) << 46))
    return Status(StatusCode::VerifyFailed, "its workspace is too large to count");
  plan.bytes = alignUp(*end.get(), workspaceAlignment);
  return plan;
}

namespace {

template <typename S> class NarrowConv final : public PreparedCall {
public:
  NarrowConv(const ConvShape &shape, const NarrowConvPlan &plan, const CallOperands &operands)
      : shape_(shape), plan_(plan) {
    auto at = [&](uint64_t offset) {
      return reinterpret_cast<float *>(static_cast<uint8_t *>(operands.workspace) + offset);
    };
    first_ = static_cast<const S *>(operands.reads[0]), second_ = static_cast<const S *>(operands.reads[1]);
    result_ = operands.writes[0];
    wideFilter_ = at(plan.filter), wideFirst_ = at(plan.first), wideOther_ = at(plan.other), wideBias_ = at(plan.bias);
    bool narrowResult = shape.resultDtype != plan::F32;
    bias_ = operands.reads.size() > 2 ? operands.reads[2] : nullptr;
    for (int64_t round = 0; round < plan.rounds; ++round) {
      int64_t images = std::min(plan.images, shape.batch - round * plan.images);
      ConvShape inner = NarrowConvPlan::innerShape(shape, images);
      float *result = static_cast<float *>(result_) + round * plan.images * plan.otherPerImage;
      const void *reads[3] = {wideFirst_, wideFilter_, wideBias_};
      void *writes[1] = {narrowResult ? wideOther_ : result};
      size_t count = bias_ ? 3 : 2;
      if (shape.kind == Kind::FilterGrad) {
        reads[1] = wideOther_;
        writes[0] = round == 0 ? wideFilter_ : wideFilter_ + plan.filterElements;
      }
      CallOperands innerOperands{{reads, count}, writes, at(plan.inner)};
      calls_.push_back(shape.kind == Kind::FilterGrad ? prepareConvFilterGrad(inner, innerOperands)
                                                      : prepareConv(inner, innerOperands));
    }
    // Phase 0 widens what all rounds share; each round widens, computes, and writes or adds.
    for (int64_t round = 0; round < plan.rounds; ++round) {
      steps_.push_back({Step::Widen, round, 0});
      for (int phase = 0; phase < calls_[static_cast<size_t>(round)]->phases(); ++phase)
        steps_.push_back({Step::Compute, round, phase});
      if (shape.kind == Kind::FilterGrad ? round > 0 : narrowResult)
        steps_.push_back({Step::Write, round, 0});
    }
    if (shape.kind == Kind::FilterGrad)
      steps_.push_back({Step::Finish, 0, 0});
  }

  int phases() const override { return 1 + static_cast<int>(steps_.size()); }

  int64_t tasks(int phase) const override {
    if (phase == 0)
      return shape_.kind == Kind::FilterGrad ? 1 : ceilDiv(plan_.filterElements, taskElements);
    const Step &step = steps_[static_cast<size_t>(phase) - 1];
    int64_t images = imagesOf(step.round);
    switch (step.kind) {
    case Step::Widen:
      return ceilDiv(images * (plan_.firstPerImage + secondPerImage()), taskElements);
    case Step::Compute:
      return calls_[static_cast<size_t>(step.round)]->tasks(step.phase);
    case Step::Write:
      return ceilDiv(shape_.kind == Kind::FilterGrad ? plan_.filterElements : images * plan_.otherPerImage,
                     taskElements);
    case Step::Finish:
      return ceilDiv(plan_.filterElements, taskElements);
    }
    return 0;
  }

  void run(int phase, int64_t task) const noexcept override {
    int64_t begin = task * taskElements;
    if (phase == 0)
      return shape_.kind == Kind::FilterGrad ? void() : widenShared(task, begin);
    const Step &step = steps_[static_cast<size_t>(phase) - 1];
    int64_t images = imagesOf(step.round), before = step.round * plan_.images;
    switch (step.kind) {
    case Step::Widen: {
      // The two operands of this round, as if one after another.
      int64_t firsts = images * plan_.firstPerImage, all = firsts + images * secondPerImage();
      int64_t end = std::min(all, begin + taskElements);
      if (begin < firsts)
        widenRun(wideFirst_ + begin, first_ + before * plan_.firstPerImage + begin, std::min(end, firsts) - begin);
      if (end > firsts) {
        int64_t from = std::max(begin, firsts) - firsts;
        widenRun(wideOther_ + from, second_ + before * secondPerImage() + from, end - firsts - from);
      }
      return;
    }
    case Step::Compute:
      return calls_[static_cast<size_t>(step.round)]->run(step.phase, task);
    case Step::Write: {
      if (shape_.kind == Kind::FilterGrad) {
        int64_t end = std::min(plan_.filterElements, begin + taskElements);
        for (int64_t i = begin; i < end; ++i)
          wideFilter_[i] += wideFilter_[plan_.filterElements + i];
        return;
      }
      int64_t count = std::min(images * plan_.otherPerImage, begin + taskElements) - begin;
      return narrowRun(static_cast<S *>(result_) + before * plan_.otherPerImage + begin, wideOther_ + begin, count);
    }
    case Step::Finish: {
      int64_t count = std::min(plan_.filterElements, begin + taskElements) - begin;
      if (shape_.resultDtype == plan::F32)
        return narrowRun(static_cast<float *>(result_) + begin, wideFilter_ + begin, count);
      return narrowRun(static_cast<S *>(result_) + begin, wideFilter_ + begin, count);
    }
    }
  }

private:
  struct Step {
    enum Kind { Widen, Compute, Write, Finish } kind;
    int64_t round;
    int phase;
  };

  int64_t imagesOf(int64_t round) const { return std::min(plan_.images, shape_.batch - round * plan_.images); }
  /// Elements per image of a second operand that has images.
  int64_t secondPerImage() const { return shape_.kind == Kind::FilterGrad ? plan_.otherPerImage : 0; }

  void widenShared(int64_t task, int64_t begin) const {
    widenRun(wideFilter_ + begin, second_ + begin, std::min(plan_.filterElements, begin + taskElements) - begin);
    if (task != 0 || !bias_)
      return;
    if (shape_.resultDtype == plan::F32)
      widenRun(wideBias_, static_cast<const float *>(bias_), plan_.biasElements);
    else
      widenRun(wideBias_, static_cast<const S *>(bias_), plan_.biasElements);
  }

  ConvShape shape_;
  NarrowConvPlan plan_;
  const S *first_, *second_;
  const void *bias_ = nullptr;
  void *result_;
  float *wideFilter_, *wideFirst_, *wideOther_, *wideBias_;
  std::vector<std::unique_ptr<PreparedCall>> calls_;
  std::vector<Step> steps_;
};

} // namespace

std::unique_ptr<PreparedCall> prepareNarrowConv(const ConvShape &shape, const CallOperands &operands) {
  NarrowConvPlan plan = *NarrowConvPlan::get(shape); // counted by the verifier
  if (shape.dtype == plan::BF16)
    return std::make_unique<NarrowConv<BFloat16>>(shape, plan, operands);
  return std::make_unique<NarrowConv<Float16>>(shape, plan, operands);
}

} // namespace lowtide::rt
