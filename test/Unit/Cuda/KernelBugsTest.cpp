//===- KernelBugsTest.cpp - mistakes of kernels that emulation must find ---===//
//
// Four kernels of the kinds that the compiler emits, each right as it stands and wrong in one place for every number of
// the list. A mistake is found when in some order of threads or blocks the result differs from the sequential one, is
// NaN, lies outside, or the block stands still. The right kernel must pass in every order.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/FakeCuda/BlockRunner.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

using namespace lowtide::rt::cuda::fake;

namespace {

enum Bug {
  Right,
  // Row reduction
  NoBarrierAfterPartials,
  NoBarrierBeforeBroadcast,
  NoBarrierBetweenRows,
  HalfAWarpIsSummed,
  ShuffleDownInsteadOfXor,
  LastColumnLeftOut,
  StrideTooShort,
  LastWarpLeftOut,
  BarrierInOneWarp,
  ShuffleUnderACondition,
  PartialsAtWrongPlace,
  StaleSharedMemory,
  // Transpose
  NoBarrierInTile,
  NoBarrierBetweenTiles,
  TileTurnedTwice,
  LastTileLeftOut,
  NoMaskOnStore,
  MaskOneTooWide,
  // Scan
  NoBarrierAfterRead,
  NoBarrierAfterWrite,
  LastStepLeftOut,
  EarlyExitBeforeWrite,
  AsManyBarriersAsThreads,
  // Column sums in two stages
  OtherBlocksAreTrusted,
  PartialsOfABlockOverlap,
  Count
};

float number(uint32_t word) {
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}
uint32_t bits(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return word;
}

constexpr uint32_t threads = 128, warps = threads / 32;
constexpr int rows = 4, columns = 300;

/// out[row] = sum of the row, in every element; two rows per block.
template <Bug bug> void rowSum(void *const *args, lt_gpu_thread *self, void *memory) {
  const auto *x = static_cast<const float *>(args[0]);
  auto *out = static_cast<float *>(args[1]);
  auto *shared = static_cast<float *>(memory);
  uint32_t thread = self->thread, warp = thread / 32;
  for (uint32_t row = self->block * 2; row < self->block * 2 + 2; ++row) {
    float sum = 0;
    for (uint32_t i = thread; i < columns - (bug == LastColumnLeftOut); i += threads - (bug == StrideTooShort))
      sum += x[row * columns + i];
    for (uint32_t distance = bug == HalfAWarpIsSummed ? 8 : 16; distance; distance /= 2) {
      if (bug == ShuffleUnderACondition && thread >= 100)
        continue;
      sum += number(self->shuffle(self, bits(sum), bug == ShuffleDownInsteadOfXor ? 1 : 0, distance));
    }
    if (thread % 32 == (bug == ShuffleDownInsteadOfXor ? 31 : 0))
      shared[bug == PartialsAtWrongPlace ? thread / 16 : warp] = sum;
    if (bug != NoBarrierAfterPartials && (bug != BarrierInOneWarp || warp == 0))
      self->barrier(self);
    if (thread == 0) {
      float total = 0;
      for (uint32_t i = 0; i < warps - (bug == LastWarpLeftOut) + (bug == StaleSharedMemory ? 2 : 0); ++i)
        total += shared[i];
      shared[0] = total;
    }
    if (bug != NoBarrierBeforeBroadcast)
      self->barrier(self);
    for (uint32_t i = thread; i < columns; i += threads)
      out[row * columns + i] = shared[0];
    if (bug != NoBarrierBetweenRows)
      self->barrier(self);
  }
}

constexpr int height = 60, width = 90, tile = 32;

/// out[c][r] = x[r][c], tile by tile; each block takes a row of tiles.
template <Bug bug> void transpose(void *const *args, lt_gpu_thread *self, void *memory) {
  const auto *x = static_cast<const float *>(args[0]);
  auto *out = static_cast<float *>(args[1]);
  auto *shared = static_cast<float *>(memory);
  int lane = static_cast<int>(self->thread % 32), first = static_cast<int>(self->thread / 32),
      top = static_cast<int>(self->block) * tile;
  for (int left = 0; left < width - (bug == LastTileLeftOut ? tile : 0); left += tile) {
    for (int i = first; i < tile; i += static_cast<int>(warps))
      if (top + i < height && left + lane < width)
        shared[i * (tile + 1) + lane] = x[(top + i) * width + left + lane];
    if (bug != NoBarrierInTile)
      self->barrier(self);
    int wide = bug == MaskOneTooWide ? 1 : bug == NoMaskOnStore ? tile : 0;
    for (int i = first; i < tile; i += static_cast<int>(warps))
      if (left + i < width + wide && top + lane < height)
        out[(left + i) * height + top + lane] =
            bug == TileTurnedTwice ? shared[i * (tile + 1) + lane] : shared[lane * (tile + 1) + i];
    if (bug != NoBarrierBetweenTiles)
      self->barrier(self);
  }
}

/// Inclusive sums of 128 numbers (Hillis and Steele).
template <Bug bug> void scan(void *const *args, lt_gpu_thread *self, void *memory) {
  const auto *x = static_cast<const float *>(args[0]);
  auto *out = static_cast<float *>(args[1]);
  auto *shared = static_cast<float *>(memory);
  uint32_t thread = self->thread;
  if (bug == EarlyExitBeforeWrite && thread == 50)
    return;
  shared[thread] = x[thread];
  self->barrier(self);
  for (uint32_t offset = 1; offset < (bug == LastStepLeftOut ? 64 : 128); offset *= 2) {
    float before = thread >= offset ? shared[thread - offset] : 0;
    if (bug != NoBarrierAfterRead)
      self->barrier(self);
    shared[thread] += before;
    if (bug != NoBarrierAfterWrite)
      self->barrier(self);
    if (bug == AsManyBarriersAsThreads && thread < 32)
      self->barrier(self);
  }
  out[thread] = shared[thread];
}

constexpr uint32_t stages = 4;

/// First stage of column sums over 32 columns: block b adds rows b · 8 …; wrong ones also read the others' results.
template <Bug bug> void columnPartials(void *const *args, lt_gpu_thread *self, void *) {
  const auto *x = static_cast<const float *>(args[0]);
  auto *partials = static_cast<float *>(args[1]);
  uint32_t column = self->thread;
  if (column >= 32)
    return;
  float sum = 0;
  for (uint32_t row = self->block * 8; row < self->block * 8 + 8; ++row)
    sum += x[row * 32 + column];
  uint32_t at = bug == PartialsOfABlockOverlap ? self->block * 16 : self->block * 32;
  if (bug == OtherBlocksAreTrusted && self->block > 0)
    sum += partials[at - 32 + column] - partials[at - 32 + column];
  partials[at + column] = sum;
}

constexpr size_t margin = 4096;

/// The kernel's result in some order of threads and blocks; true when it is not what it should be.
bool isWrong(lt_gpu_kernel kernel, uint32_t blocks, const std::vector<float> &x, const std::vector<float> &truth,
             ThreadOrder order, bool reversed) {
  std::vector<float> out(truth.size() + margin, number(0xffffffff));
  void *arguments[] = {const_cast<float *>(x.data()), out.data()};
  BlockRunner runner;
  for (uint32_t i = 0; i < blocks; ++i)
    if (!runner.run({kernel, arguments, blocks, threads, 32 * 33 * 4}, reversed ? blocks - 1 - i : i, order).empty())
      return true;
  bool differs = false;
  for (size_t i = 0; i < truth.size(); ++i)
    differs |= !(out[i] == truth[i]);
  for (size_t i = truth.size(); i < out.size(); ++i)
    differs |= bits(out[i]) != 0xffffffff;
  return differs;
}

struct Found {
  int wrong = 0, tried = 0;
};
Found judge(lt_gpu_kernel kernel, uint32_t blocks, const std::vector<float> &x, const std::vector<float> &truth) {
  Found found;
  for (ThreadOrder order : {ThreadOrder::Turns, ThreadOrder::FirstWarpAhead, ThreadOrder::LastWarpAhead})
    for (bool reversed : {false, true}) {
      found.wrong += isWrong(kernel, blocks, x, truth, order, reversed);
      ++found.tried;
    }
  return found;
}

/// Small whole numbers: sums are exact in any order.
std::vector<float> numbers(size_t count) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i)
    x[i] = static_cast<float>((i * 7919 + 13) % 61) - 20;
  return x;
}

template <Bug bug> Found judgeOne() {
  if constexpr (bug >= OtherBlocksAreTrusted) {
    std::vector<float> x = numbers(stages * 8 * 32), truth(stages * 32);
    for (size_t i = 0; i < x.size(); ++i)
      truth[i / (8 * 32) * 32 + i % 32] += x[i];
    return judge(columnPartials<bug>, stages, x, truth);
  } else if constexpr (bug >= NoBarrierAfterRead) {
    std::vector<float> x = numbers(threads), truth = x;
    for (size_t i = 1; i < truth.size(); ++i)
      truth[i] += truth[i - 1];
    return judge(scan<bug>, 1, x, truth);
  } else if constexpr (bug >= NoBarrierInTile) {
    std::vector<float> x = numbers(height * width), truth(x.size());
    for (int r = 0; r < height; ++r)
      for (int c = 0; c < width; ++c)
        truth[static_cast<size_t>(c * height + r)] = x[static_cast<size_t>(r * width + c)];
    return judge(transpose<bug>, 2, x, truth);
  } else {
    std::vector<float> x = numbers(rows * columns), truth(x.size());
    for (int r = 0; r < rows; ++r) {
      float sum = 0;
      for (int c = 0; c < columns; ++c)
        sum += x[static_cast<size_t>(r * columns + c)];
      for (int c = 0; c < columns; ++c)
        truth[static_cast<size_t>(r * columns + c)] = sum;
    }
    return judge(rowSum<bug>, 2, x, truth);
  }
}

template <int bug> void judgeFrom() {
  if constexpr (bug < Count) {
    Found found = judgeOne<static_cast<Bug>(bug)>();
    EXPECT_GT(found.wrong, 0) << "mistake " << bug << " is not found";
    judgeFrom<bug + 1>();
  }
}

TEST(KernelBugs, RightKernelsPassInEveryOrder) {
  std::vector<float> x = numbers(threads), sums = x;
  for (size_t i = 1; i < sums.size(); ++i)
    sums[i] += sums[i - 1];
  EXPECT_EQ(judge(scan<Right>, 1, x, sums).wrong, 0);
  EXPECT_EQ(judgeOne<Right>().wrong, 0); // row sums
  std::vector<float> image = numbers(height * width), turned(image.size());
  for (int r = 0; r < height; ++r)
    for (int c = 0; c < width; ++c)
      turned[static_cast<size_t>(c * height + r)] = image[static_cast<size_t>(r * width + c)];
  EXPECT_EQ(judge(transpose<Right>, 2, image, turned).wrong, 0);
  std::vector<float> table = numbers(stages * 8 * 32), partials(stages * 32);
  for (size_t i = 0; i < table.size(); ++i)
    partials[i / (8 * 32) * 32 + i % 32] += table[i];
  EXPECT_EQ(judge(columnPartials<Right>, stages, table, partials).wrong, 0);
}

TEST(KernelBugs, EveryMistakeIsFound) {
  static_assert(Count - 1 >= 25);
  judgeFrom<1>();
}

} // namespace
