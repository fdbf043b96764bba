//===- GemmCall.cpp - products of matrices as library calls ---------------===//

#include "runtime/calls/CallKind.h"
#include "runtime/calls/Gemm/GemmShape.h"
#include "runtime/calls/OperandBytes.h"
#include "runtime/calls/PartialSums.h"
#include "runtime/devices/Cuda/LibraryCall.h"

#include <array>

namespace lowtide::rt {
namespace {

class GemmCall final : public ReadCall {
public:
  explicit GemmCall(GemmShape shape) : shape_(std::move(shape)) {}

  Status checkOperands(const plan::Call &call) const override {
    bool third = shape_.addend != GemmShape::Addend::None;
    if (call.reads_size() != shape_.reads() || call.writes_size() != shape_.writes())
      return refuseCall("takes " + std::to_string(shape_.reads()) + " operands and " + std::to_string(shape_.writes()) +
                        (shape_.writes() > 1 ? " results; it has " : " result; it has ") +
                        std::to_string(call.reads_size()) + " and " + std::to_string(call.writes_size()));
    uint64_t element = elementBytes(shape_.dtype), resultElement = elementBytes(shape_.resultDtype);
    LOWTIDE_TRY(checkOperandBytes(call.reads(0), shape_.spanA, element, "A", false));
    LOWTIDE_TRY(checkOperandBytes(call.reads(1), shape_.spanB, element, "B", false));
    LOWTIDE_TRY(checkOperandBytes(call.writes(0), shape_.spanD, resultElement, "D", true));
    if (third) {
      LOWTIDE_TRY(checkOperandBytes(call.reads(2), shape_.spanC, resultElement, "the addend", false));
      if (shape_.accumulate && !sameRange(call.reads(2), call.writes(0)))
        return refuseCall("accumulates, but its third operand is not its result");
      if (sameRange(call.reads(2), call.writes(0)) && overwritableRead() != 2)
        return refuseCall("its addend shares the bytes of the result in another layout");
    }
    if (shape_.isDerivative()) {
      const plan::Slice &input = call.reads(shape_.reads() - 1);
      if (shape_.epilogue == GemmShape::Epilogue::ReluGrad)
        LOWTIDE_TRY(checkOperandBytes(input, shape_.maskBytes(), 1, "the epilogue's mask", true));
      else
        LOWTIDE_TRY(checkOperandBytes(input, shape_.spanD, resultElement, "the epilogue's input", true));
      if (sameRange(input, call.writes(0)))
        return refuseCall("its epilogue's input shares the bytes of the result");
    }
    if (shape_.writes() > 1) {
      const uint64_t elements = shape_.keepsMask    ? shape_.maskBytes()
                                : shape_.keepsInput ? shape_.spanD
                                                    : static_cast<uint64_t>(shape_.sumsCount());
      LOWTIDE_TRY(
          checkOperandBytes(call.writes(1), elements, shape_.keepsMask ? 1 : resultElement, "the second result", true));
      for (const plan::Slice &read : call.reads())
        if (sameRange(read, call.writes(1)))
          return refuseCall("an operand shares the bytes of the second result");
    }
    for (int i = 0; i < 2; ++i)
      if (sameRange(call.reads(i), call.writes(0)))
        return refuseCall("A or B shares the bytes of the result");
    return Status::ok();
  }

  int overwritableRead() const override {
    if (shape_.addend != GemmShape::Addend::Full || shape_.ldc != shape_.ldd)
      return -1;
    // In place, element by element, is right only when both sides are laid out alike.
    for (const GemmShape::BatchDim &dim : shape_.batch)
      if (dim.extent != 1 && dim.strideC != dim.strideD)
        return -1;
    return 2;
  }

  Expected<uint64_t> cpuWorkspace() const override { return uint64_t(0); }
  Expected<std::unique_ptr<PreparedCall>> prepareCpu(const CallOperands &operands) const override {
    return prepareGemmWithEpilogue(shape_, operands);
  }

  const LibraryRule *declinedBy(int /*reads*/) const override { return declineGemm(shape_); }
  Checked gpuWorkspace(uint32_t processors) const override {
    // Epilogues and f64 are not cut.
    const bool isCut = shape_.dtype != plan::F64 && shape_.epilogue == GemmShape::Epilogue::None && !shape_.hasSums();
    return isCut ? partialSumBytes(shape_.m, shape_.n, shape_.k, shape_.batchCount(), processors) : 0;
  }
  Expected<std::unique_ptr<cuda::LibraryCall>> prepareCuda(cuda::Libraries &libraries,
                                                           const cuda::CallAddresses &addresses) const override {
    return cuda::prepareCublasLtGemm(libraries, shape_, addresses);
  }

private:
  GemmShape shape_;
};

Expected<std::unique_ptr<ReadCall>> read(const plan::Call &call) {
  Expected<GemmShape> shape = readGemm(call);
  if (!shape)
    return shape.takeStatus();
  return std::unique_ptr<ReadCall>(std::make_unique<GemmCall>(std::move(*shape)));
}

constexpr std::array<std::string_view, 1> callees = {"gemm"};

} // namespace

CallKind getGemmKind() { return {callees, getGemmRules(), read}; }

} // namespace lowtide::rt
