//===- Workspace.cpp - what a library call needs, asked before it runs -----===//

#include "runtime/Workspace.h"

#include "runtime/CallShape.h"
#include "runtime/CheckedMath.h"
#include "runtime/LibraryTable.h"
#include "runtime/Verify.h"
#include "runtime/kernels/Attention.h"
#include "runtime/kernels/ConvPlan.h"
#include "runtime/kernels/NarrowConv.h"

#include <algorithm>

namespace lowtide::rt {

Expected<uint64_t> queryWorkspace(const plan::Call &call) {
  if (call.callee() == "gemm") {
    Expected<GemmShape> shape = readGemm(call);
    if (!shape)
      return shape.takeStatus();
    return uint64_t(0);
  }
  if (isAttention(call)) {
    if (!hasCpuKernel(call))
      return Status(StatusCode::VerifyFailed,
                    "the CPU has no kernel for this '" + call.callee() + "'; compile the model for it");
    Expected<AttentionShape> shape = readAttention(call);
    if (!shape)
      return shape.takeStatus();
    return alignUp(attentionWorkspaceElements(*shape) * 4, workspaceAlignment);
  }
  Expected<ConvShape> shape = readConv(call);
  if (!shape)
    return shape.takeStatus();
  return queryWorkspace(*shape);
}

bool isGpu(std::string_view target) { return target.substr(0, 4) == "cuda"; }

namespace {

/// The tile of a block, the depth below which k is not cut, and what cuBLAS takes by itself on Hopper (cuBLAS 13.0
/// documentation, cublasSetWorkspace(): 32 MiB).
constexpr int64_t tile = 128, depthOfPart = 256;
constexpr uint64_t gemmLimit = uint64_t(32) << 20;

int64_t tilesOf(int64_t size) { return (size + tile - 1) / tile; }

/// f32 partial sums of an m × n result whose k is cut, `batch` times, for a GPU that runs `blocksAtOnce` blocks at
/// once: one on each of its multiprocessors.
uint64_t partialSumBytes(int64_t m, int64_t n, int64_t k, int64_t batch, uint32_t blocksAtOnce) {
  Checked tiles = Checked::fromSigned(tilesOf(m)) * Checked::fromSigned(tilesOf(n)) * Checked::fromSigned(batch);
  if (!tiles.atMost(blocksAtOnce / 2))
    return 0;
  uint64_t parts = std::min<uint64_t>(blocksAtOnce / *tiles.get(), static_cast<uint64_t>(k / depthOfPart));
  Checked bytes = Checked::fromSigned(m) * Checked::fromSigned(n) * Checked::fromSigned(batch) * (4 * parts);
  return parts < 2 ? 0 : bytes.atMost(gemmLimit) ? *bytes.get() : gemmLimit;
}

/// Channels rounded up to what 16 bytes hold.
int64_t paddedChannels(int64_t channels) { return (channels + 7) / 8 * 8; }

/// Images of 16-bit elements rewritten channels last; nothing where they are stored so.
Checked channelsLastBytes(const ConvShape &shape, int64_t channels, const ConvShape::Dims &dims) {
  if (shape.channelsLast && channels % 8 == 0)
    return 0;
  return Checked::fromSigned(shape.batch) * Checked::fromSigned(paddedChannels(channels)) *
         Checked::fromSigned(ConvShape::volume(dims)) * 2;
}

/// The same of the filter, whose channels on both sides are rounded up.
Checked channelsLastFilterBytes(const ConvShape &shape) {
  const int64_t outputs = shape.groups * shape.outChannels;
  if (shape.channelsLast && shape.channels % 8 == 0 && outputs % 8 == 0)
    return 0;
  return Checked::fromSigned(paddedChannels(outputs)) * Checked::fromSigned(paddedChannels(shape.channels)) *
         Checked::fromSigned(ConvShape::volume(shape.filter)) * 2;
}

/// What engines of attention keep besides: counters and descriptors.
constexpr uint64_t attentionRest = uint64_t(1) << 20;

/// The same of engines of convolutions on Hopper's tensor cores, none of which fits without: 16 to 247 bytes (asked of
/// cuDNN 9.26, `tools/dev libraries`).
constexpr uint64_t convRest = 1024;

/// With room for the libraries' alignment.
Expected<uint64_t> alignedForLibraries(Checked bytes) {
  if (!bytes.atMost(uint64_t(1) << 46))
    return Status(StatusCode::VerifyFailed, "its workspace is too large to count");
  const uint64_t whole = alignUp(*bytes.get(), workspaceAlignment);
  return whole ? whole + libraryWorkspaceAlignment - workspaceAlignment : 0;
}

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

Expected<uint64_t> queryGpuWorkspace(const plan::Call &call, uint32_t processors) {
  if (call.callee() == "gemm") {
    Expected<GemmShape> shape = readGemm(call);
    if (!shape)
      return shape.takeStatus();
    // Epilogues and f64 are not cut.
    bool cut = shape->dtype != plan::F64 && shape->epilogue == GemmShape::Epilogue::None && !shape->hasSums();
    return alignedForLibraries(cut ? partialSumBytes(shape->m, shape->n, shape->k, shape->batchCount(), processors)
                                   : 0);
  }
  if (isAttention(call)) {
    Expected<AttentionShape> shape = readAttention(call);
    if (!shape)
      return shape.takeStatus();
    if (!shape->isGradient)
      return alignedForLibraries(attentionRest);
    const Checked whole = attentionGradBytes(*shape);
    return alignedForLibraries(whole.atMost(smallWorkspace)
                                   ? whole
                                   : attentionGradBytes(partOf(*shape, samplesThatOccupy(*shape, processors))));
  }
  Expected<ConvShape> shape = readConv(call);
  if (!shape)
    return shape.takeStatus();
  Checked bytes = 0;
  if (isNarrow(shape->dtype))
    bytes = channelsLastBytes(*shape, shape->groups * shape->channels, shape->input) +
            channelsLastBytes(*shape, shape->groups * shape->outChannels, shape->output) +
            channelsLastFilterBytes(*shape) + convRest;
  if (shape->kind == ConvShape::Kind::FilterGrad) {
    int64_t rows = shape->outChannels, columns = shape->channels * ConvShape::volume(shape->filter);
    bytes = bytes +
            partialSumBytes(rows, columns, shape->batch * ConvShape::volume(shape->output), shape->groups, processors);
  }
  return alignedForLibraries(bytes);
}

Expected<uint64_t> queryWorkspace(const ConvShape &shape) {
  if (isNarrow(shape.dtype)) {
    Expected<NarrowConvPlan> plan = NarrowConvPlan::get(shape);
    if (!plan)
      return plan.takeStatus();
    return plan->bytes;
  }
  return convWorkspaceBytes(shape);
}

Expected<uint64_t> convWorkspaceBytes(const ConvShape &shape) {
  int64_t elements = 0;
  if (shape.kind == ConvShape::Kind::InputGrad) {
    elements = packedFilterElements(shape);
  } else if (shape.kind == ConvShape::Kind::FilterGrad) {
    FilterGradCut cut(shape);
    elements = cut.parts * cut.partElements(shape);
  }
  Checked bytes = Checked::fromSigned(elements) * elementBytes(shape.dtype);
  if (!bytes.atMost(uint64_t(1) << 46))
    return Status(StatusCode::VerifyFailed, "its workspace is too large to count");
  return alignUp(*bytes.get(), workspaceAlignment);
}

uint64_t workspaceBytes(const plan::Call &call) {
  Expected<uint64_t> bytes = queryWorkspace(call);
  return bytes ? *bytes : 0;
}

uint64_t countScratchParts(int64_t extent, int64_t grain, uint32_t threadsMax) {
  uint64_t tasks = extent <= 0 ? 0 : static_cast<uint64_t>((extent - 1) / grain) + 1;
  return std::min<uint64_t>(tasks, threadsMax);
}

} // namespace lowtide::rt
