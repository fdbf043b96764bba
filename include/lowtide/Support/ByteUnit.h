//===- ByteUnit.h - one unit for all bytes of a table -----------*- C++ -*-===//
//
// Figures that stand under one another are compared, so they have one unit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstdint>
#include <string>

namespace lowtide {

/// KiB, MiB or GiB.
struct ByteUnit {
  double bytes;
  const char *name;

  /// The unit of a table whose largest figure is `largest`. `typable`: its figures are typed again as budgets, and in
  /// GiB two digits would be too few.
  static ByteUnit get(uint64_t largest, bool typable = false) {
    if (largest < 1 << 20)
      return {0x1p10, "KiB"};
    return largest < uint64_t(10) << 30 || typable ? ByteUnit{0x1p20, "MiB"} : ByteUnit{0x1p30, "GiB"};
  }
  /// "12.50".
  std::string number(uint64_t count) const { return llvm::formatv("{0:F2}", double(count) / bytes).str(); }
  /// "12.50 MiB".
  std::string text(uint64_t count) const { return number(count) + " " + name; }
  /// The least number of bytes from `count` on that is printed exactly, in hundredths.
  uint64_t roundUp(uint64_t count) const {
    double hundredths = std::ceil(double(count) / bytes * 100);
    while (uint64_t(hundredths / 100 * bytes) < count)
      ++hundredths;
    return uint64_t(hundredths / 100 * bytes);
  }
};

} // namespace lowtide
