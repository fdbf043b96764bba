//===- Gemm.cpp - matrix products on packed panels -------------------------===//
//
// The result is cut into blocks of rows × columns (small products of a batch are grouped instead); each block is one
// task:
//
//   for each block of k:  pack the columns of B into panels on the stack
//                         (A stored k × m, many columns: copy rows of A side by side, too)
//     for each panel, for each six rows: accumulate a register tile, add it to D
//
// After Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), with all buffers on the
// stack: a task needs no workspace, and nothing but the shape decides in which order anything is added.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Gemm/GemmCut.h"
#include "runtime/kernels/Panel.h"
#include "runtime/kernels/PreparedCall.h"
#include "runtime/kernels/WideTile.h"

namespace lowtide::rt {
namespace {

using namespace kernels;

/// Columns of a task at most.
constexpr int64_t maxColumns = 256;
/// Elements of B that are packed before the next rows.
constexpr int64_t elementsAtOnce = 2048;
/// Rows of A that are copied at once where it is stored k × m: a line of A is far from the next one, and where that is
/// a multiple of 4 KiB all of them compete for a few places of the cache. Fewer columns than these do not repay it.
constexpr int64_t stripRows = 96, leastColumnsOfStrip = 64;

/// Register tiles of one width of vectors: their rows, the columns of their panels, and what accumulates one.
template <typename T> struct NarrowTiles {
  static constexpr int64_t rows = tileRows, panel = kernels::panel<T>;
  template <Left left, typename... Arguments> static void run(Arguments... arguments) { tile<T, left>(arguments...); }
};
template <typename T> struct WideTiles {
  static constexpr int64_t rows = wideTileRows, panel = wideTileColumns * sizeof(float) / sizeof(T);
  template <Left left, typename... Arguments> static void run(Arguments... arguments) { wideTile(left, arguments...); }
};

template <typename T, typename Tiles> class Gemm final : public PreparedCall {
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
  static constexpr int64_t panel = Tiles::panel;

  void cut() {
    cut_.rows = shape_.m, cut_.columns = GemmCut::balanced(shape_.n, maxColumns, panel);
    if (shape_.batchCount() >= 8 && GemmCut::work(shape_) <= GemmCut::taskWork && shape_.n <= maxColumns) {
      cut_.group(shape_);
    } else {
      cut_.rows = GemmCut::balanced(shape_.m, 192, Tiles::rows);
      while (cut_.isCoarse(shape_)) {
        // Blocks of columns pack their own part of B; blocks of rows would each pack all of it.
        if (cut_.columns > panel)
          cut_.columns = GemmCut::balanced(cut_.columns, ceilDiv(cut_.columns, 2), panel);
        else if (cut_.rows > 2 * Tiles::rows)
          cut_.rows = GemmCut::balanced(cut_.rows, ceilDiv(cut_.rows, 2), Tiles::rows);
        else
          break;
      }
    }
    cut_.settle(shape_);
  }

  void block(GemmOperands<T, T> product, int64_t m0, int64_t m1, int64_t n0, int64_t n1) const {
    auto [a, b, c, d] = product;
    alignas(64) T panels[blockK<T> * maxColumns];
    alignas(64) T strip[blockK<T> * stripRows];
    for (int64_t k0 = 0; k0 < shape_.k; k0 += depth_) {
      int64_t k = std::min(depth_, shape_.k - k0);
      packRight(panels, b, n0, n1, k0, k);
      if (!shape_.transposeA) {
        rows<Left::Rows>(m0, m1, n0, n1, k, k0 == 0, a + m0 * shape_.lda + k0, shape_.lda, panels, c, d);
        continue;
      }
      if (n1 - n0 < leastColumnsOfStrip) {
        rows<Left::Columns>(m0, m1, n0, n1, k, k0 == 0, a + k0 * shape_.lda + m0, shape_.lda, panels, c, d);
        continue;
      }
      for (int64_t m = m0; m < m1; m += stripRows) {
        const int64_t end = std::min(m1, m + stripRows);
        for (int64_t p = 0; p < k; ++p)
          std::memcpy(strip + p * stripRows, a + (k0 + p) * shape_.lda + m, static_cast<size_t>(end - m) * sizeof(T));
        rows<Left::Columns>(m, end, n0, n1, k, k0 == 0, strip, stripRows, panels, c, d);
      }
    }
  }

  /// Columns [n0, n1) of B in panels, rows [k0, k0 + k). What lies in rows is copied a few rows at a time, for lines of
  /// one row follow each other in memory, and those of one panel do not.
  void packRight(T *panels, const T *b, int64_t n0, int64_t n1, int64_t k0, int64_t k) const {
    const int64_t rowsAtOnce = std::max<int64_t>(1, elementsAtOnce / (n1 - n0));
    if (shape_.transposeB) {
      for (int64_t n = n0; n < n1; n += panel)
        packPanelTransposed<T, panel>(panels + (n - n0) * k, b + n * shape_.ldb + k0, shape_.ldb, k,
                                      std::min(panel, n1 - n));
      return;
    }
    for (int64_t p = 0; p < k; p += rowsAtOnce)
      for (int64_t n = n0; n < n1; n += panel)
        packPanel<T, panel>(panels + (n - n0) * k + p * panel, b + (k0 + p) * shape_.ldb + n, shape_.ldb,
                            std::min(rowsAtOnce, k - p), std::min(panel, n1 - n));
  }

  /// `a`: first element of the block; `lda`: from one stored row of it to the next.
  template <Left left>
  void rows(int64_t m0, int64_t m1, int64_t n0, int64_t n1, int64_t k, bool first, const T *a, int64_t lda,
            const T *panels, const T *c, T *d) const {
    for (int64_t n = n0; n < n1; n += panel) {
      const T *b = panels + (n - n0) * k;
      int64_t columns = std::min(panel, n1 - n);
      for (int64_t m = m0; m < m1; m += Tiles::rows) {
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
        const T *from = a + (m - m0) * (left == Left::Columns ? 1 : lda);
        Tiles::template run<left>(std::min(Tiles::rows, m1 - m), columns, k, from, lda, b, to, shape_.ldd, epilogue);
      }
    }
  }

  GemmShape shape_;
  GemmOperands<T, T> operands_;
  GemmCut cut_;
  int64_t depth_;
};

} // namespace

std::unique_ptr<PreparedCall> prepareGemm(const GemmShape &shape, const CallOperands &operands, bool usesWideVectors) {
  auto prepare = [&]<typename T>(T) -> std::unique_ptr<PreparedCall> {
    if (usesWideVectors)
      return std::make_unique<Gemm<T, WideTiles<T>>>(shape, operands);
    return std::make_unique<Gemm<T, NarrowTiles<T>>>(shape, operands);
  };
  return shape.dtype == plan::F64 ? prepare(double()) : prepare(float());
}

} // namespace lowtide::rt
