//===- KernelsTest.cpp - library calls against textbook loops --------------===//

#include "Plans.h"
#include "runtime/Verify.h"
#include "runtime/Workspace.h"
#include "runtime/calls/Gemm/GemmShape.h"
#include "runtime/kernels/PreparedCall.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

template <typename T> std::vector<T> random(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(count);
  for (T &value : values)
    value = static_cast<T>(uniform(generator));
  return values;
}

/// Runs all tasks, last one first: their order must not matter.
template <typename T> void run(const plan::Call &call, std::vector<const T *> reads, T *write) {
  Expected<uint64_t> bytes = queryWorkspace(call);
  ASSERT_TRUE(bytes) << bytes.status().str();
  void *memory = *bytes ? std::aligned_alloc(64, *bytes) : nullptr;
  if (memory)
    std::memset(memory, 0xFF, *bytes); // NaN
  std::vector<const void *> from(reads.begin(), reads.end());
  std::vector<void *> to = {write};
  auto prepared = prepareCall(call, {from, to, memory});
  ASSERT_TRUE(prepared) << prepared.status().str();
  for (int phase = 0; phase < (*prepared)->phases(); ++phase)
    for (int64_t task = (*prepared)->tasks(phase); task-- > 0;)
      (*prepared)->run(phase, task);
  std::free(memory);
}

template <typename T> const char *dtypeName() { return sizeof(T) == 4 ? "f32" : "f64"; }

template <typename T> void expectNear(const std::vector<T> &got, const std::vector<double> &want, double terms) {
  double unit = sizeof(T) == 4 ? 6e-8 : 1.2e-16;
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], 8 * unit * (terms + 8)) << "element " << i;
}

template <typename T>
void checkGemm(int64_t m, int64_t n, int64_t k, bool ta, bool tb, const char *addend, double alpha) {
  SCOPED_TRACE(std::string(dtypeName<T>()) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" +
               std::to_string(k) + (ta ? " ta" : "") + (tb ? " tb " : " ") + addend);
  std::string kind = addend;
  auto a = random<T>(static_cast<size_t>(m * k), 1), b = random<T>(static_cast<size_t>(k * n), 2);
  auto c = random<T>(static_cast<size_t>(m * n), 3);
  std::vector<T> d(static_cast<size_t>(m * n), T(NAN));
  plan::Call call;
  call.set_callee("gemm");
  set(call, "dtype", dtypeName<T>());
  set(call, "m", m), set(call, "n", n), set(call, "k", k);
  set(call, "transpose_a", ta ? 1 : 0), set(call, "transpose_b", tb ? 1 : 0);
  set(call, "alpha", alpha), set(call, "addend", addend);
  std::vector<const T *> reads = {a.data(), b.data()};
  if (kind != "none") {
    reads.push_back(c.data());
    for (int i = 0; i < 3; ++i)
      call.add_reads();
  }
  run<T>(call, reads, d.data());
  std::vector<double> want;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += double(a[size_t(ta ? p * m + i : i * k + p)]) * double(b[size_t(tb ? j * k + p : p * n + j)]);
      double extra = kind == "full"     ? c[size_t(i * n + j)]
                     : kind == "row"    ? c[size_t(j)]
                     : kind == "column" ? c[size_t(i)]
                                        : 0;
      want.push_back(alpha * sum + extra);
    }
  expectNear(d, want, static_cast<double>(k));
}

TEST(Gemm, MatchesTextbook) {
  const int64_t shapes[][3] = {{1, 1, 1},    {6, 16, 8},  {7, 17, 9},    {5, 8, 3},     {13, 31, 300},  {64, 10, 64},
                               {100, 1, 50}, {1, 100, 5}, {200, 40, 33}, {97, 270, 65}, {33, 513, 257}, {3, 24, 700}};
  for (auto [m, n, k] : shapes)
    for (int t = 0; t < 4; ++t) {
      checkGemm<float>(m, n, k, t & 1, t & 2, "none", 1.0);
      checkGemm<double>(m, n, k, t & 1, t & 2, "none", 1.0);
    }
  for (const char *addend : {"full", "row", "column"}) {
    checkGemm<float>(19, 37, 300, false, true, addend, 0.5);
    checkGemm<float>(48, 64, 40, true, false, addend, 2.0);
    checkGemm<double>(19, 37, 300, true, true, addend, 0.5);
  }
}

/// The same numbers, stored the other way round.
template <typename T> std::vector<T> transposed(const std::vector<T> &from, int64_t rows, int64_t columns) {
  std::vector<T> to(from.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      to[size_t(j * rows + i)] = from[size_t(i * columns + j)];
  return to;
}

/// A product with vectors of 64 bytes, or of 32.
template <typename T>
std::vector<T> multiply(const plan::Call &call, std::vector<const T *> reads, size_t size, bool usesWideVectors) {
  auto shape = readGemm(call);
  EXPECT_TRUE(shape) << shape.status().message();
  std::vector<T> d(size, T(NAN));
  std::vector<const void *> from(reads.begin(), reads.end());
  void *to[] = {d.data()};
  const auto prepared = prepareGemm(*shape, {from, to}, usesWideVectors);
  for (int64_t task = 0; task < prepared->tasks(0); ++task)
    prepared->run(0, task);
  return d;
}

/// Neither how operands are stored nor how wide vectors are changes a bit.
template <typename T> void checkBits(int64_t m, int64_t n, int64_t k, const char *addend) {
  SCOPED_TRACE(std::string(dtypeName<T>()) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" +
               std::to_string(k) + " " + addend);
  const std::vector<T> a = random<T>(size_t(m * k), 1), b = random<T>(size_t(k * n), 2),
                       c = random<T>(size_t(m * n), 3);
  const std::vector<T> otherA = transposed(a, m, k), otherB = transposed(b, k, n);
  std::vector<T> first;
  for (int t = 0; t < 8; ++t) {
    const bool isWide = t & 4;
    if (isWide && !kernels::hasWideVectors())
      break;
    plan::Call call;
    call.set_callee("gemm");
    set(call, "dtype", dtypeName<T>());
    set(call, "m", m), set(call, "n", n), set(call, "k", k), set(call, "alpha", 0.3), set(call, "addend", addend);
    set(call, "transpose_a", t & 1), set(call, "transpose_b", t >> 1 & 1);
    for (int i = 0; i < 3; ++i)
      call.add_reads();
    std::vector<T> d = multiply<T>(call, {t & 1 ? otherA.data() : a.data(), t & 2 ? otherB.data() : b.data(), c.data()},
                                   size_t(m * n), isWide);
    if (t == 0)
      first = d;
    EXPECT_EQ(d, first) << "storage " << (t & 3) << (isWide ? ", wide" : "");
  }
}

TEST(Gemm, NeitherStorageNorWidthChangesABit) {
  // Narrow and wide blocks of columns, several blocks of k, every number of rows of a tile, rows that are no multiple
  // of what is copied at once, and distances of 4 KiB between lines.
  const int64_t shapes[][3] = {{97, 270, 65},   {200, 40, 600},  {96, 96, 1024},
                               {1024, 64, 300}, {195, 300, 513}, {7, 17, 9}};
  for (auto [m, n, k] : shapes)
    for (const char *addend : {"full", "row", "column"}) {
      checkBits<float>(m, n, k, addend);
      checkBits<double>(m, n, k, addend);
    }
  for (int64_t m = 1; m < 26; ++m)
    checkBits<float>(m, 3 * m, 20, "full");
}

TEST(Gemm, HeadsInsideRows) {
  // q, k: [batch, time, heads, width]; scores: [batch, heads, time, time].
  const int64_t B = 3, T = 9, H = 4, W = 5;
  auto q = random<float>(B * T * H * W, 1), k = random<float>(B * T * H * W, 2);
  std::vector<float> scores(B * H * T * T, NAN), mixed(B * T * H * W, NAN);
  plan::Call call;
  call.set_callee("gemm");
  set(call, "m", T), set(call, "n", T), set(call, "k", W), set(call, "transpose_b", 1);
  set(call, "lda", H * W), set(call, "ldb", H * W);
  set(call, "batch_dims", std::vector<int64_t>{B, H});
  set(call, "batch_strides_a", std::vector<int64_t>{T * H * W, W});
  set(call, "batch_strides_b", std::vector<int64_t>{T * H * W, W});
  set(call, "batch_strides_d", std::vector<int64_t>{H * T * T, T * T});
  run<float>(call, {q.data(), k.data()}, scores.data());
  // And back: result rows interleaved with the heads.
  plan::Call back;
  back.set_callee("gemm");
  set(back, "m", T), set(back, "n", W), set(back, "k", T);
  set(back, "ldb", H * W), set(back, "ldd", H * W);
  set(back, "batch_dims", std::vector<int64_t>{B, H});
  set(back, "batch_strides_a", std::vector<int64_t>{H * T * T, T * T});
  set(back, "batch_strides_b", std::vector<int64_t>{T * H * W, W});
  set(back, "batch_strides_d", std::vector<int64_t>{T * H * W, W});
  run<float>(back, {scores.data(), k.data()}, mixed.data());
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < T; ++i) {
        for (int64_t j = 0; j < T; ++j) {
          double sum = 0;
          for (int64_t w = 0; w < W; ++w)
            sum += double(q[size_t(((b * T + i) * H + h) * W + w)]) * k[size_t(((b * T + j) * H + h) * W + w)];
          ASSERT_NEAR(scores[size_t(((b * H + h) * T + i) * T + j)], sum, 1e-5);
        }
        for (int64_t w = 0; w < W; ++w) {
          double sum = 0;
          for (int64_t j = 0; j < T; ++j)
            sum += double(scores[size_t(((b * H + h) * T + i) * T + j)]) * k[size_t(((b * T + j) * H + h) * W + w)];
          ASSERT_NEAR(mixed[size_t(((b * T + i) * H + h) * W + w)], sum, 1e-5);
        }
      }
}

TEST(Gemm, RefusesWhatMakesNoSense) {
  plan::Call good;
  good.set_callee("gemm");
  set(good, "m", 4), set(good, "n", 4), set(good, "k", 4);
  EXPECT_TRUE(readGemm(good));
  auto refused = [&](auto change, const char *words) {
    plan::Call call = good;
    change(call);
    auto shape = readGemm(call);
    ASSERT_FALSE(shape) << words;
    EXPECT_NE(shape.status().str().find(words), std::string::npos) << shape.status().str();
  };
  refused([](plan::Call &c) { set(c, "colour", 1); }, "unknown");
  refused([](plan::Call &c) { set(c, "k", 1); }, "twice");
  refused([](plan::Call &c) { c.mutable_attributes(0)->set_i(0); }, "'m'");
  refused([](plan::Call &c) { c.mutable_attributes(0)->set_i(int64_t(1) << 41); }, "'m'");
  refused([](plan::Call &c) { c.mutable_attributes()->DeleteSubrange(2, 1); }, "'k' is missing");
  refused([](plan::Call &c) { set(c, "dtype", "f8"); }, "f8");
  refused([](plan::Call &c) { set(c, "lda", 3); }, "'lda'");
  refused([](plan::Call &c) { set(c, "ldd", 5); }, "holes");
  refused([](plan::Call &c) { set(c, "batch", 2); }, "holes");
  refused([](plan::Call &c) { set(c, "addend", "sum"); }, "addend");
  refused([](plan::Call &c) { set(c, "alpha", double(INFINITY)); }, "alpha");
  refused(
      [](plan::Call &c) {
        c.mutable_attributes(0)->set_i(int64_t(1) << 40);
        c.mutable_attributes(1)->set_i(int64_t(1) << 40);
      },
      "too large");
}

struct ConvCase {
  std::vector<int64_t> input, filter, stride, padBegin, padEnd, dilation;
  int64_t groups;
};

template <typename T> void checkConv(const ConvCase &test) {
  size_t spatial = test.input.size() - 2;
  std::vector<int64_t> output = {test.input[0], test.filter[0]};
  std::string trace = dtypeName<T>();
  for (size_t d = 0; d < spatial; ++d)
    output.push_back(
        (test.input[2 + d] + test.padBegin[d] + test.padEnd[d] - test.dilation[d] * (test.filter[2 + d] - 1) - 1) /
            test.stride[d] +
        1);
  for (const auto *list : std::initializer_list<const std::vector<int64_t> *>{
           &test.input, &test.filter, &output, &test.stride, &test.padBegin, &test.dilation}) {
    trace += " [";
    for (int64_t value : *list)
      trace += std::to_string(value) + " ";
    trace += "]";
  }
  SCOPED_TRACE(trace + " g" + std::to_string(test.groups));
  auto volume = [](const std::vector<int64_t> &dims) {
    int64_t product = 1;
    for (int64_t dim : dims)
      product *= dim;
    return static_cast<size_t>(product);
  };
  auto x = random<T>(volume(test.input), 1), w = random<T>(volume(test.filter), 2), dy = random<T>(volume(output), 3);
  auto bias = random<T>(static_cast<size_t>(test.filter[0]), 4);
  std::vector<double> wantY(dy.size()), wantX(x.size()), wantW(w.size());

  auto three = [&](const std::vector<int64_t> &dims, size_t skip, int64_t fill) {
    std::vector<int64_t> result(3 - spatial, fill);
    result.insert(result.end(), dims.begin() + static_cast<long>(skip), dims.end());
    return result;
  };
  auto I = three(test.input, 2, 1), F = three(test.filter, 2, 1), O = three(output, 2, 1);
  auto S = three(test.stride, 0, 1), P = three(test.padBegin, 0, 0), D = three(test.dilation, 0, 1);
  int64_t N = test.input[0], C = test.input[1], OC = test.filter[0], CG = test.filter[1], OG = OC / test.groups;
  for (int64_t n = 0; n < N; ++n)
    for (int64_t o = 0; o < OC; ++o)
      for (int64_t z = 0; z < O[0]; ++z)
        for (int64_t y = 0; y < O[1]; ++y)
          for (int64_t u = 0; u < O[2]; ++u) {
            size_t out = size_t((((n * OC + o) * O[0] + z) * O[1] + y) * O[2] + u);
            wantY[out] += bias[size_t(o)];
            for (int64_t c = 0; c < CG; ++c)
              for (int64_t a = 0; a < F[0]; ++a)
                for (int64_t b = 0; b < F[1]; ++b)
                  for (int64_t e = 0; e < F[2]; ++e) {
                    int64_t iz = z * S[0] + a * D[0] - P[0], iy = y * S[1] + b * D[1] - P[1],
                            ix = u * S[2] + e * D[2] - P[2];
                    if (iz < 0 || iz >= I[0] || iy < 0 || iy >= I[1] || ix < 0 || ix >= I[2])
                      continue;
                    size_t in = size_t((((n * C + o / OG * CG + c) * I[0] + iz) * I[1] + iy) * I[2] + ix);
                    size_t f = size_t((((o * CG + c) * F[0] + a) * F[1] + b) * F[2] + e);
                    wantY[out] += double(x[in]) * w[f];
                    wantX[in] += double(dy[out]) * w[f];
                    wantW[f] += double(dy[out]) * x[in];
                  }
          }

  auto make = [&](const char *callee) {
    plan::Call call;
    call.set_callee(callee);
    set(call, "dtype", dtypeName<T>());
    set(call, "input", test.input), set(call, "filter", test.filter), set(call, "output", output);
    set(call, "strides", test.stride), set(call, "pads_begin", test.padBegin), set(call, "pads_end", test.padEnd);
    set(call, "dilations", test.dilation), set(call, "groups", test.groups);
    return call;
  };
  double terms = static_cast<double>(CG * volume(F) + 1);
  std::vector<T> y(dy.size(), T(NAN)), dx(x.size(), T(NAN)), dw(w.size(), T(NAN));
  run<T>(make("conv"), {x.data(), w.data(), bias.data()}, y.data());
  expectNear(y, wantY, terms);
  run<T>(make("conv_input_grad"), {dy.data(), w.data()}, dx.data());
  expectNear(dx, wantX, static_cast<double>(OG * volume(F)));
  run<T>(make("conv_filter_grad"), {x.data(), dy.data()}, dw.data());
  expectNear(dw, wantW, static_cast<double>(N * volume(O)));
}

TEST(Conv, MatchesTextbook) {
  const ConvCase cases[] = {
      {{2, 3, 8, 8}, {5, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, 1},
      {{3, 4, 7, 9}, {6, 2, 3, 2}, {2, 1}, {0, 1}, {1, 0}, {1, 2}, 2},
      {{2, 8, 16, 16}, {16, 8, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{2, 6, 5, 5}, {6, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 6},
      {{4, 16, 4, 4}, {33, 16, 1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, 1},
      {{2, 3, 32, 32}, {8, 3, 4, 4}, {4, 4}, {0, 0}, {0, 0}, {1, 1}, 1},
      {{2, 5, 11}, {7, 5, 3}, {2}, {2}, {0}, {1}, 1},
      {{2, 4, 20}, {4, 2, 5}, {3}, {1}, {4}, {2}, 2},
      {{2, 3, 4, 5, 6}, {4, 3, 2, 3, 3}, {1, 2, 1}, {1, 1, 1}, {0, 1, 1}, {1, 1, 2}, 1},
      {{1, 2, 6, 6, 6}, {4, 1, 3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 2},
      {{1, 40, 17, 19}, {70, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{8, 32, 6, 6}, {32, 32, 4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{1, 2, 40, 40}, {3, 2, 20, 20}, {5, 5}, {3, 3}, {3, 3}, {1, 1}, 1}, // more taps than a block of k
      {{2, 2, 9, 9}, {2, 2, 2, 2}, {4, 4}, {0, 0}, {0, 0}, {1, 1}, 1},     // pixels that no output looks at
      {{2, 2, 3, 3}, {2, 2, 3, 3}, {1, 1}, {5, 5}, {5, 5}, {1, 1}, 1},     // pads wider than the image
      {{2, 5, 21, 30}, {5, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 5},   // one channel per group
      {{2, 4, 33, 41}, {4, 1, 5, 5}, {2, 2}, {2, 2}, {2, 2}, {1, 1}, 4},
      {{2, 4, 18, 24}, {8, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {2, 2}, 4}, // two results per channel
      {{3, 6, 14, 14}, {1, 6, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, // one result
      {{2, 9, 31, 35}, {7, 9, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1}, // residues of unequal size
      {{2, 12, 32, 32}, {10, 12, 1, 1}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 1},
      {{1, 150, 10, 16}, {20, 150, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, // several blocks of channels
      {{3, 130, 7, 9}, {140, 130, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},  // many channels in and out: gathered
      {{2, 256, 7, 7}, {256, 128, 1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, 2},
      {{2, 128, 9, 8}, {300, 128, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
  };
  for (const ConvCase &test : cases) {
    checkConv<float>(test);
    checkConv<double>(test);
  }
}

TEST(Conv, MatchesTextbookOnRandomShapes) {
  std::mt19937 generator(7);
  auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(generator() % static_cast<uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 60; ++round) {
    size_t spatial = static_cast<size_t>(pick(1, 3));
    int64_t groups = pick(1, 3), channels = pick(1, 9), out = pick(1, 20);
    ConvCase test;
    test.groups = groups;
    test.input = {pick(1, 4), channels * groups};
    test.filter = {out * groups, channels};
    for (size_t d = 0; d < spatial; ++d) {
      int64_t filter = pick(1, 4), dilation = pick(1, 3), reach = dilation * (filter - 1) + 1;
      int64_t before = pick(0, 2), after = pick(0, 2);
      test.filter.push_back(filter), test.dilation.push_back(dilation), test.stride.push_back(pick(1, 3));
      test.padBegin.push_back(before), test.padEnd.push_back(after);
      test.input.push_back(std::max<int64_t>(1, reach - before - after) + pick(0, spatial == 3 ? 5 : 18));
    }
    checkConv<float>(test);
    if (HasFatalFailure())
      return;
  }
}

} // namespace
