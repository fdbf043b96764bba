//===- AttentionCall.cpp - attention as library calls ---------------------===//

#include "runtime/Workspace.h"
#include "runtime/calls/Attention/AttentionShape.h"
#include "runtime/calls/Attention/AttentionTiles.h"
#include "runtime/calls/CallKind.h"
#include "runtime/calls/OperandBytes.h"
#include "runtime/devices/Cuda/LibraryCall.h"

#include <array>

namespace lowtide::rt {
namespace {

/// What engines of attention keep besides: counters and descriptors.
constexpr uint64_t attentionRest = uint64_t(1) << 20;

/// Deterministic engines of the derivative write the cotangents of scores out, tile by tile, and read them for dq
/// (cuDNN frontend 1.32, scaled_dot_product_flash_attention.h); shared key heads get a sum of whole heads.
Checked attentionGradBytes(const AttentionShape &shape) {
  auto tiles = [](int64_t size, int64_t tile) { return Checked::fromSigned((size + tile - 1) / tile * tile); };
  Checked heads = Checked::fromSigned(shape.batch) * Checked::fromSigned(shape.heads);
  Checked bytes = attentionDotBytes(shape) + heads * tiles(shape.rows, 64) * tiles(shape.columns, 128) * 2;
  if (shape.heads != shape.keyHeads)
    bytes =
        bytes + heads * Checked::fromSigned(shape.columns) * Checked::fromSigned(shape.depth + shape.valueDepth) * 4;
  return bytes + attentionRest;
}

/// Columns of scores that a block of the derivative takes, calls for one batch, and workspaces that are not worth a
/// cut.
constexpr int64_t columnsOfBlock = 128, mostParts = 64;
constexpr uint64_t smallWorkspace = uint64_t(32) << 20;

/// `samples` of the batch.
AttentionShape partOf(AttentionShape shape, int64_t samples) {
  shape.batch = samples;
  return shape;
}

/// The fewest samples whose blocks occupy the processors: at least twice, and nine tenths of them on average.
int64_t samplesThatOccupy(const AttentionShape &shape, uint32_t processors) {
  const int64_t columns = (shape.columns + columnsOfBlock - 1) / columnsOfBlock;
  const Checked whole =
      Checked::fromSigned(shape.batch) * Checked::fromSigned(shape.heads) * Checked::fromSigned(columns);
  const uint64_t all = whole.get().value_or(0);
  for (int64_t parts = mostParts; parts > 1; --parts) {
    const uint64_t blocks = all / static_cast<uint64_t>(parts), rounds = (blocks + processors - 1) / processors;
    if (shape.batch % parts == 0 && blocks >= 2 * uint64_t(processors) && blocks * 10 >= rounds * processors * 9)
      return shape.batch / parts;
  }
  return shape.batch;
}

class AttentionCall final : public ReadCall {
public:
  explicit AttentionCall(const AttentionShape &shape) : shape_(shape) {}

  Status checkOperands(const plan::Call &call) const override {
    if (call.reads_size() != shape_.reads() || call.writes_size() != shape_.writes())
      return refuseCall("takes " + std::to_string(shape_.reads()) + " operands and " + std::to_string(shape_.writes()) +
                        " results; it has " + std::to_string(call.reads_size()) + " and " +
                        std::to_string(call.writes_size()));
    const uint64_t element = elementBytes(shape_.dtype), sum = elementBytes(plan::F32);
    // Operands may be parts of what is read, results are all that is written.
    auto checkRead = [&](int i, AttentionShape::Tensor tensor, const char *what) -> Status {
      return checkOperandBytes(call.reads(i), shape_.span(tensor), element, what, !shape_.layouts[tensor].isStated);
    };
    using enum AttentionShape::Tensor;
    LOWTIDE_TRY(checkRead(0, Q, "q"));
    LOWTIDE_TRY(checkRead(1, K, "k"));
    LOWTIDE_TRY(checkRead(2, V, "v"));
    LOWTIDE_TRY(
        checkOperandBytes(shape_.isGradient ? call.reads(4) : call.writes(1), shape_.rowCount(), sum, "lse", true));
    if (!shape_.isGradient) {
      LOWTIDE_TRY(checkOperandBytes(call.writes(0), shape_.elements(O), element, "o", true));
    } else {
      LOWTIDE_TRY(checkRead(3, O, "o"));
      LOWTIDE_TRY(checkRead(5, GradO, "the cotangent of o"));
      const uint64_t parts[] = {shape_.elements(GradQ), shape_.elements(GradK), shape_.elements(GradV)};
      for (int i = 0; i < call.writes_size(); ++i)
        LOWTIDE_TRY(checkOperandBytes(call.writes(i), shape_.sharesResult ? parts[0] + parts[1] + parts[2] : parts[i],
                                      element, "a cotangent", true));
    }
    if (shape_.hasMask)
      LOWTIDE_TRY(checkOperandBytes(call.reads(shape_.reads() - 1), shape_.maskElements(),
                                    elementBytes(shape_.maskDtype), "the mask", true));
    for (const plan::Slice &write : call.writes())
      for (const plan::Slice &read : call.reads())
        if (sameRange(read, write))
          return refuseCall("an operand shares the bytes of a result");
    return Status::ok();
  }

  bool hasCpuKernel() const override { return hasAttentionKernel(shape_); }
  Expected<uint64_t> cpuWorkspace() const override {
    if (!hasCpuKernel())
      return refuseCall("the CPU has no kernel for this attention; compile the model for it");
    return alignUp(attentionWorkspaceElements(shape_) * 4, workspaceAlignment);
  }
  Expected<std::unique_ptr<PreparedCall>> prepareCpu(const CallOperands &operands) const override {
    return prepareAttention(shape_, operands);
  }

  const LibraryRule *declinedBy(int /*reads*/) const override { return declineAttention(shape_); }
  /// Of the derivative: a sum for each row, and the cotangents of the scores, of as many samples at a time as occupy
  /// the GPU.
  Checked gpuWorkspace(uint32_t processors) const override {
    if (!shape_.isGradient)
      return attentionRest;
    const Checked whole = attentionGradBytes(shape_);
    return whole.atMost(smallWorkspace) ? whole
                                        : attentionGradBytes(partOf(shape_, samplesThatOccupy(shape_, processors)));
  }
  Expected<std::unique_ptr<cuda::LibraryCall>> prepareCuda(cuda::Libraries &libraries,
                                                           const cuda::CallAddresses &addresses) const override {
    return cuda::prepareCudnnAttention(libraries, shape_, addresses);
  }

private:
  AttentionShape shape_;
};

Expected<std::unique_ptr<ReadCall>> read(const plan::Call &call) {
  Expected<AttentionShape> shape = readAttention(call);
  if (!shape)
    return shape.takeStatus();
  return std::unique_ptr<ReadCall>(std::make_unique<AttentionCall>(*shape));
}

constexpr std::array<std::string_view, 2> callees = {"attention", "attention_grad"};

} // namespace

int64_t samplesAtOnce(const AttentionShape &shape, uint64_t workspaceBytes) {
  for (int64_t parts = 1; parts <= mostParts; ++parts)
    if (shape.batch % parts == 0 && attentionGradBytes(partOf(shape, shape.batch / parts)).atMost(workspaceBytes))
      return shape.batch / parts;
  return shape.batch;
}

uint64_t attentionDotBytes(const AttentionShape &shape) {
  return alignUp(shape.rowCount() * 4, libraryWorkspaceAlignment);
}

CallKind getAttentionKind() { return {callees, getAttentionRules(), read}; }

} // namespace lowtide::rt
