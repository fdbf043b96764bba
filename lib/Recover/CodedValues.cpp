//===- CodedValues.cpp - numbers that were made of codes --------------------------===//

#include "CodedValues.h"

#include "TableValues.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <bitset>
#include <cmath>
#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// The largest size of a code, less a zero point; numbers of a line that chance does not put on a grid; numbers of a
/// tensor that is looked at, at most.
static constexpr int64_t largestCode = 255, shortestLine = 16, largestTensor = int64_t(1) << 28;

namespace {
using Sizes = std::bitset<largestCode + 1>;
} // namespace

/// Whether all numbers are whole multiples of the largest one's n-th part; `sizes` gets their sizes.
static bool isGrid(ArrayRef<float> line, double largest, int64_t n, Sizes &sizes) {
  Sizes found;
  for (float x : line) {
    const double code = std::abs(double(x)) / largest * double(n), whole = std::round(code);
    if (!(std::abs(code - whole) <= 1e-3))
      return false;
    found.set(size_t(whole));
  }
  sizes |= found;
  return true;
}

/// Whether the line holds codes of one scale.
static bool isCoded(ArrayRef<float> line, Sizes &sizes) {
  double largest = 0;
  for (float x : line)
    largest = std::max(largest, std::abs(double(x)));
  if (largest == 0 || !std::isfinite(largest))
    return largest == 0;
  // The largest code is seldom another one than these.
  for (int64_t n : {127, 7, 128, 8})
    if (isGrid(line, largest, n, sizes))
      return true;
  for (int64_t n = 1; n <= largestCode; ++n)
    if (isGrid(line, largest, n, sizes))
      return true;
  return false;
}

/// Whether blocks of `size` numbers along the lines hold codes; `sizes` gets their sizes.
static bool areCoded(ArrayRef<float> lines, int64_t length, int64_t size, Sizes &sizes) {
  for (; !lines.empty(); lines = lines.drop_front(size_t(length)))
    for (int64_t at = 0; at < length; at += size)
      if (!isCoded(lines.slice(size_t(at), size_t(std::min(size, length - at))), sizes))
        return false;
  return true;
}

/// Sizes of blocks along a line, the whole line first.
static SmallVector<int64_t> listBlocks(int64_t length) {
  SmallVector<int64_t> blocks = {length};
  for (int64_t size : {256, 128, 64, 32, 16})
    if (size < length)
      blocks.push_back(size);
  return blocks;
}

/// Whether the lines hold codes in blocks of one size.
static bool hasCodes(ArrayRef<float> lines, int64_t length) {
  return llvm::any_of(listBlocks(length), [&](int64_t size) {
    Sizes sizes;
    const bool isGrid = areCoded(lines, length, size, sizes);
    sizes.reset(0);
    return isGrid && sizes.count() >= 5;
  });
}

/// The same of one line, which may have codes of fewer sizes: nearly all tensors end there.
static bool mayHaveCodes(ArrayRef<float> line) {
  const int64_t length = int64_t(line.size());
  Sizes sizes;
  return length >= shortestLine &&
         llvm::any_of(listBlocks(length), [&](int64_t size) { return areCoded(line, length, size, sizes); });
}

static float numberAt(StringRef bytes, size_t at) {
  float number;
  std::memcpy(&number, bytes.data() + at * sizeof(float), sizeof(float));
  return number;
}

/// `length` numbers from the first on, each `step` after the one before.
static std::vector<float> takeLine(StringRef bytes, int64_t length, int64_t step) {
  std::vector<float> line;
  for (int64_t i = 0; i != length; ++i)
    line.push_back(numberAt(bytes, size_t(i * step)));
  return line;
}

/// The numbers with the first dimension last.
static std::vector<float> turn(ArrayRef<float> values, int64_t rows) {
  const size_t columns = values.size() / size_t(rows);
  std::vector<float> turned(values.size());
  for (size_t i = 0; i != values.size(); ++i)
    turned[i % columns * size_t(rows) + i / columns] = values[i];
  return turned;
}

bool lowtide::holdsScaledCodes(const TensorProto &tensor, const std::string &bytes) {
  if (tensor.data_type() != TensorProto::FLOAT || tensor.dims_size() < 2 || tensor.dims(0) < 1)
    return false;
  const int64_t numbers = int64_t(bytes.size() / sizeof(float)), rows = tensor.dims(0), length = numbers / rows;
  if (numbers < 4 * shortestLine || numbers > largestTensor || numbers % rows)
    return false;
  return (mayHaveCodes(takeLine(bytes, length, 1)) && hasCodes(asFloats(bytes), length)) ||
         (tensor.dims_size() == 2 && mayHaveCodes(takeLine(bytes, rows, length)) &&
          hasCodes(turn(asFloats(bytes), rows), rows));
}

bool lowtide::mayHoldCodes(const TensorProto &tensor) {
  const StringRef bytes = tensor.raw_data();
  for (size_t i = 0, e = std::min<size_t>(bytes.size() / sizeof(float), size_t(shortestLine)); i != e; ++i)
    if (const float number = numberAt(bytes, i); number != std::round(number))
      return false;
  return tensor.data_type() == TensorProto::FLOAT && tensor.dims_size() >= 2;
}

bool lowtide::holdsCodes(const TensorProto &tensor, const std::string &bytes) {
  if (tensor.data_type() != TensorProto::FLOAT || tensor.dims_size() < 2)
    return false;
  const size_t numbers = bytes.size() / sizeof(float);
  Sizes sizes;
  for (size_t i = 0; i != numbers; ++i) {
    const float x = numberAt(bytes, i);
    if (!(std::abs(x) <= float(largestCode)) || x != std::round(x))
      return false;
    sizes.set(size_t(std::abs(x)));
  }
  sizes.reset(0);
  return int64_t(numbers) >= 4 * shortestLine && sizes.count() >= 5;
}
