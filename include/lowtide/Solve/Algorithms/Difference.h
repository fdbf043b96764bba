//===- Difference.h - what two sequences have in common ---------*- C++ -*-===//
//
// The longest common subsequence of two sequences of numbers, by divide and conquer: Myers 1986, in linear space.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lowtide::solve {

/// Index pairs (into `a`, into `b`) of a longest common subsequence, ascending. Takes time (|a| + |b|) · D and space
/// |a| + |b|, where D elements differ.
std::vector<std::pair<uint32_t, uint32_t>> findCommon(std::span<const uint32_t> a, std::span<const uint32_t> b);

} // namespace lowtide::solve
