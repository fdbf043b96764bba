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

#include "runtime/CallShape.h"
#include "runtime/kernels/Narrow.h"
#include "runtime/kernels/PreparedCall.h"
#include "runtime/kernels/Tile.h"

namespace lowtide::rt {
namespace {

using namespace kernels;

constexpr int64_t maxRows = 96, maxColumns = 128, depth = 256;
/// Multiply-adds that are worth a task of their own.
constexpr int64_t taskWork = 512 * 1024;

int64_t balanced(int64_t total, int64_t limit, int64_t unit) {
  return ceilDiv(ceilDiv(total, ceilDiv(total, limit)), unit) * unit;
}

/// S: type of A and B in memory; R: type of addend and D.
template <typename S, typename R> class NarrowGemm final : public PreparedCall {
public:
  NarrowGemm(const GemmShape &shape, const CallOperands &operands) : shape_(shape) {
    a_ = static_cast<const S *>(operands.reads[0]);
    b_ = static_cast<const S *>(operands.reads[1]);
    c_ = operands.reads.size() > 2 ? static_cast<const R *>(operands.reads[2]) : nullptr;
    d_ = static_cast<R *>(operands.writes[0]);
    batch_ = shape_.batchCount();
    rows_ = balanced(shape_.m, maxRows, tileRows);
    columns_ = balanced(shape_.n, maxColumns, panel<float>);
    int64_t work = shape_.m * shape_.n * shape_.k;
    if (work <= taskWork && rows_ >= shape_.m && columns_ >= shape_.n)
      perGroup_ = std::clamp<int64_t>(taskWork / work, 1, ceilDiv(batch_, 8));
    auto count = [&] { return batch_ * ceilDiv(shape_.m, rows_) * ceilDiv(shape_.n, columns_); };
    while (count() < 16 && std::min(rows_, shape_.m) * columns_ * shape_.k > taskWork && columns_ > 2 * panel<float>)
      columns_ = balanced(columns_, ceilDiv(columns_, 2), panel<float>);
    groups_ = ceilDiv(batch_, perGroup_);
    blocksM_ = ceilDiv(shape_.m, rows_), blocksN_ = ceilDiv(shape_.n, columns_);
  }

  int64_t tasks(int) const override { return groups_ * blocksM_ * blocksN_; }

  void run(int, int64_t task) const noexcept override {
    int64_t blockN = task % blocksN_, blockM = task / blocksN_ % blocksM_, group = task / (blocksN_ * blocksM_);
    int64_t m0 = blockM * rows_, m1 = std::min(shape_.m, m0 + rows_);
    int64_t n0 = blockN * columns_, n1 = std::min(shape_.n, n0 + columns_);
    int64_t last = std::min(batch_, (group + 1) * perGroup_);
    for (int64_t index = group * perGroup_; index < last; ++index)
      block(index, m0, m1, n0, n1);
  }

private:
  void block(int64_t index, int64_t m0, int64_t m1, int64_t n0, int64_t n1) const {
    const S *a = a_, *b = b_;
    const R *c = c_;
    R *d = d_;
    for (size_t i = shape_.batch.size(); i-- > 0;) {
      const GemmShape::BatchDim &dim = shape_.batch[i];
      int64_t at = index % dim.extent;
      index /= dim.extent;
      a += at * dim.strideA, b += at * dim.strideB, d += at * dim.strideD;
      if (c && shape_.addend != GemmShape::Addend::None)
        c += at * dim.strideC;
    }
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
          tile<float, true>(std::min(tileRows, m1 - m), std::min(panel<float>, n1 - n), k, left + (m - m0) * k, 0,
                            right + (n - n0) * k, to, maxColumns, epilogue);
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
  const S *a_, *b_;
  const R *c_;
  R *d_;
  int64_t batch_ = 1, perGroup_ = 1, groups_ = 1;
  int64_t rows_ = 0, columns_ = 0, blocksM_ = 1, blocksN_ = 1;
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
