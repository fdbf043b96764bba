//===- ByteSize.cpp - numbers of bytes as people write them ---------------===//
//
// A number and a unit.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Support/NameList.h"
#include "lowtide/Support/StableSort.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace lowtide;
using llvm::StringRef;

/// Nothing: the text is no number of bytes.
static std::optional<ByteSize> readByteSize(StringRef text, bool mayBeZero = false) {
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
  const bool isNothing = bytes < 1 && !(mayBeZero && value == 0 && factor > 0);
  if (isNothing || bytes > 0x1p62 || (factor == 1 && bytes != value))
    return std::nullopt;
  return ByteSize{uint64_t(bytes), -1};
}

llvm::Expected<ByteSize> lowtide::parseByteSize(StringRef text) {
  if (std::optional<ByteSize> size = readByteSize(text))
    return *size;
  return llvm::createStringError("'" + text + "' is no number of bytes; write 8MiB, 1.5GiB, 800MB, 4096 or 50%");
}

static llvm::Expected<uint64_t> readByteCount(StringRef text, bool mayBeZero) {
  const std::optional<ByteSize> size = readByteSize(text, mayBeZero);
  if (!size)
    return llvm::createStringError("'" + text + "' is no number of bytes; write 32GiB, 1.5TiB, 800MB or 4096");
  if (size->fraction >= 0)
    return llvm::createStringError("'" + text + "' is a part of nothing that is known; bytes, as in 32GiB");
  return size->bytes;
}

llvm::Expected<uint64_t> lowtide::parseByteCount(StringRef text) {
  if (text.contains(','))
    return llvm::createStringError("'" + text +
                                   "' is a list, of which only 'lowtide fit' makes a table; write one, as in 32GiB");
  if (const std::optional<ByteSize> size = readByteSize(text, /*mayBeZero=*/true);
      size && size->fraction < 0 && !size->bytes)
    return llvm::createStringError("'" + text + "' holds nothing; leave the flag out where that memory has no use");
  return readByteCount(text, /*mayBeZero=*/false);
}

llvm::Expected<std::vector<ByteCount>> lowtide::parseByteCounts(StringRef text) {
  std::vector<ByteCount> counts;
  if (!text.contains(',')) {
    llvm::Expected<uint64_t> bytes = parseByteCount(text);
    if (!bytes)
      return bytes.takeError();
    counts.push_back({text.trim().str(), *bytes});
    return counts;
  }
  auto refuse = [&](const llvm::Twine &message, size_t column) {
    return llvm::createStringError(message + " (column " + llvm::Twine(countColumns(text, column)) + ")");
  };
  llvm::SmallVector<NameItem> items;
  if (std::optional<TextFault> fault = splitNames(text, ',', items))
    return refuse("'" + text + "': " + fault->message, fault->column);
  for (const NameItem &item : items) {
    llvm::Expected<uint64_t> bytes = readByteCount(item.text, /*mayBeZero=*/true);
    if (!bytes)
      return refuse(llvm::toString(bytes.takeError()), item.column);
    counts.push_back({item.text, *bytes});
  }
  sortStably(counts, [](const ByteCount &a, const ByteCount &b) { return a.bytes < b.bytes; });
  counts.erase(std::unique(counts.begin(), counts.end(),
                           [](const ByteCount &a, const ByteCount &b) { return a.bytes == b.bytes; }),
               counts.end());
  return counts;
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
