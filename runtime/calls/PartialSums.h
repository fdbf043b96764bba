//===- PartialSums.h - products of a GPU whose depth is cut ---------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_PARTIALSUMS_H
#define LOWTIDE_RUNTIME_CALLS_PARTIALSUMS_H

#include "runtime/CheckedMath.h"

#include <cstdint>

namespace lowtide::rt {

/// f32 partial sums of an m × n result whose k is cut, `batch` times, for a GPU that runs `blocksAtOnce` blocks at
/// once: one on each of its multiprocessors.
uint64_t partialSumBytes(int64_t m, int64_t n, int64_t k, int64_t batch, uint32_t blocksAtOnce);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLS_PARTIALSUMS_H
