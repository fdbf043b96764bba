//===- NarrowGemm.cpp - matrix products of 16-bit operands -----------------===//
//
// The register tile of Tile.h is fed with f32: A is widened as it is stored, B while it is packed. Sums stay in an f32
// block on the stack over all of k and are rounded once, when they are written:
//
//   for each block of rows × columns (a task):
//     for each block of k:  widen A, pack B as f32;  block += A · B, tile by tile
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
      packRight(right, b, n0, n1, k0, k);
      // As A is stored: its lines are widened, and read where they then lie.
      if (shape_.transposeA) {
        for (int64_t p = 0; p < k; ++p)
          widenRun(left + p * maxRows, a + (k0 + p) * shape_.lda + m0, m1 - m0);
        addBlock<Left::Columns>(sums, m1 - m0, n1 - n0, k, left, maxRows, right, k0 == 0);
      } else {
        for (int64_t m = m0; m < m1; ++m)
          widenRun(left + (m - m0) * depth, a + m * shape_.lda + k0, k);
        addBlock<Left::Rows>(sums, m1 - m0, n1 - n0, k, left, depth, right, k0 == 0);
      }
    }
    for (int64_t m = m0; m < m1; ++m)
      finish(sums + (m - m0) * maxColumns, m, n0, n1, c, d + m * shape_.ldd + n0);
  }

  template <Left storage>
  static void addBlock(float *sums, int64_t rows, int64_t columns, int64_t k, const float *left, int64_t stride,
                       const float *right, bool isFirst) {
    for (int64_t n = 0; n < columns; n += panel<float>)
      for (int64_t m = 0; m < rows; m += tileRows) {
        float *to = sums + m * maxColumns + n;
        Epilogue<float> epilogue;
        if (!isFirst)
          epilogue.source = to, epilogue.sourceRow = maxColumns;
        tile<float, storage>(std::min(tileRows, rows - m), std::min(panel<float>, columns - n), k,
                             left + m * (storage == Left::Columns ? 1 : stride), stride, right + n * k, to, maxColumns,
                             epilogue);
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
        const S *from = b + (k0 + p) * shape_.ldb + n;
        if (columns == panel<float>) {
          widenRun(row, from, panel<float>); // a constant count: no loop
          continue;
        }
        widenRun(row, from, columns);
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
