//===- Gemm.cpp - matrix products on packed panels -------------------------===//
//
// The result is cut into blocks of rows × columns (small products of a batch are grouped instead); each block is one
// task:
//
//   for each block of k:  pack the columns of B into panels on the stack
//                         (A stored k × m: pack its rows too)
//     for each panel, for each six rows: accumulate a register tile, add it to D
//
// After Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), with all buffers on the
// stack: a task needs no workspace, and nothing but the shape decides in which order anything is added.
//
//===----------------------------------------------------------------------===//

#include "runtime/CallShape.h"
#include "runtime/kernels/PreparedCall.h"
#include "runtime/kernels/Tile.h"

namespace lowtide::rt {
namespace {

using namespace kernels;

/// Columns of a task at most, rows packed at once.
constexpr int64_t maxColumns = 256, packedRows = 96;
/// Multiply-adds that are worth a task of their own: about ten microseconds.
constexpr int64_t taskWork = 512 * 1024;

int64_t balanced(int64_t total, int64_t limit, int64_t unit) {
  return ceilDiv(ceilDiv(total, ceilDiv(total, limit)), unit) * unit;
}

template <typename T> class Gemm final : public PreparedCall {
public:
  Gemm(const GemmShape &shape, const CallOperands &operands) : shape_(shape) {
    a_ = static_cast<const T *>(operands.reads[0]);
    b_ = static_cast<const T *>(operands.reads[1]);
    c_ = operands.reads.size() > 2 ? static_cast<const T *>(operands.reads[2]) : nullptr;
    d_ = static_cast<T *>(operands.writes[0]);
    cut();
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
  void cut() {
    batch_ = shape_.batchCount();
    int64_t work = shape_.m * shape_.n * shape_.k;
    rows_ = shape_.m, columns_ = balanced(shape_.n, maxColumns, panel<T>);
    if (batch_ >= 8 && work <= taskWork && shape_.n <= maxColumns) {
      perGroup_ = std::clamp<int64_t>(taskWork / work, 1, ceilDiv(batch_, 8));
    } else {
      rows_ = balanced(shape_.m, 192, tileRows);
      auto count = [&] { return batch_ * ceilDiv(shape_.m, rows_) * ceilDiv(shape_.n, columns_); };
      while (count() < 16 && std::min(rows_, shape_.m) * columns_ * shape_.k > taskWork) {
        // Blocks of columns pack their own part of B; blocks of rows would each pack all of it.
        if (columns_ > 2 * panel<T>)
          columns_ = balanced(columns_, ceilDiv(columns_, 2), panel<T>);
        else if (rows_ > 2 * tileRows)
          rows_ = balanced(rows_, ceilDiv(rows_, 2), tileRows);
        else
          break;
      }
    }
    groups_ = ceilDiv(batch_, perGroup_);
    blocksM_ = ceilDiv(shape_.m, rows_);
    blocksN_ = ceilDiv(shape_.n, columns_);
    depth_ = ceilDiv(shape_.k, ceilDiv(shape_.k, blockK<T>));
  }

  void block(int64_t index, int64_t m0, int64_t m1, int64_t n0, int64_t n1) const {
    const T *a = a_, *b = b_, *c = c_;
    T *d = d_;
    for (size_t i = shape_.batch.size(); i-- > 0;) {
      const GemmShape::BatchDim &dim = shape_.batch[i];
      int64_t at = index % dim.extent;
      index /= dim.extent;
      a += at * dim.strideA, b += at * dim.strideB, d += at * dim.strideD;
      if (shape_.addend != GemmShape::Addend::None)
        c += at * dim.strideC;
    }
    alignas(64) T panels[blockK<T> * maxColumns];
    alignas(64) T rowPanels[packedRows * blockK<T>];
    for (int64_t k0 = 0; k0 < shape_.k; k0 += depth_) {
      int64_t k = std::min(depth_, shape_.k - k0);
      for (int64_t n = n0; n < n1; n += panel<T>) {
        T *to = panels + (n - n0) * k;
        int64_t columns = std::min(panel<T>, n1 - n);
        if (shape_.transposeB)
          packPanelTransposed(to, b + n * shape_.ldb + k0, shape_.ldb, k, columns);
        else
          packPanel(to, b + k0 * shape_.ldb + n, shape_.ldb, k, columns);
      }
      if (!shape_.transposeA) {
        rows<false>(m0, m1, n0, n1, k, k0 == 0, a + m0 * shape_.lda + k0, shape_.lda, panels, c, d);
        continue;
      }
      for (int64_t m = m0; m < m1; m += packedRows) {
        int64_t end = std::min(m1, m + packedRows);
        packRows(rowPanels, a + k0 * shape_.lda + m, k, end - m);
        rows<true>(m, end, n0, n1, k, k0 == 0, rowPanels, tileRows * k, panels, c, d);
      }
    }
  }

  /// A stored k × m: panels of six rows, side by side for each k.
  void packRows(T *to, const T *from, int64_t k, int64_t count) const {
    for (int64_t i = 0; i < count; i += tileRows, to += tileRows * k) {
      int64_t width = std::min(tileRows, count - i);
      if (width == tileRows) {
        for (int64_t p = 0; p < k; ++p)
          std::memcpy(to + p * tileRows, from + p * shape_.lda + i, tileRows * sizeof(T));
        continue;
      }
      for (int64_t p = 0; p < k; ++p)
        for (int64_t x = 0; x < tileRows; ++x)
          to[p * tileRows + x] = x < width ? from[p * shape_.lda + i + x] : T(0);
    }
  }

  /// `a`: first row of the block; packed: `stride` elements from one panel of six rows to the next, else between rows.
  template <bool packedA>
  void rows(int64_t m0, int64_t m1, int64_t n0, int64_t n1, int64_t k, bool first, const T *a, int64_t stride,
            const T *panels, const T *c, T *d) const {
    for (int64_t n = n0; n < n1; n += panel<T>) {
      const T *b = panels + (n - n0) * k;
      int64_t columns = std::min(panel<T>, n1 - n);
      for (int64_t m = m0; m < m1; m += tileRows) {
        T *to = d + m * shape_.ldd + n;
        Epilogue<T> epilogue;
        epilogue.alpha = static_cast<T>(shape_.alpha);
        if (!first) {
          epilogue.source = to, epilogue.sourceRow = shape_.ldd;
        } else if (shape_.addend == GemmShape::Addend::Full) {
          epilogue.source = c + m * shape_.ldc + n, epilogue.sourceRow = shape_.ldc;
        } else if (shape_.addend == GemmShape::Addend::Row) {
          epilogue.source = c + n;
        } else if (shape_.addend == GemmShape::Addend::Column) {
          epilogue.rowBias = c + m;
        }
        const T *left = packedA ? a + (m - m0) / tileRows * stride : a + (m - m0) * stride;
        tile<T, packedA>(std::min(tileRows, m1 - m), columns, k, left, stride, b, to, shape_.ldd, epilogue);
      }
    }
  }

  GemmShape shape_;
  const T *a_, *b_, *c_;
  T *d_;
  int64_t batch_ = 1, perGroup_ = 1, groups_ = 1;
  int64_t rows_ = 0, columns_ = 0, blocksM_ = 1, blocksN_ = 1, depth_ = 0;
};

} // namespace

std::unique_ptr<PreparedCall> prepareGemm(const GemmShape &shape, const CallOperands &operands) {
  if (shape.dtype == plan::F64)
    return std::make_unique<Gemm<double>>(shape, operands);
  return std::make_unique<Gemm<float>>(shape, operands);
}

} // namespace lowtide::rt
