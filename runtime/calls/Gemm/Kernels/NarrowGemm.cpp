//===- NarrowGemm.cpp - matrix products of 16-bit operands -----------------===//
//
// The register tile of Tile.h is fed with f32: both operands are widened while they are packed. Sums stay in an f32
// block on the stack over all of k and are rounded once, when they are written:
//
//   for each block of rows × columns (a task):
//     for each block of k:  pack A and B as f32;  block += A · B, tile by tile
//     D = alpha · block (+ addend), rounded to D's type
//
// Nothing but the shape decides in which order anything is added.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Gemm/GemmCut.h"
#include "runtime/kernels/Narrow.h"
#include "runtime/kernels/Panel.h"
#include "runtime/kernels/PreparedCall.h"

namespace lowtide::rt {
namespace {

using namespace kernels;

constexpr int64_t maxRows = 96, maxColumns = 128, depth = 256;

/// S: type of A and B in memory; R: type of addend and D.
template <typename S, typename R> class NarrowGemm final : public PreparedCall {
public:
  NarrowGemm(const GemmShape &shape, const CallOperands &operands) : shape_(shape), operands_(operands) {
    cut_.rows = GemmCut::balanced(shape_.m, maxRows, tileRows);
    cut_.columns = GemmCut::balanced(shape_.n, maxColumns, panel<float>);
    if (GemmCut::work(shape_) <= GemmCut::taskWork && cut_.rows >= shape_.m && cut_.columns >= shape_.n)
      cut_.group(shape_);
    while (cut_.isCoarse(shape_) && cut_.columns > 2 * panel<float>)
      cut_.columns = GemmCut::balanced(cut_.columns, ceilDiv(cut_.columns, 2), panel<float>);
    cut_.settle(shape_);
  }

  int64_t tasks(int) const override { return cut_.tasks(); }

  void run(int, int64_t task) const noexcept override {
    cut_.run(shape_, task, [&](int64_t index, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
      block(operands_.at(shape_, index), m0, m1, n0, n1);
    });
  }

private:
  void block(GemmOperands<S, R> product, int64_t m0, int64_t m1, int64_t n0, int64_t n1) const {
    auto [a, b, c, d] = product;
    alignas(64) float sums[maxRows * maxColumns];
    alignas(64) float left[maxRows * depth];
    alignas(64) float right[depth * maxColumns];
    for (int64_t k0 = 0; k0 < shape_.k; k0 += depth) {
      int64_t k = std::min(depth, shape_.k - k0);
      packLeft(left, a, m0, m1, k0, k);
      packRight(right, b, n0, n1, k0, k);
      for (int64_t n = n0; n < n1; n += panel<float>)
        for (int64_t m = m0; m < m1; m += tileRows) {
          float *to = sums + (m - m0) * maxColumns + (n - n0);
          Epilogue<float> epilogue;
          if (k0 != 0)
            epilogue.source = to, epilogue.sourceRow = maxColumns;
          tile<float, Left::Columns>(std::min(tileRows, m1 - m), std::min(panel<float>, n1 - n), k, left + (m - m0) * k,
                                     tileRows, right + (n - n0) * k, to, maxColumns, epilogue);
        }
    }
    for (int64_t m = m0; m < m1; ++m)
      finish(sums + (m - m0) * maxColumns, m, n0, n1, c, d + m * shape_.ldd + n0);
  }

  /// Panels of six rows, side by side for each k; missing rows are zero.
  void packLeft(float *to, const S *a, int64_t m0, int64_t m1, int64_t k0, int64_t k) const {
    alignas(64) float line[depth > maxRows ? depth : maxRows];
    int64_t count = m1 - m0;
    if (shape_.transposeA) {
      for (int64_t p = 0; p < k; ++p) {
        widenRun(line, a + (k0 + p) * shape_.lda + m0, count);
        for (int64_t i = 0; i < count; i += tileRows)
          for (int64_t x = 0; x < tileRows; ++x)
            to[i * k + p * tileRows + x] = i + x < count ? line[i + x] : 0.0f;
      }
      return;
    }
    for (int64_t i = 0; i < ceilDiv(count, tileRows) * tileRows; ++i) {
      float *column = to + i / tileRows * tileRows * k + i % tileRows;
      if (i < count)
        widenRun(line, a + (m0 + i) * shape_.lda + k0, k);
      for (int64_t p = 0; p < k; ++p)
        column[p * tileRows] = i < count ? line[p] : 0.0f;
    }
  }

  void packRight(float *to, const S *b, int64_t n0, int64_t n1, int64_t k0, int64_t k) const {
    alignas(64) float lines[panel<float> * depth];
    for (int64_t n = n0; n < n1; n += panel<float>, to += panel<float> * k) {
      int64_t columns = std::min(panel<float>, n1 - n);
      if (shape_.transposeB) {
        for (int64_t j = 0; j < columns; ++j)
          widenRun(lines + j * depth, b + (n + j) * shape_.ldb + k0, k);
        packPanelTransposed(to, lines, depth, k, columns);
        continue;
      }
      for (int64_t p = 0; p < k; ++p) {
        float *row = to + p * panel<float>;
        widenRun(row, b + (k0 + p) * shape_.ldb + n, columns);
        for (int64_t j = columns; j < panel<float>; ++j)
          row[j] = 0.0f;
      }
    }
  }

  void finish(const float *sums, int64_t m, int64_t n0, int64_t n1, const R *c, R *to) const {
    float alpha = static_cast<float>(shape_.alpha);
    const R *addend = nullptr;
    float bias = 0.0f;
    if (shape_.accumulate)
      addend = to;
    else if (c && shape_.addend == GemmShape::Addend::Full)
      addend = c + m * shape_.ldc + n0;
    else if (c && shape_.addend == GemmShape::Addend::Row)
      addend = c + n0;
    else if (c && shape_.addend == GemmShape::Addend::Column)
      bias = widen(c[m]);
    int64_t count = n1 - n0;
    if (!addend && bias == 0.0f && alpha == 1.0f)
      return narrowRun(to, sums, count);
    for (int64_t j = 0; j < count; ++j)
      narrow(alpha * sums[j] + bias + (addend ? widen(addend[j]) : 0.0f), to[j]);
  }

  GemmShape shape_;
  GemmOperands<S, R> operands_;
  GemmCut cut_;
};

template <typename S> std::unique_ptr<PreparedCall> prepare(const GemmShape &shape, const CallOperands &operands) {
  if (shape.resultDtype == plan::F32)
    return std::make_unique<NarrowGemm<S, float>>(shape, operands);
  return std::make_unique<NarrowGemm<S, S>>(shape, operands);
}

} // namespace

std::unique_ptr<PreparedCall> prepareNarrowGemm(const GemmShape &shape, const CallOperands &operands) {
  return shape.dtype == plan::BF16 ? prepare<BFloat16>(shape, operands) : prepare<Float16>(shape, operands);
}

} // namespace lowtide::rt
