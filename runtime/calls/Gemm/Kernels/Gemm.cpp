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

#include "runtime/calls/Gemm/GemmCut.h"
#include "runtime/kernels/PreparedCall.h"

namespace lowtide::rt {
namespace {

using namespace kernels;

/// Columns of a task at most, rows packed at once.
constexpr int64_t maxColumns = 256, packedRows = 96;

template <typename T> class Gemm final : public PreparedCall {
public:
  Gemm(const GemmShape &shape, const CallOperands &operands)
      : shape_(shape), operands_(operands), depth_(ceilDiv(shape.k, ceilDiv(shape.k, blockK<T>))) {
    cut();
  }
  int64_t tasks(int) const override { return cut_.tasks(); }
  void run(int, int64_t task) const noexcept override {
    cut_.run(shape_, task, [&](int64_t index, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
      block(operands_.at(shape_, index), m0, m1, n0, n1);
    });
  }

private:
  void cut() {
    cut_.rows = shape_.m, cut_.columns = GemmCut::balanced(shape_.n, maxColumns, panel<T>);
    if (shape_.batchCount() >= 8 && GemmCut::work(shape_) <= GemmCut::taskWork && shape_.n <= maxColumns) {
      cut_.group(shape_);
    } else {
      cut_.rows = GemmCut::balanced(shape_.m, 192, tileRows);
      while (cut_.isCoarse(shape_)) {
        // Blocks of columns pack their own part of B; blocks of rows would each pack all of it.
        if (cut_.columns > 2 * panel<T>)
          cut_.columns = GemmCut::balanced(cut_.columns, ceilDiv(cut_.columns, 2), panel<T>);
        else if (cut_.rows > 2 * tileRows)
          cut_.rows = GemmCut::balanced(cut_.rows, ceilDiv(cut_.rows, 2), tileRows);
        else
          break;
      }
    }
    cut_.settle(shape_);
  }

  void block(GemmOperands<T, T> product, int64_t m0, int64_t m1, int64_t n0, int64_t n1) const {
    auto [a, b, c, d] = product;
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
  GemmOperands<T, T> operands_;
  GemmCut cut_;
  int64_t depth_;
};

} // namespace

std::unique_ptr<PreparedCall> prepareGemm(const GemmShape &shape, const CallOperands &operands) {
  if (shape.dtype == plan::F64)
    return std::make_unique<Gemm<double>>(shape, operands);
  return std::make_unique<Gemm<float>>(shape, operands);
}

} // namespace lowtide::rt
