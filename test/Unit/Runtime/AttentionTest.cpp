//===- AttentionTest.cpp - the CPU's attention against its formulas --------===//

#include "Plans.h"
#include "runtime/LibraryTable.h"
#include "runtime/Workspace.h"
#include "runtime/calls/CallAttributes.h"
#include "runtime/kernels/Narrow.h"
#include "runtime/kernels/PreparedCall.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

using Values = std::vector<float>;

struct Case {
  int64_t batch, heads, keyHeads, rows, columns, depth, valueDepth;
  std::vector<int64_t> mask; ///< empty: none
  bool isCausal;
};

Values random(size_t count, uint32_t seed, double width = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-width, width);
  Values values(count);
  for (float &value : values)
    value = static_cast<float>(uniform(generator));
  return values;
}

plan::Call describe(const Case &c, const char *callee, const char *dtype = "f32") {
  plan::Call call;
  call.set_callee(callee);
  set(call, "dtype", dtype);
  set(call, "batch", c.batch), set(call, "heads", c.heads), set(call, "key_heads", c.keyHeads);
  set(call, "rows", c.rows), set(call, "columns", c.columns), set(call, "depth", c.depth);
  set(call, "value_depth", c.valueDepth), set(call, "scale", 0.3), set(call, "causal", c.isCausal ? 1 : 0);
  if (!c.mask.empty())
    set(call, "mask", c.mask);
  return call;
}

/// Runs all tasks, last one first: their order must not matter.
void run(const plan::Call &call, const std::vector<const Values *> &reads, const std::vector<Values *> &writes) {
  EXPECT_TRUE(hasCpuKernel(call));
  EXPECT_EQ(*queryWorkspace(call), 0u);
  std::unique_ptr<PreparedCall> prepared;
  {
    // Addresses are taken over: the lists of them are gone when the tasks run.
    std::vector<const void *> from;
    for (const Values *values : reads)
      from.push_back(values->data());
    std::vector<void *> to;
    for (Values *values : writes)
      to.push_back(values->data());
    auto made = prepareCall(call, {from, to, nullptr});
    ASSERT_TRUE(made) << made.status().str();
    prepared = std::move(*made);
    std::fill(from.begin(), from.end(), nullptr);
    std::fill(to.begin(), to.end(), nullptr);
  }
  for (int64_t task = prepared->tasks(0); task-- > 0;)
    prepared->run(0, task);
}

/// What the formulas say, in f64.
struct Oracle {
  std::vector<double> o, lse, dq, dk, dv;

  Oracle(const Case &c, const Values &q, const Values &k, const Values &v, const Values &mask, const Values &gradO)
      : o(gradO.size()), lse(size_t(c.batch * c.heads * c.rows)), dq(q.size()), dk(k.size()), dv(v.size()) {
    for (int64_t head = 0; head < c.batch * c.heads; ++head)
      for (int64_t row = 0; row < c.rows; ++row)
        addRow(c, head, row, q, k, v, mask, gradO);
  }

  void addRow(const Case &c, int64_t head, int64_t row, const Values &q, const Values &k, const Values &v,
              const Values &mask, const Values &gradO) {
    const int64_t group = c.heads / c.keyHeads, keyHead = head / c.heads * c.keyHeads + head % c.heads / group;
    auto at = [](int64_t i, int64_t count, int64_t j, int64_t width) { return size_t(i * count * width + j * width); };
    const size_t qRow = at(head, c.rows, row, c.depth), oRow = at(head, c.rows, row, c.valueDepth);
    std::vector<double> scores(size_t(c.columns), -INFINITY);
    double highest = -INFINITY, total = 0;
    for (int64_t column = 0; column < (c.isCausal ? std::min(c.columns, row + 1) : c.columns); ++column) {
      double &score = scores[size_t(column)] = 0;
      for (int64_t d = 0; d < c.depth; ++d)
        score += 0.3 * q[qRow + size_t(d)] * k[at(keyHead, c.columns, column, c.depth) + size_t(d)];
      const int64_t place[] = {head / c.heads, head % c.heads, row, column};
      int64_t index = 0;
      for (size_t d = 0; d < c.mask.size(); ++d)
        index = index * c.mask[d] + (c.mask[d] == 1 ? 0 : place[d]);
      score += c.mask.empty() ? 0 : mask[size_t(index)];
      highest = std::max(highest, score);
    }
    for (double score : scores)
      total += std::exp(score - highest);
    lse[size_t(head * c.rows + row)] = highest + std::log(total);
    std::vector<double> cotangents(scores.size());
    double dot = 0;
    for (int64_t column = 0; column < c.columns; ++column) {
      const size_t vRow = at(keyHead, c.columns, column, c.valueDepth), s = size_t(column);
      scores[s] = std::exp(scores[s] - highest) / total;
      for (int64_t d = 0; d < c.valueDepth; ++d) {
        o[oRow + size_t(d)] += scores[s] * v[vRow + size_t(d)];
        dv[vRow + size_t(d)] += scores[s] * gradO[oRow + size_t(d)];
        cotangents[s] += double(gradO[oRow + size_t(d)]) * v[vRow + size_t(d)];
      }
      dot += scores[s] * cotangents[s];
    }
    for (int64_t column = 0; column < c.columns; ++column)
      for (int64_t d = 0; d < c.depth; ++d) {
        const double gradient = 0.3 * scores[size_t(column)] * (cotangents[size_t(column)] - dot);
        const size_t kAt = at(keyHead, c.columns, column, c.depth) + size_t(d);
        dq[qRow + size_t(d)] += gradient * k[kAt];
        dk[kAt] += gradient * q[qRow + size_t(d)];
      }
  }
};

void expectNear(const char *what, const Values &got, const std::vector<double> &want) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 1e-3;
  for (double value : want)
    largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(double(got[i]), want[i], 4e-6 * largest) << what << " " << i;
}

void check(const Case &c) {
  SCOPED_TRACE(describe(c, "attention").ShortDebugString());
  const size_t queries = size_t(c.batch * c.heads * c.rows), keys = size_t(c.batch * c.keyHeads * c.columns);
  // Scores of a few units, whatever the depth: their rounding is that of the results.
  const double width = 6 / std::sqrt(double(c.depth));
  const Values q = random(queries * size_t(c.depth), 1, width), k = random(keys * size_t(c.depth), 2, width),
               v = random(keys * size_t(c.valueDepth), 3), gradO = random(queries * size_t(c.valueDepth), 4);
  size_t masked = 1;
  for (int64_t dim : c.mask)
    masked *= size_t(dim);
  const Values mask = random(masked, 5, 3);
  const Oracle oracle(c, q, k, v, mask, gradO);
  Values o(gradO.size(), NAN), lse(queries, NAN), dq(q.size(), NAN), dk(k.size(), NAN), dv(v.size(), NAN);
  std::vector<const Values *> forward = {&q, &k, &v}, backward = {&q, &k, &v, &o, &lse, &gradO};
  if (!c.mask.empty())
    forward.push_back(&mask), backward.push_back(&mask);
  run(describe(c, "attention"), forward, {&o, &lse});
  expectNear("o", o, oracle.o);
  expectNear("lse", lse, oracle.lse);
  run(describe(c, "attention_grad"), backward, {&dq, &dk, &dv});
  expectNear("dq", dq, oracle.dq);
  expectNear("dk", dk, oracle.dk);
  expectNear("dv", dv, oracle.dv);
}

/// Values as 16 bits hold them.
template <typename S> struct Stored {
  std::vector<S> bits;

  explicit Stored(size_t count) : bits(count) {
    kernels::narrowRun(bits.data(), Values(count, NAN).data(), ptrdiff_t(count));
  }
  explicit Stored(Values &values) : bits(values.size()) {
    kernels::narrowRun(bits.data(), values.data(), ptrdiff_t(bits.size()));
    values = wide();
  }
  Values wide() const {
    Values values(bits.size());
    kernels::widenRun(values.data(), bits.data(), ptrdiff_t(bits.size()));
    return values;
  }
};

/// 16-bit operands, of which the formulas get what is stored: `unit` of the largest number is what storing o and the
/// results may change.
template <typename S> void checkStored(const Case &c, const char *dtype, double unit, bool widensMask) {
  SCOPED_TRACE(describe(c, "attention", dtype).ShortDebugString());
  const size_t queries = size_t(c.batch * c.heads * c.rows), keys = size_t(c.batch * c.keyHeads * c.columns);
  const double width = 6 / std::sqrt(double(c.depth));
  Values q = random(queries * size_t(c.depth), 1, width), k = random(keys * size_t(c.depth), 2, width),
         v = random(keys * size_t(c.valueDepth), 3), gradO = random(queries * size_t(c.valueDepth), 4);
  size_t masked = 1;
  for (int64_t dim : c.mask)
    masked *= size_t(dim);
  Values mask = random(masked, 5, 3);
  const Stored<S> storedQ(q), storedK(k), storedV(v), storedGradO(gradO);
  const Values wideMask = mask;
  const Stored<S> storedMask(mask);
  if (widensMask)
    mask = wideMask;
  const Oracle oracle(c, q, k, v, mask, gradO);
  Stored<S> o(gradO.size()), dq(q.size()), dk(k.size()), dv(v.size());
  Values lse(queries, NAN);
  auto call = [&](const char *callee, std::vector<const void *> reads, std::vector<void *> writes) {
    plan::Call described = describe(c, callee, dtype);
    if (!c.mask.empty()) {
      reads.push_back(widensMask ? static_cast<const void *>(mask.data()) : storedMask.bits.data());
      if (widensMask)
        set(described, "mask_dtype", "f32");
    }
    ASSERT_TRUE(hasCpuKernel(described));
    std::vector<float> workspace(*queryWorkspace(described) / 4, NAN);
    EXPECT_EQ(workspace.size(), writes.size() == 3 ? (q.size() + 15) / 16 * 16 : 0);
    auto made = prepareCall(described, {reads, writes, workspace.data()});
    ASSERT_TRUE(made) << made.status().str();
    for (int64_t task = (*made)->tasks(0); task-- > 0;)
      (*made)->run(0, task);
  };
  auto expect = [&](const char *what, const Values &got, const std::vector<double> &want) {
    double largest = 1e-3;
    for (double value : want)
      largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(double(got[i]), want[i], unit * largest) << what << " " << i;
  };
  call("attention", {storedQ.bits.data(), storedK.bits.data(), storedV.bits.data()}, {o.bits.data(), lse.data()});
  expect("o", o.wide(), oracle.o);
  expectNear("lse", lse, oracle.lse);
  call("attention_grad",
       {storedQ.bits.data(), storedK.bits.data(), storedV.bits.data(), o.bits.data(), lse.data(),
        storedGradO.bits.data()},
       {dq.bits.data(), dk.bits.data(), dv.bits.data()});
  expect("dq", dq.wide(), oracle.dq);
  expect("dk", dk.wide(), oracle.dk);
  expect("dv", dv.wide(), oracle.dv);
}

TEST(Attention, TakesSixteenBits) {
  for (const Case &c : {Case{2, 3, 3, 7, 7, 8, 8, {}, false}, Case{1, 2, 2, 150, 150, 64, 64, {}, true},
                        Case{1, 4, 2, 130, 300, 17, 33, {}, false}, Case{1, 1, 1, 97, 49, 256, 256, {}, true},
                        Case{2, 3, 3, 50, 140, 16, 8, {2, 1, 50, 140}, false}})
    for (bool widensMask : {false, true}) {
      checkStored<kernels::BFloat16>(c, "bf16", 0x1p-7, widensMask);
      checkStored<kernels::Float16>(c, "f16", 0x1p-10, widensMask);
    }
}

TEST(Attention, AgreesWithItsFormulas) {
  check({2, 3, 3, 7, 7, 8, 8, {}, false});
  check({1, 1, 1, 1, 1, 1, 1, {}, false});
  check({1, 2, 2, 200, 300, 40, 24, {}, false});
  check({1, 2, 2, 150, 150, 64, 64, {}, true});
  check({2, 1, 1, 130, 129, 17, 33, {}, false});
  check({1, 1, 1, 97, 49, 256, 256, {}, true});
}

TEST(Attention, SharesKeyHeads) {
  check({2, 6, 2, 33, 33, 16, 16, {}, true});
  check({1, 4, 1, 20, 140, 8, 12, {}, false});
}

TEST(Attention, RowsThatSeeFewColumns) {
  check({1, 2, 2, 5, 300, 16, 16, {}, true});
  check({1, 2, 2, 300, 5, 16, 16, {}, true});
}

TEST(Attention, AddsMasksOfEveryForm) {
  for (std::vector<int64_t> mask :
       std::vector<std::vector<int64_t>>{{1, 1, 1, 1}, {2, 1, 1, 140}, {1, 3, 50, 140}, {2, 3, 50, 140}, {2, 1, 50, 1}})
    check({2, 3, 3, 50, 140, 16, 8, mask, false});
  check({2, 3, 3, 50, 140, 16, 8, {1, 3, 50, 140}, true});
}

/// Columns that a mask of −∞ hides give nothing, also where the first tile is hidden whole.
TEST(Attention, HidesColumns) {
  const Case c{1, 1, 1, 3, 300, 8, 8, {1, 1, 1, 300}, false};
  Case seen = c;
  seen.columns = 60, seen.mask = {};
  const Values q = random(24, 1), k = random(2400, 2), v = random(2400, 3), gradO = random(24, 4);
  Values mask(300, -INFINITY);
  std::fill(mask.begin() + 240, mask.end(), 0.0f);
  const Values kSeen(k.begin() + 1920, k.end()), vSeen(v.begin() + 1920, v.end());
  const Oracle oracle(seen, q, kSeen, vSeen, {}, gradO);
  Values o(24, NAN), lse(3, NAN), dq(24, NAN), dk(2400, NAN), dv(2400, NAN);
  run(describe(c, "attention"), {&q, &k, &v, &mask}, {&o, &lse});
  expectNear("o", o, oracle.o);
  run(describe(c, "attention_grad"), {&q, &k, &v, &o, &lse, &gradO, &mask}, {&dq, &dk, &dv});
  expectNear("dq", dq, oracle.dq);
  expectNear("dk", Values(dk.begin() + 1920, dk.end()), oracle.dk);
  EXPECT_EQ(Values(dk.begin(), dk.begin() + 1920), Values(1920, 0.0f));
  EXPECT_EQ(Values(dv.begin(), dv.begin() + 1920), Values(1920, 0.0f));
}

/// Heads side by side in each row, and the cotangents as parts of one result: what a projection to q, k and v gives.
TEST(Attention, ReadsAndWritesPartsOfRows) {
  const Case c{2, 2, 2, 9, 9, 8, 8, {}, false};
  const Values rows = random(size_t(2 * 9 * 48), 1, 2), gradO = random(size_t(2 * 9 * 16), 2);
  Values q(288), k(288), v(288), g(288);
  for (size_t b = 0; b < 2; ++b)
    for (size_t h = 0; h < 2; ++h)
      for (size_t t = 0; t < 9; ++t)
        for (size_t d = 0; d < 8; ++d) {
          const size_t packed = ((b * 2 + h) * 9 + t) * 8 + d, inRow = (b * 9 + t) * 48 + h * 8 + d;
          q[packed] = rows[inRow], k[packed] = rows[inRow + 16], v[packed] = rows[inRow + 32];
          g[packed] = gradO[(b * 9 + t) * 16 + h * 8 + d];
        }
  const Oracle oracle(c, q, k, v, {}, g);
  auto place = [](plan::Call &call, const char *name, int64_t offset, int64_t row) {
    set(call, name, std::vector<int64_t>{offset, 9 * row, 8, row, 1});
  };
  plan::Call forward = describe(c, "attention"), backward = describe(c, "attention_grad");
  for (plan::Call *call : {&forward, &backward})
    place(*call, "q_layout", 0, 48), place(*call, "k_layout", 16, 48), place(*call, "v_layout", 32, 48),
        place(*call, "o_layout", 0, 16);
  place(backward, "grad_o_layout", 0, 16), place(backward, "grad_q_layout", 0, 48);
  place(backward, "grad_k_layout", 16, 48), place(backward, "grad_v_layout", 32, 48), set(backward, "one_result", 1);
  Values o(288, NAN), lse(36, NAN), gradRows(rows.size(), NAN);
  run(forward, {&rows, &rows, &rows}, {&o, &lse});
  run(backward, {&rows, &rows, &rows, &o, &lse, &gradO}, {&gradRows});
  for (size_t b = 0; b < 2; ++b)
    for (size_t h = 0; h < 2; ++h)
      for (size_t t = 0; t < 9; ++t)
        for (size_t d = 0; d < 8; ++d) {
          const size_t packed = ((b * 2 + h) * 9 + t) * 8 + d, inRow = (b * 9 + t) * 48 + h * 8 + d;
          EXPECT_NEAR(o[(b * 9 + t) * 16 + h * 8 + d], oracle.o[packed], 1e-5);
          EXPECT_NEAR(gradRows[inRow], oracle.dq[packed], 1e-5);
          EXPECT_NEAR(gradRows[inRow + 16], oracle.dk[packed], 1e-5);
          EXPECT_NEAR(gradRows[inRow + 32], oracle.dv[packed], 1e-5);
        }
}

TEST(Attention, IsNotTakenWhereTilesDoNotFit) {
  EXPECT_FALSE(hasCpuKernel(describe({1, 1, 1, 4, 4, 257, 8, {}, false}, "attention")));
  EXPECT_FALSE(hasCpuKernel(describe({1, 1, 1, 4, 4, 8, 257, {}, false}, "attention_grad")));
  plan::Call apart = describe({1, 1, 1, 4, 4, 8, 8, {}, false}, "attention");
  set(apart, "q_layout", std::vector<int64_t>{0, 32, 32, 1, 4});
  EXPECT_FALSE(hasCpuKernel(apart));
  EXPECT_FALSE(hasCpuKernel(describe({1, 1, 1, 4, 4, 8, 8, {}, false}, "attention", "f64")));
  plan::Call wide = describe({1, 1, 1, 4, 4, 8, 8, {}, false}, "attention");
  wide.clear_attributes();
  EXPECT_FALSE(hasCpuKernel(wide));
}

/// Of two columns, at scores 0 and x, the second gives e^x / (1 + e^x), which has as many right digits as e^x.
TEST(Attention, TakesExponentialsToFourUnits) {
  const int64_t rows = 17000;
  const Case c{1, 1, 1, rows, 2, 1, 1, {1, 1, rows, 2}, false};
  const Values zeros(size_t(rows), 0.0f), v = { 0, 1 };
  Values mask(size_t(2 * rows), 0.0f), o(size_t(rows), NAN), lse(size_t(rows), NAN);
  for (int64_t i = 0; i < rows; ++i)
    mask[size_t(2 * i + 1)] = -0.0051361f * float(i);
  run(describe(c, "attention"), {&zeros, &zeros, &v, &mask}, {&o, &lse});
  for (size_t i = 0; i < o.size(); ++i) {
    const double e = std::exp(double(mask[2 * i + 1]));
    ASSERT_NEAR(o[i] / (e / (1 + e)), 1, 4 * 5.97e-8) << mask[2 * i + 1];
  }
}

} // namespace
