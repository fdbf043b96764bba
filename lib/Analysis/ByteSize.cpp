//===- ByteSize.cpp - numbers of bytes as people write them ---------------===//
//
// A number and a unit.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/ByteSize.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace lowtide;
using llvm::StringRef;

/// Nothing: the text is no number of bytes.
static std::optional<ByteSize> readByteSize(StringRef text) {
  StringRef trimmed = text.trim();
  size_t length = trimmed.find_first_not_of("0123456789.");
  StringRef number = trimmed.take_front(length), unit = trimmed.drop_front(number.size()).trim();
  double value;
  if (number.empty() || number.getAsDouble(value) || !std::isfinite(value))
    return std::nullopt;
  if (unit == "%")
    return value > 0 ? std::optional(ByteSize{0, value / 100}) : std::nullopt;
  double factor = llvm::StringSwitch<double>(unit.lower())
                      .Cases({"", "b", "byte", "bytes"}, 1)
                      .Cases({"k", "kib"}, 0x1p10)
                      .Cases({"m", "mib"}, 0x1p20)
                      .Cases({"g", "gib"}, 0x1p30)
                      .Cases({"t", "tib"}, 0x1p40)
                      .Case("kb", 1e3)
                      .Case("mb", 1e6)
                      .Case("gb", 1e9)
                      .Case("tb", 1e12)
                      .Default(0);
  double bytes = std::floor(value * factor);
  // "1.5" is a unit forgotten. A fraction of a KiB may end within a byte: tables print hundredths.
  if (bytes < 1 || bytes > 0x1p62 || (factor == 1 && bytes != value))
    return std::nullopt;
  return ByteSize{uint64_t(bytes), -1};
}

llvm::Expected<ByteSize> lowtide::parseByteSize(StringRef text) {
  if (std::optional<ByteSize> size = readByteSize(text))
    return *size;
  return llvm::createStringError("'" + text + "' is no number of bytes; write 8MiB, 1.5GiB, 800MB, 4096 or 50%");
}

llvm::Expected<uint64_t> lowtide::parseByteCount(StringRef text) {
  const std::optional<ByteSize> size = readByteSize(text);
  if (!size)
    return llvm::createStringError("'" + text + "' is no number of bytes; write 32GiB, 1.5TiB, 800MB or 4096");
  if (size->fraction >= 0)
    return llvm::createStringError("'" + text + "' is a part of nothing that is known; bytes, as in 32GiB");
  return size->bytes;
}

std::string lowtide::formatBytes(uint64_t bytes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  unsigned unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  os << llvm::format(unit ? "%.2f " : "%.0f ", value) << units[unit];
  return text;
}

std::string lowtide::formatExact(uint64_t bytes) {
  const std::string text = formatBytes(bytes);
  return bytes < 1024 ? text : text + " (" + std::to_string(bytes) + " bytes)";
}
