//===- Products.h - the products of a step, each by itself ----------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_BENCH_PRODUCTS_H
#define LOWTIDE_TOOLS_LOWTIDE_BENCH_PRODUCTS_H

#include "runtime/Status.h"
#include "runtime/calls/Gemm/GemmShape.h"

#include <vector>

namespace lowtide::bench {

/// Products of one shape in a step.
struct Products {
  rt::GemmShape shape;
  uint64_t count = 0;      ///< a step runs, those of repeats counted
  double milliseconds = 0; ///< one of them takes, the best of many runs

  double gflop() const {
    return 2e-9 * double(shape.m) * double(shape.n) * double(shape.k) * double(shape.batchCount());
  }
};

/// Runs each product of `entry` on random numbers, as `threads` threads of the CPU do (0: all cores), without what is
/// added to it or applied to its result: what a library that multiplies can be compared with. Those of most work come
/// first. Errors: Unsupported for a plan of another device.
rt::Expected<std::vector<Products>> measureProducts(const plan::Plan &plan, const plan::Entry &entry, unsigned threads);

} // namespace lowtide::bench

#endif // LOWTIDE_TOOLS_LOWTIDE_BENCH_PRODUCTS_H
