//===- GemmCut.h - how a batch of matrix products is cut into tasks --------===//
//
// A task is one block of rows × columns of one product, or whole products of a group where they are small. The cut
// depends on the shape alone.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_GEMM_GEMMCUT_H
#define LOWTIDE_RUNTIME_CALLS_GEMM_GEMMCUT_H

#include "runtime/calls/Gemm/GemmShape.h"
#include "runtime/kernels/PreparedCall.h"
#include "runtime/kernels/Tile.h"

#include <algorithm>

namespace lowtide::rt::kernels {

struct GemmCut {
  /// Multiply-adds that are worth a task of their own: about ten microseconds.
  static constexpr int64_t taskWork = 512 * 1024;

  /// Rows and columns of a block, products of a group.
  int64_t rows = 0, columns = 0, perGroup = 1;
  /// Products, and how many groups and blocks there are.
  int64_t batch = 1, groups = 1, blocksM = 1, blocksN = 1;

  /// Cuts `total` into equal parts of at most `limit`, rounded up to multiples of `unit`.
  static int64_t balanced(int64_t total, int64_t limit, int64_t unit) {
    return ceilDiv(ceilDiv(total, ceilDiv(total, limit)), unit) * unit;
  }
  static int64_t work(const GemmShape &shape) { return shape.m * shape.n * shape.k; }

  /// Joins small products until a group is worth a task and eight groups remain.
  void group(const GemmShape &shape) {
    perGroup = std::clamp<int64_t>(taskWork / work(shape), 1, ceilDiv(shape.batchCount(), 8));
  }

  /// Are there fewer tasks than 16, of which each is large enough to be halved?
  bool isCoarse(const GemmShape &shape) const {
    return shape.batchCount() * ceilDiv(shape.m, rows) * ceilDiv(shape.n, columns) < 16 &&
           std::min(rows, shape.m) * columns * shape.k > taskWork;
  }

  /// Counts, once rows, columns and perGroup are chosen.
  void settle(const GemmShape &shape) {
    batch = shape.batchCount();
    groups = ceilDiv(batch, perGroup);
    blocksM = ceilDiv(shape.m, rows), blocksN = ceilDiv(shape.n, columns);
  }

  int64_t tasks() const { return groups * blocksM * blocksN; }

  /// Calls block(product, m0, m1, n0, n1) for each product of a task.
  template <typename Block> void run(const GemmShape &shape, int64_t task, Block &&block) const {
    int64_t blockN = task % blocksN, blockM = task / blocksN % blocksM, group = task / (blocksN * blocksM);
    int64_t m0 = blockM * rows, n0 = blockN * columns;
    for (int64_t index = group * perGroup; index < std::min(batch, (group + 1) * perGroup); ++index)
      block(index, m0, std::min(shape.m, m0 + rows), n0, std::min(shape.n, n0 + columns));
  }
};

/// The operands of one product of a batch; `c` is null where there is no addend.
template <typename S, typename R> struct GemmOperands {
  const S *a = nullptr, *b = nullptr;
  const R *c = nullptr;
  R *d = nullptr;

  GemmOperands() = default;
  explicit GemmOperands(const CallOperands &operands)
      : a(static_cast<const S *>(operands.reads[0])), b(static_cast<const S *>(operands.reads[1])),
        c(operands.reads.size() > 2 ? static_cast<const R *>(operands.reads[2]) : nullptr),
        d(static_cast<R *>(operands.writes[0])) {}

  GemmOperands at(const GemmShape &shape, int64_t index) const {
    GemmOperands result = *this;
    for (size_t i = shape.batch.size(); i-- > 0;) {
      const GemmShape::BatchDim &dim = shape.batch[i];
      int64_t position = index % dim.extent;
      index /= dim.extent;
      result.a += position * dim.strideA, result.b += position * dim.strideB, result.d += position * dim.strideD;
      if (c && shape.addend != GemmShape::Addend::None)
        result.c += position * dim.strideC;
    }
    return result;
  }
};

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_CALLS_GEMM_GEMMCUT_H
