//===- ByteSize.h - numbers of bytes as people write them -------*- C++ -*-===//
//
// "8MiB", "402.50 MiB", "50%".
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lowtide {

/// A number of bytes, or a part of a number that is known later.
struct ByteSize {
  uint64_t bytes = 0;
  /// Instead of bytes when not negative: a fraction, 0.5 for "50%".
  double fraction = -1;

  /// Bytes, given what the fraction is of.
  uint64_t resolve(uint64_t whole) const { return fraction < 0 ? bytes : uint64_t(fraction * double(whole)); }
};

/// Reads "8MiB", "1.5 GiB", "800MB", "4096", "4096 bytes", "50%". Powers of 1024: KiB, MiB, GiB, TiB and K, M, G, T;
/// powers of 1000: kB, MB, GB, TB. Anything else is an error in words, as are zero and "1.5" bytes.
llvm::Expected<ByteSize> parseByteSize(llvm::StringRef text);
/// The same where there is nothing to take a part of: "50%" is an error, too. Bytes.
llvm::Expected<uint64_t> parseByteCount(llvm::StringRef text);

/// One of a list.
struct ByteCount {
  std::string text; ///< as it was written
  uint64_t bytes = 0;
};
/// Reads "0,64MiB,256MiB", of which 0 may be one; in ascending order, equal ones once. What is not understood is an
/// error with its column. A text without a comma is read as `parseByteCount` does.
llvm::Expected<std::vector<ByteCount>> parseByteCounts(llvm::StringRef text);

/// "402.50 MiB".
std::string formatBytes(uint64_t bytes);
/// Bytes to read and bytes to type: "4.06 KiB (4160 bytes)"; "512 bytes".
std::string formatExact(uint64_t bytes);

} // namespace lowtide
