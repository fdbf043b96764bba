//===- NumberChecks.h - which numbers a flag takes --------------*- C++ -*-===//
//
// CLI11's own checks let nan pass and print limits of 309 digits.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace CLI {
class Validator;
} // namespace CLI

namespace lowtide::config {

/// Finite numbers above 0.
CLI::Validator positive();
/// Finite numbers of at least 0.
CLI::Validator nonNegative();
/// Numbers from 0 to 1.
CLI::Validator rate();

} // namespace lowtide::config
