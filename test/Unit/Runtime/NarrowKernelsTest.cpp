//===- NarrowKernelsTest.cpp - 16-bit library calls beside f64 -------------===//
//
// The same call in f64, on the widened operands, is the oracle: f32 sums are near it, stored results are its rounding
// or a neighbour.
//
//===----------------------------------------------------------------------===//

#include "Plans.h"
#include "runtime/Element.h"
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

const char *nameOf(plan::DType dtype) {
  return dtype == plan::BF16 ? "bf16" : dtype == plan::F16 ? "f16" : dtype == plan::F32 ? "f32" : "f64";
}
size_t sizeOf(plan::DType dtype) { return dtype == plan::F64 ? 8 : dtype == plan::F32 ? 4 : 2; }

/// Numbers as a call reads them.
struct Array {
  plan::DType dtype;
  std::vector<uint8_t> bytes;

  Array(plan::DType dtype, size_t count) : dtype(dtype), bytes(count * sizeOf(dtype), 0xFF) {}
  size_t size() const { return bytes.size() / sizeOf(dtype); }
  double operator[](size_t i) const { return loadElement(dtype, bytes.data() + i * sizeOf(dtype)); }
  void set(size_t i, double value) { storeElement(dtype, bytes.data() + i * sizeOf(dtype), value); }
  Array as(plan::DType other) const {
    Array result(other, size());
    for (size_t i = 0; i < size(); ++i)
      result.set(i, (*this)[i]);
    return result;
  }
};

Array random(plan::DType dtype, size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Array values(dtype, count);
  for (size_t i = 0; i < count; ++i)
    values.set(i, uniform(generator));
  return values;
}

/// Runs all tasks, last one first: their order must not matter.
void run(const plan::Call &call, const std::vector<const Array *> &reads, Array &write) {
  Expected<uint64_t> bytes = queryWorkspace(call);
  ASSERT_TRUE(bytes) << bytes.status().str();
  void *memory = *bytes ? std::aligned_alloc(64, *bytes) : nullptr;
  if (memory)
    std::memset(memory, 0xFF, *bytes); // NaN
  std::vector<const void *> from;
  for (const Array *read : reads)
    from.push_back(read->bytes.data());
  std::vector<void *> to = {write.bytes.data()};
  auto prepared = prepareCall(call, {from, to, memory});
  ASSERT_TRUE(prepared) << prepared.status().str();
  for (int phase = 0; phase < (*prepared)->phases(); ++phase)
    for (int64_t task = (*prepared)->tasks(phase); task-- > 0;)
      (*prepared)->run(phase, task);
  std::free(memory);
}

/// `call` lacks its types only.
void check(const plan::Call &call, plan::DType dtype, plan::DType resultDtype, const Array &a, const Array &b,
           const Array *c, size_t count, double terms) {
  SCOPED_TRACE(std::string(nameOf(dtype)) + " to " + nameOf(resultDtype));
  plan::Call narrow = call, exact = call;
  set(narrow, "dtype", nameOf(dtype));
  if (resultDtype != dtype)
    set(narrow, "result_dtype", nameOf(resultDtype));
  set(exact, "dtype", "f64");
  Array got(resultDtype, count), want(plan::F64, count);
  Array wideA = a.as(plan::F64), wideB = b.as(plan::F64), wideC = c ? c->as(plan::F64) : want;
  std::vector<const Array *> reads = {&a, &b}, wideReads = {&wideA, &wideB};
  if (c)
    reads.push_back(c), wideReads.push_back(&wideC);
  run(narrow, reads, got);
  run(exact, wideReads, want);
  double unit = resultDtype == plan::F32 ? 0 : resultDtype == plan::BF16 ? 0x1p-8 : 0x1p-11;
  for (size_t i = 0; i < count; ++i) {
    double bound = 8 * 6e-8 * (terms + 8) + unit * std::fabs(want[i]);
    ASSERT_NEAR(got[i], want[i], bound) << "element " << i;
  }
}

constexpr plan::DType types[][2] = {
    {plan::BF16, plan::BF16}, {plan::BF16, plan::F32}, {plan::F16, plan::F16}, {plan::F16, plan::F32}};

TEST(NarrowGemm, MatchesF64) {
  const int64_t shapes[][3] = {{1, 1, 1},   {6, 16, 8},    {7, 17, 9},     {13, 31, 300}, {100, 1, 50},
                               {1, 100, 5}, {97, 270, 65}, {33, 130, 257}, {3, 24, 700}};
  for (auto [dtype, resultDtype] : types)
    for (auto [m, n, k] : shapes)
      for (int t = 0; t < 4; ++t) {
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " + std::to_string(t));
        plan::Call call;
        call.set_callee("gemm");
        set(call, "m", m), set(call, "n", n), set(call, "k", k);
        set(call, "transpose_a", t & 1), set(call, "transpose_b", t >> 1);
        check(call, dtype, resultDtype, random(dtype, size_t(m * k), 1), random(dtype, size_t(k * n), 2), nullptr,
              size_t(m * n), double(k));
      }
}

TEST(NarrowGemm, AddsAddend) {
  const int64_t m = 19, n = 37, k = 300;
  for (auto [dtype, resultDtype] : types)
    for (const char *addend : {"full", "row", "column"}) {
      plan::Call call;
      call.set_callee("gemm");
      set(call, "m", m), set(call, "n", n), set(call, "k", k), set(call, "alpha", 0.5), set(call, "addend", addend);
      for (int i = 0; i < 3; ++i)
        call.add_reads();
      Array c = random(resultDtype, size_t(m * n), 3);
      check(call, dtype, resultDtype, random(dtype, size_t(m * k), 1), random(dtype, size_t(k * n), 2), &c,
            size_t(m * n), double(k));
    }
}

TEST(NarrowGemm, Batches) {
  const int64_t batch = 11, m = 9, n = 20, k = 12;
  for (auto [dtype, resultDtype] : types) {
    plan::Call call;
    call.set_callee("gemm");
    set(call, "m", m), set(call, "n", n), set(call, "k", k), set(call, "batch", batch);
    set(call, "batch_stride_a", m * k), set(call, "batch_stride_b", k * n), set(call, "batch_stride_d", m * n);
    check(call, dtype, resultDtype, random(dtype, size_t(batch * m * k), 1), random(dtype, size_t(batch * k * n), 2),
          nullptr, size_t(batch * m * n), double(k));
  }
}

TEST(NarrowConv, MatchesF64) {
  using Ints = std::vector<int64_t>;
  struct Case {
    Ints input, filter, output, strides, pads;
    int64_t groups;
  };
  const Case cases[] = {{{5, 4, 9, 11}, {6, 4, 3, 3}, {5, 6, 9, 11}, {1, 1}, {1, 1}, 1},
                        {{3, 4, 8, 8}, {8, 2, 3, 3}, {3, 8, 4, 4}, {2, 2}, {1, 1}, 2},
                        {{40, 8, 32, 32}, {8, 8, 1, 1}, {40, 8, 32, 32}, {1, 1}, {0, 0}, 1}};
  auto count = [](const Ints &shape) {
    size_t product = 1;
    for (int64_t extent : shape)
      product *= size_t(extent);
    return product;
  };
  for (auto [dtype, resultDtype] : types)
    for (const Case &c : cases)
      for (const char *callee : {"conv", "conv_input_grad", "conv_filter_grad"}) {
        SCOPED_TRACE(callee);
        plan::Call call;
        call.set_callee(callee);
        set(call, "input", c.input), set(call, "filter", c.filter), set(call, "output", c.output);
        set(call, "strides", c.strides), set(call, "pads_begin", c.pads), set(call, "pads_end", c.pads);
        set(call, "groups", c.groups);
        std::string kind = callee;
        const Ints &first = kind == "conv_input_grad" ? c.output : c.input;
        const Ints &second = kind == "conv_filter_grad" ? c.output : c.filter;
        const Ints &result = kind == "conv" ? c.output : kind == "conv_input_grad" ? c.input : c.filter;
        double terms = kind == "conv_filter_grad" ? double(c.output[0] * c.output[2] * c.output[3]) : 72;
        check(call, dtype, resultDtype, random(dtype, count(first), 1), random(dtype, count(second), 2), nullptr,
              count(result), terms);
      }
}

TEST(NarrowGemm, RefusesOtherResults) {
  plan::Call call;
  call.set_callee("gemm");
  set(call, "m", 1), set(call, "n", 1), set(call, "k", 1);
  set(call, "dtype", "bf16"), set(call, "result_dtype", "f16");
  EXPECT_FALSE(readGemm(call));
}

} // namespace
