//===- NumberChecks.h - which numbers a flag takes --------------*- C++ -*-===//
//
// CLI11's own checks let nan pass, print limits of 309 digits, and take a whole number that is too large for the
// largest.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <limits>

namespace CLI {
class Validator;
} // namespace CLI

namespace lowtide::config {

/// Finite numbers above 0.
CLI::Validator positive();
/// Finite numbers of at least 0.
CLI::Validator nonNegative();
/// Whole numbers from `low` to `high`.
CLI::Validator wholeNumber(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
/// Numbers from 0 to 1.
CLI::Validator rate();

} // namespace lowtide::config
