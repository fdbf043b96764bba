//===- PackingTest.cpp - properties of packings ---------------------------===//
//
// Thousands of random problems: no overlap, aligned, never below the bound,
// deterministic; and problems whose best arena is known.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Packing/Packing.h"
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace lowtide::solve;

namespace {

std::vector<Buffer> randomProblem(std::mt19937_64 &random, unsigned count) {
  std::vector<Buffer> buffers(count);
  unsigned times = 1 + random() % (2 * count + 1);
  for (Buffer &buffer : buffers) {
    buffer.bytes = random() % 4 == 0 ? random() % 8 : 1 + random() % 100'000;
    buffer.begin = random() % times;
    buffer.end = buffer.begin + random() % (random() % 4 == 0 ? times : 6);
  }
  return buffers;
}

/// A training step: activations live from forward to backward, gradients and
/// temporaries shortly.
std::vector<Buffer> trainingProblem(std::mt19937_64 &random, unsigned layers) {
  std::vector<Buffer> buffers;
  unsigned steps = 4 * layers;
  for (unsigned i = 0; i < layers; ++i) {
    buffers.push_back({64 * (1 + random() % 1000), 2 * i, steps - 2 * i});
    buffers.push_back({64 * (1 + random() % 2000), 2 * i + 1, 2 * i + 3});
    buffers.push_back({64 * (1 + random() % 2000), steps - 2 * i - 1, steps - 2 * i + 2});
  }
  return buffers;
}

TEST(Packing, RandomProblemsAreRight) {
  std::mt19937_64 random(7);
  for (unsigned round = 0; round < 4000; ++round) {
    std::vector<Buffer> buffers = randomProblem(random, random() % 40);
    PackingOptions options;
    options.alignment = uint64_t(1) << random() % 9;
    options.effort = 20'000;
    Packing packing = pack(buffers, options);
    ASSERT_EQ(packing.offsets.size(), buffers.size());
    ASSERT_THAT(findOverlaps(buffers, packing), testing::IsEmpty()) << "round " << round;
    ASSERT_GE(packing.arenaBytes, packing.boundBytes);
    ASSERT_EQ(packing.boundBytes, liveBound(buffers, options.alignment));
    ASSERT_EQ(packing.arenaBytes % options.alignment, 0u);
    for (uint64_t offset : packing.offsets)
      ASSERT_EQ(offset % options.alignment, 0u);
  }
}

TEST(Packing, BoundIsTheLargestSumOfLiveBytes) {
  std::mt19937_64 random(8);
  for (unsigned round = 0; round < 1000; ++round) {
    std::vector<Buffer> buffers = randomProblem(random, random() % 20);
    uint64_t most = 0;
    for (uint32_t time = 0; time < 100; ++time) {
      uint64_t live = 0;
      for (const Buffer &buffer : buffers)
        if (buffer.begin <= time && time < buffer.end)
          live += alignTo(buffer.bytes, 16);
      most = std::max(most, live);
    }
    ASSERT_EQ(liveBound(buffers, 16), most);
  }
}

TEST(Packing, IsDeterministic) {
  std::mt19937_64 random(9);
  for (unsigned round = 0; round < 50; ++round) {
    std::vector<Buffer> buffers = randomProblem(random, 60);
    PackingOptions options;
    options.effort = 100'000;
    Packing a = pack(buffers, options), b = pack(buffers, options);
    ASSERT_EQ(a.offsets, b.offsets);
    ASSERT_EQ(a.method, b.method);
  }
}

TEST(Packing, DependsOnWhoMeetsWhomOnly) {
  std::mt19937_64 random(13);
  for (unsigned round = 0; round < 200; ++round) {
    std::vector<Buffer> buffers = randomProblem(random, 30), other;
    // Time counted more finely, ends drawn out to where the next one begins, another order, and buffers of no use.
    for (Buffer buffer : buffers) {
      if (buffer.begin < buffer.end)
        buffer = {buffer.bytes, 5 * buffer.begin + 4, 5 * buffer.end + unsigned(random() % 5)};
      other.push_back(buffer);
      if (random() % 4 == 0)
        other.push_back({random() % 2 * 100, 7, 7});
    }
    std::shuffle(other.begin(), other.end(), random);
    PackingOptions options;
    options.effort = 100'000;
    ASSERT_TRUE(areSameProblem(buffers, other, options.alignment)) << "round " << round;
    ASSERT_EQ(pack(buffers, options).arenaBytes, pack(other, options).arenaBytes) << "round " << round;
  }
  EXPECT_FALSE(
      areSameProblem(std::vector<Buffer>{{64, 0, 2}, {64, 1, 3}}, std::vector<Buffer>{{64, 0, 1}, {64, 1, 3}}, 64));
  EXPECT_FALSE(areSameProblem(std::vector<Buffer>{{64, 0, 2}}, std::vector<Buffer>{{65, 0, 2}}, 64));
}

TEST(Packing, OnceIsWhatPackReturns) {
  std::mt19937_64 random(21);
  std::vector<std::vector<Buffer>> problems;
  for (unsigned i = 0; i < 12; ++i)
    problems.push_back(randomProblem(random, 40));
  // More problems than are known at a time, in turn with some that are, in another order, and with other options.
  for (unsigned round = 0; round < 400; ++round) {
    std::vector<Buffer> buffers = problems[random() % 3 ? random() % 3 : random() % problems.size()];
    if (random() % 2)
      std::shuffle(buffers.begin(), buffers.end(), random);
    PackingOptions options;
    options.effort = 20'000;
    if (random() % 4 == 0)
      options.alignment = 16;
    if (random() % 4 == 0)
      options.nearness = 20;
    const Packing once = packOnce(buffers, options), packing = pack(buffers, options);
    ASSERT_EQ(once.offsets, packing.offsets) << "round " << round;
    ASSERT_EQ(once.arenaBytes, packing.arenaBytes);
    ASSERT_EQ(once.boundBytes, packing.boundBytes);
    ASSERT_EQ(once.method, packing.method);
  }
}

TEST(Packing, LessNearnessFindsNoLowerArena) {
  std::mt19937_64 random(14);
  for (unsigned round = 0; round < 100; ++round) {
    std::vector<Buffer> buffers = trainingProblem(random, 2 + random() % 40);
    PackingOptions options, quick;
    options.effort = 2'000'000;
    quick.effort = 200'000;
    quick.nearness = 250;
    Packing packing = pack(buffers, options), rough = pack(buffers, quick);
    ASSERT_THAT(findOverlaps(buffers, rough), testing::IsEmpty());
    if (rough.isNear())
      ASSERT_TRUE(packing.isNear()) << "round " << round;
  }
}

TEST(Packing, TrainingStepsComeNearTheBound) {
  std::mt19937_64 random(10);
  double sum = 0;
  for (unsigned round = 0; round < 300; ++round) {
    std::vector<Buffer> buffers = trainingProblem(random, 2 + random() % 100);
    PackingOptions options;
    options.effort = 5'000'000;
    Packing packing = pack(buffers, options);
    ASSERT_THAT(findOverlaps(buffers, packing), testing::IsEmpty());
    sum += double(packing.arenaBytes) / packing.boundBytes;
  }
  EXPECT_LE(sum / 300, 1.002);
}

/// A rectangle of time × bytes cut into pieces: they fit without a gap.
void cut(std::mt19937_64 &random, uint32_t begin, uint32_t end, uint64_t bytes, unsigned pieces,
         std::vector<Buffer> &buffers) {
  const bool byTime = random() % 2 && end - begin > 1;
  if (pieces <= 1 || (!byTime && bytes < 128)) {
    buffers.push_back({bytes, begin, end});
    return;
  }
  if (byTime) {
    const uint32_t middle = begin + 1 + random() % (end - begin - 1);
    cut(random, begin, middle, bytes, pieces / 2, buffers);
    cut(random, middle, end, bytes, pieces - pieces / 2, buffers);
  } else {
    const uint64_t part = 64 * (1 + random() % (bytes / 64 - 1));
    cut(random, begin, end, part, pieces / 2, buffers);
    cut(random, begin, end, bytes - part, pieces - pieces / 2, buffers);
  }
}

TEST(Packing, PiecesOfARectangleComeNearIt) {
  std::mt19937_64 random(12);
  double sum = 0, worst = 1;
  for (unsigned round = 0; round < 30; ++round) {
    std::vector<Buffer> buffers;
    cut(random, 0, 1000, 64 * 100'000, 10 + random() % 90, buffers);
    PackingOptions options;
    options.effort = 8'000'000;
    Packing packing = pack(buffers, options);
    ASSERT_THAT(findOverlaps(buffers, packing), testing::IsEmpty());
    ASSERT_EQ(packing.boundBytes, 64u * 100'000);
    sum += double(packing.arenaBytes) / packing.boundBytes;
    worst = std::max(worst, double(packing.arenaBytes) / packing.boundBytes);
  }
  EXPECT_LE(sum / 30, 1.004);
  std::printf("arena / rectangle: mean %.4f, worst %.4f\n", sum / 30, worst);
}

/// The fullest moments of a ResNet-50 step within 70 % of its bytes, sizes in units of the alignment: a convolution's
/// workspace in one piece in some, many small tensors in others, and those that live through both in the way. Orders
/// and ejection alone end 1.1 % above the bound.
TEST(Packing, FullMomentsOfAConvolutionalStepComeNearTheBound) {
  std::vector<Buffer> buffers{
      {200704, 0, 9}, {50176, 0, 9},  {50176, 0, 9},  {50176, 0, 9},  {50176, 0, 9},  {50176, 0, 9},  {100352, 0, 9},
      {100352, 0, 6}, {25088, 0, 8},  {8, 0, 8},      {25088, 0, 8},  {25088, 0, 6},  {8, 0, 6},      {25088, 0, 6},
      {25088, 0, 6},  {8, 0, 6},      {25088, 0, 6},  {25088, 0, 6},  {25088, 0, 6},  {8, 0, 6},      {25088, 0, 6},
      {25088, 0, 6},  {8, 0, 6},      {25088, 0, 6},  {25088, 0, 6},  {8, 0, 6},      {25088, 0, 6},  {50176, 0, 6},
      {50176, 0, 4},  {12544, 0, 6},  {16, 0, 4},     {12544, 0, 4},  {50176, 0, 4},  {64, 0, 4},     {64, 0, 4},
      {50176, 0, 4},  {12544, 0, 4},  {12544, 0, 4},  {50176, 0, 4},  {12544, 0, 4},  {12544, 0, 4},  {50176, 0, 4},
      {12544, 0, 4},  {12544, 0, 4},  {50176, 0, 4},  {64, 0, 4},     {50176, 0, 4},  {12544, 0, 4},  {16, 0, 4},
      {12544, 0, 4},  {12544, 0, 4},  {16, 0, 4},     {12544, 0, 4},  {50176, 0, 4},  {64, 0, 4},     {50176, 0, 4},
      {12544, 0, 4},  {16, 0, 4},     {12544, 0, 4},  {12544, 0, 4},  {16, 0, 4},     {12544, 0, 4},  {50176, 0, 6},
      {64, 0, 4},     {50176, 0, 4},  {25088, 0, 9},  {25088, 0, 2},  {32, 0, 3},     {25088, 0, 3},  {6272, 0, 4},
      {32, 0, 2},     {6272, 0, 2},   {25088, 0, 4},  {128, 0, 2},    {128, 0, 2},    {25088, 0, 2},  {6272, 0, 9},
      {32, 0, 2},     {6272, 0, 2},   {6272, 0, 4},   {32, 0, 1},     {6272, 0, 1},   {25088, 0, 4},  {128, 0, 1},
      {25088, 0, 1},  {6272, 0, 9},   {32, 0, 1},     {6272, 0, 1},   {6272, 0, 4},   {25088, 0, 6},  {25088, 0, 4},
      {512, 0, 9},    {250, 0, 9},    {1, 0, 9},      {1, 0, 9},      {1, 0, 9},      {6272, 0, 9},   {6272, 0, 4},
      {25088, 1, 4},  {6272, 1, 9},   {6272, 1, 4},   {25088, 2, 4},  {6272, 2, 9},   {25088, 2, 3},  {50176, 3, 4},
      {65536, 3, 4},  {50176, 4, 6},  {100352, 4, 6}, {100352, 4, 6}, {100352, 4, 6}, {32, 4, 6},     {32, 4, 6},
      {100352, 4, 6}, {32, 4, 6},     {100352, 4, 6}, {100352, 4, 6}, {32, 4, 6},     {100352, 4, 6}, {32, 4, 6},
      {100352, 4, 6}, {16, 4, 6},     {50176, 4, 6},  {32768, 4, 6},  {36864, 5, 6},  {50176, 5, 6},  {100352, 6, 8},
      {100352, 6, 8}, {4, 6, 9},      {200704, 6, 9}, {50176, 6, 9},  {4, 6, 9},      {50176, 6, 9},  {4, 6, 9},
      {50176, 6, 9},  {200704, 6, 9}, {16, 6, 9},     {200704, 6, 9}, {4, 6, 9},      {50176, 6, 9},  {200704, 6, 9},
      {16, 6, 9},     {200704, 6, 9}, {8, 6, 8},      {100352, 6, 8}, {4096, 6, 8},   {25088, 7, 8},  {2048, 8, 9},
      {200704, 8, 9}, {200704, 8, 9}, {148608, 0, 1}, {148608, 1, 2}, {148608, 2, 3}, {65536, 3, 4},  {98304, 4, 5},
      {37152, 5, 6},  {49152, 6, 7},  {4224, 7, 8},   {2064, 8, 9}};
  for (Buffer &buffer : buffers)
    buffer.bytes *= 64;
  Packing packing = pack(buffers);
  EXPECT_THAT(findOverlaps(buffers, packing), testing::IsEmpty());
  EXPECT_EQ(packing.boundBytes, 64u * 2233981);
  EXPECT_LE(packing.arenaBytes, packing.boundBytes + packing.boundBytes / 250);
}

/// Equal blocks one after the other, each full at many points, and two buffers that live through all of them. A block
/// is packed within a few draws, all 60 of them at once are not: levels and ejection of the whole end 3.5 % above the
/// bound.
TEST(Packing, EqualBlocksComeNearTheBound) {
  std::mt19937_64 random(41);
  constexpr unsigned blocks = 60, width = 30, mostUnits = 25;
  constexpr uint64_t unit = 64 * 1024;
  std::vector<Buffer> block;
  std::vector<unsigned> live(width);
  for (unsigned draw = 0; draw < 80; ++draw) {
    const unsigned begin = random() % width, reach = random() % 4 ? 4 : 20;
    const unsigned end = std::min<unsigned>(width, begin + 1 + random() % reach);
    const unsigned units = random() % 3 == 0 ? 8 : random() % 2 ? 4 : 1;
    if (std::any_of(live.begin() + begin, live.begin() + end, [&](unsigned sum) { return sum + units > mostUnits; }))
      continue;
    for (unsigned at = begin; at < end; ++at)
      live[at] += units;
    block.push_back({units * unit, begin, end});
  }
  std::vector<Buffer> buffers{{64 * 3816, 0, blocks * width}, {64 * 8, 0, blocks * width}};
  for (unsigned i = 0; i < blocks; ++i)
    for (const Buffer &buffer : block)
      buffers.push_back({buffer.bytes, buffer.begin + i * width, buffer.end + i * width});
  Packing packing = pack(buffers, PackingOptions().getQuick());
  EXPECT_THAT(findOverlaps(buffers, packing), testing::IsEmpty());
  EXPECT_LE(packing.arenaBytes, packing.boundBytes + packing.boundBytes / 250);
}

TEST(Packing, NestedLifetimesStack) {
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < 50; ++i)
    buffers.push_back({64, i, 100 - i});
  EXPECT_EQ(pack(buffers).arenaBytes, 50u * 64);
}

TEST(Packing, SuccessiveBuffersShare) {
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < 50; ++i)
    buffers.push_back({1000, i, i + 1});
  EXPECT_EQ(pack(buffers).arenaBytes, 1024u);
}

TEST(Packing, ManyBuffersSweepByTime) {
  std::mt19937_64 random(11);
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < 20'000; ++i)
    buffers.push_back({64 * (1 + random() % 100), i, 40'000 - i});
  Packing packing = pack(buffers);
  EXPECT_EQ(packing.arenaBytes, packing.boundBytes);
}

TEST(Packing, EmptyProblems) {
  EXPECT_EQ(pack({}).arenaBytes, 0u);
  std::vector<Buffer> buffers{{0, 0, 5}, {10, 3, 3}};
  EXPECT_EQ(pack(buffers).arenaBytes, 0u);
}

TEST(Packing, FindOverlapsFindsThem) {
  std::vector<Buffer> buffers{{64, 0, 2}, {64, 1, 3}, {64, 2, 4}};
  Packing packing;
  packing.offsets = {0, 32, 0};
  packing.arenaBytes = 96;
  EXPECT_THAT(findOverlaps(buffers, packing), testing::ElementsAre(testing::Pair(0, 1), testing::Pair(1, 2)));
  packing.arenaBytes = 80;
  EXPECT_THAT(findOverlaps(buffers, packing), testing::Contains(testing::Pair(1, 1)));
}

TEST(Packing, RefusesSizesThatOverflow) {
  std::vector<Buffer> buffers{{UINT64_MAX - 5, 0, 1}};
  EXPECT_FALSE(isPackable(buffers, 64));
  buffers = {{uint64_t(1) << 62, 0, 1}, {uint64_t(1) << 62, 0, 1}};
  EXPECT_FALSE(isPackable(buffers, 64));
  buffers.pop_back();
  EXPECT_TRUE(isPackable(buffers, 64));
}

} // namespace
