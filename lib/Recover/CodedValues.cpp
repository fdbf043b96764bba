//===- CodedValues.cpp - numbers that were made of codes --------------------------===//

#include "CodedValues.h"

#include "TableValues.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <bitset>
#include <cmath>

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

/// Whether blocks of `size` numbers along the lines hold codes.
static bool areCoded(ArrayRef<float> lines, int64_t length, int64_t size) {
  Sizes sizes;
  for (; !lines.empty(); lines = lines.drop_front(size_t(length)))
    for (int64_t at = 0; at < length; at += size)
      if (!isCoded(lines.slice(size_t(at), size_t(std::min(size, length - at))), sizes))
        return false;
  sizes.reset(0);
  return sizes.count() >= 5;
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
  std::vector<float> values = asFloats(bytes);
  if (int64_t(values.size()) < 4 * shortestLine || int64_t(values.size()) > largestTensor)
    return false;
  auto hasLines = [&](ArrayRef<float> lines, int64_t length) {
    SmallVector<int64_t> sizes = {length};
    for (int64_t size : {256, 128, 64, 32, 16})
      if (size < length)
        sizes.push_back(size);
    return length >= shortestLine && llvm::any_of(sizes, [&](int64_t size) { return areCoded(lines, length, size); });
  };
  const int64_t rows = tensor.dims(0), length = int64_t(values.size()) / rows;
  return hasLines(values, length) || (tensor.dims_size() == 2 && hasLines(turn(values, rows), rows));
}

bool lowtide::holdsCodes(const TensorProto &tensor, const std::string &bytes) {
  if (tensor.data_type() != TensorProto::FLOAT || tensor.dims_size() < 2)
    return false;
  std::vector<float> values = asFloats(bytes);
  Sizes sizes;
  for (float x : values) {
    if (!(std::abs(x) <= float(largestCode)) || x != std::round(x))
      return false;
    sizes.set(size_t(std::abs(x)));
  }
  sizes.reset(0);
  return int64_t(values.size()) >= 4 * shortestLine && sizes.count() >= 5;
}
