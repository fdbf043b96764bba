//===- TableValues.cpp - tables that no training made ----------------------------===//
//
// A buffer has no mark in files without notes, but some betray themselves: a mask holds zeros and huge negative
// numbers, or a triangle of ones. A table of positions satisfies x[p+1] + x[p-1] = 2 cos(w) x[p] in every column, with
// a w of its own: so do sinusoids, their products with rotary angles, ramps (w = 0), and matrices of Fourier
// transforms. A table of places in a picture, one row a place, satisfies it along both sides of the picture. In a table
// of powers, polynomials or Bernstein's, some difference of each line vanishes; in one of decays, each line is
// geometric.
//
//===----------------------------------------------------------------------===//

#include "TableValues.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace llvm;
using ::onnx::TensorProto;

static bool isTriangle(ArrayRef<float> values, int64_t rows, int64_t columns) {
  if (rows < 2 || columns < 2)
    return false;
  // One value on and below some diagonal, another above it; or the other way round, which is the same with values
  // exchanged.
  for (int64_t diagonal : {-1, 0, 1}) {
    bool fits = true;
    float below = 0, above = 0;
    for (size_t i = 0; fits && i != values.size(); ++i) {
      int64_t cell = int64_t(i) % (rows * columns), row = cell / columns, column = cell % columns;
      bool isBelow = column - row < diagonal;
      (isBelow ? below : above) = values[i];
      fits = values[i] == 0 || values[i] == 1;
    }
    for (size_t i = 0; fits && i != values.size(); ++i) {
      int64_t cell = int64_t(i) % (rows * columns), row = cell / columns, column = cell % columns;
      fits = values[i] == (column - row < diagonal ? below : above);
    }
    if (fits && below != above)
      return true;
  }
  return false;
}

/// What f32 leaves of sines after many turns; a line of zeros in a matrix of sines is nothing else.
static double findNoise(ArrayRef<float> values) {
  double noise = 0;
  for (float value : values)
    noise = std::max(noise, 1e-4 * std::abs(double(value)));
  return noise;
}

/// Whether each line along a dimension satisfies the recurrence, `turning` of them by an angle that is no ramp's.
/// `noise`: of all values. What is no wave fails at its first line.
static bool isWave(ArrayRef<float> values, double noise, int64_t length, int64_t stride, int64_t *turning = nullptr) {
  if (length < 4) // any three numbers are some wave
    return false;
  bool varies = false;
  // What the lines that turn agree in, beyond what makes any numbers waves. Short ramps are weights as well.
  int64_t agreements = 0;
  for (int64_t first = 0; first != int64_t(values.size()); ++first) {
    if (first / stride % length)
      continue;
    auto at = [&](int64_t p) { return double(values[size_t(first + p * stride)]); };
    double product = 0, square = 0, largest = 0;
    for (int64_t p = 1; p + 1 < length; ++p) {
      product += at(p) * (at(p + 1) + at(p - 1));
      square += at(p) * at(p);
      largest = std::max({largest, std::abs(at(p - 1)), std::abs(at(p)), std::abs(at(p + 1))});
    }
    if (!std::isfinite(largest))
      return false;
    if (largest <= noise)
      continue;
    double factor = square > 0 ? product / square : 2;
    if (!(std::abs(factor) <= 2.001))
      return false;
    for (int64_t p = 1; p + 1 < length; ++p)
      if (std::abs(at(p + 1) + at(p - 1) - factor * at(p)) > 1e-4 * largest + noise)
        return false;
    const bool isTurning = std::abs(factor) < 1.99;
    if (turning && isTurning)
      ++*turning;
    bool isFlat = true;
    for (int64_t p = 1; p < length; ++p)
      isFlat &= std::abs(at(p) - at(0)) <= 1e-3 * largest;
    varies |= !isFlat;
    agreements += isFlat || !isTurning ? 0 : length - 3;
  }
  return varies && (length >= 6 || agreements >= 4);
}

/// Whether the rows along a dimension are the places of a grid, one side after the other, and each line along either
/// side is a wave, of which a good part turns. Rows of zeros before the first place belong to tokens that have none.
static bool isGridOfWaves(ArrayRef<float> values, double noise, int64_t length, int64_t stride) {
  if (int64_t(values.size()) == length * stride)
    while (length > 0 && all_of(values.take_front(size_t(stride)), [](float value) { return value == 0; })) {
      values = values.drop_front(size_t(stride));
      --length;
    }
  for (int64_t side = 4; side * 4 <= length; ++side) {
    int64_t along = 0, across = 0;
    if (length % side == 0 && isWave(values, noise, side, stride, &along) && along > 1 &&
        isWave(values, noise, length / side, stride * side, &across) && across > 1 &&
        16 * (along * side + across * (length / side)) >= int64_t(values.size()))
      return true;
  }
  return false;
}

/// Whether every line along a dimension is a polynomial of the position, and some are no ramp: differences of few
/// orders vanish, and more of them than the polynomial has coefficients.
static bool isPolynomial(ArrayRef<float> values, int64_t length, int64_t stride) {
  constexpr int64_t highest = 6;
  if (length < 6)
    return false;
  bool isCurved = false;
  std::vector<double> line(static_cast<size_t>(length));
  for (int64_t first = 0; first != int64_t(values.size()); ++first) {
    if (first / stride % length)
      continue;
    double largest = 0;
    for (int64_t p = 0; p != length; ++p) {
      line[size_t(p)] = double(values[size_t(first + p * stride)]);
      largest = std::max(largest, std::abs(line[size_t(p)]));
    }
    if (!std::isfinite(largest))
      return false;
    int64_t order = 0, left = length;
    bool vanishes = largest == 0;
    // Powers are off by some units in the last place, and each difference doubles that.
    for (double noise = 4e-7 * largest; !vanishes && order != highest && left > length / 2; ++order, noise *= 2) {
      for (int64_t p = 0; p + 1 != left; ++p)
        line[size_t(p)] = line[size_t(p + 1)] - line[size_t(p)];
      --left;
      vanishes = all_of(ArrayRef(line).take_front(size_t(left)), [&](double d) { return std::abs(d) <= noise; });
    }
    if (!vanishes)
      return false;
    isCurved |= order > 2;
  }
  return isCurved;
}

/// Whether every line along a dimension is geometric, x[p+1] = r x[p] with an r of its own, which for some is neither
/// zero nor one.
static bool isGeometric(ArrayRef<float> values, int64_t length, int64_t stride) {
  if (length < 6)
    return false;
  bool varies = false;
  for (int64_t first = 0; first != int64_t(values.size()); ++first) {
    if (first / stride % length)
      continue;
    auto at = [&](int64_t p) { return double(values[size_t(first + p * stride)]); };
    double ratio = at(0) != 0 ? at(1) / at(0) : 0;
    for (int64_t p = 1; p != length; ++p)
      if (!(std::abs(at(p) - ratio * at(p - 1)) <= 1e-5 * std::abs(at(p))))
        return false;
    varies |= ratio != 0 && std::abs(std::abs(ratio) - 1) > 1e-3;
  }
  return varies;
}

std::vector<float> lowtide::asFloats(StringRef bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

StringRef lowtide::describeFormula(Formula formula) {
  switch (formula) {
  case Formula::None:
    return "";
  case Formula::Mask:
    return "a mask";
  case Formula::Wave:
    return "sinusoids or ramps";
  case Formula::Polynomial:
    return "powers or polynomials";
  case Formula::Geometric:
    return "geometric series";
  }
  return "";
}

lowtide::Formula lowtide::findFormula(const TensorProto &tensor, const std::string &bytes) {
  if (tensor.data_type() != TensorProto::FLOAT || bytes.size() < 2 * sizeof(float) || tensor.dims_size() == 0)
    return Formula::None;
  std::vector<float> values = asFloats(bytes);
  if (all_equal(values))
    return Formula::None;
  int rank = tensor.dims_size();
  if (all_of(values, [](float value) { return value == 0 || value <= -1e4f; }) ||
      (rank > 1 && isTriangle(values, tensor.dims(rank - 2), tensor.dims(rank - 1))))
    return Formula::Mask;
  const double noise = findNoise(values);
  int64_t stride = 1;
  for (int axis = rank; axis-- > 0 && rank > 1;) {
    if (isWave(values, noise, tensor.dims(axis), stride) || isGridOfWaves(values, noise, tensor.dims(axis), stride))
      return Formula::Wave;
    if (isPolynomial(values, tensor.dims(axis), stride))
      return Formula::Polynomial;
    if (isGeometric(values, tensor.dims(axis), stride))
      return Formula::Geometric;
    stride *= tensor.dims(axis);
  }
  return Formula::None;
}

bool lowtide::holdsSinusoids(const TensorProto &tensor, const std::string &bytes) {
  if (tensor.data_type() != TensorProto::FLOAT || bytes.size() < 2 * sizeof(float) || tensor.dims_size() < 2)
    return false;
  std::vector<float> values = asFloats(bytes);
  const double noise = findNoise(values);
  int64_t stride = 1;
  for (int axis = tensor.dims_size(); axis-- > 0; stride *= tensor.dims(axis)) {
    int64_t turning = 0;
    // One line is no table.
    if (isWave(values, noise, tensor.dims(axis), stride, &turning) && turning > 1 &&
        4 * turning * tensor.dims(axis) >= int64_t(values.size()))
      return true;
    if (isGridOfWaves(values, noise, tensor.dims(axis), stride))
      return true;
  }
  return false;
}

bool lowtide::holdsCounts(const TensorProto &tensor, const std::string &bytes) {
  constexpr size_t fewest = 8;
  const bool isHalf = tensor.data_type() == TensorProto::FLOAT16;
  if (!isHalf && tensor.data_type() != TensorProto::FLOAT)
    return false;
  const size_t width = isHalf ? sizeof(uint16_t) : sizeof(float), count = bytes.size() / width;
  for (size_t i = 0; i != count; ++i) {
    float value = 0;
    if (isHalf) {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * width, width);
      value = APFloat(APFloat::IEEEhalf(), APInt(16, bits)).convertToFloat();
    } else {
      std::memcpy(&value, bytes.data() + i * width, width);
    }
    if (value != float(i))
      return false;
  }
  return count >= fewest;
}

bool lowtide::holdsPowers(const TensorProto &tensor, const std::string &bytes) {
  std::vector<int64_t> shape;
  for (int64_t extent : tensor.dims())
    if (extent != 1)
      shape.push_back(extent);
  if (tensor.data_type() != TensorProto::FLOAT || shape.size() != 2 ||
      bytes.size() != size_t(shape[0] * shape[1]) * sizeof(float))
    return false;
  std::vector<float> values = asFloats(bytes);
  auto isBasis = [&](int64_t powers, int64_t positions, int64_t perPower, int64_t perPosition) {
    if (powers < 3 || positions < 4)
      return false;
    auto at = [&](int64_t power, int64_t p) { return double(values[size_t(power * perPower + p * perPosition)]); };
    const double step = at(1, 1) - at(1, 0), largest = std::max(std::abs(at(1, 0)), std::abs(at(1, positions - 1)));
    if (!(std::abs(step) > 0) || !std::isfinite(largest))
      return false;
    for (int64_t p = 0; p != positions; ++p) {
      if (std::abs(at(1, p) - (at(1, 0) + double(p) * step)) > 1e-5 * largest)
        return false;
      double expected = 1;
      for (int64_t power = 0; power != powers; ++power, expected *= at(1, p))
        if (!(std::abs(at(power, p) - expected) <= 1e-5 * std::abs(expected)))
          return false;
    }
    return true;
  };
  return isBasis(shape[0], shape[1], shape[1], 1) || isBasis(shape[1], shape[0], 1, shape[1]);
}

bool lowtide::holdsMask(const TensorProto &tensor, const std::string &bytes) {
  if (tensor.data_type() != TensorProto::FLOAT)
    return false;
  const std::vector<float> values = asFloats(bytes);
  return values.size() >= 4 && llvm::is_contained(values, 0) && llvm::is_contained(values, 1) &&
         llvm::all_of(values, [](float value) { return value == 0 || value == 1; });
}

bool lowtide::holdsPermutation(const TensorProto &tensor, const std::string &bytes) {
  std::vector<size_t> shape;
  for (int64_t extent : tensor.dims())
    if (extent != 1)
      shape.push_back(size_t(extent));
  if (shape.size() != 2 || shape[0] != shape[1] || shape[0] < 3 || !holdsMask(tensor, bytes))
    return false;
  const std::vector<float> values = asFloats(bytes);
  std::vector<bool> isTaken(shape[1]);
  bool moves = false;
  for (size_t row = 0; row != shape[0]; ++row) {
    ArrayRef<float> numbers(values.data() + row * shape[1], shape[1]);
    const size_t column = size_t(llvm::find(numbers, 1) - numbers.begin());
    if (llvm::count(numbers, 1) != 1 || isTaken[column])
      return false;
    isTaken[column] = true;
    moves |= column != row;
  }
  return moves;
}

/// Whether each number occurs several times but for its sign, all equally often: `cat([w, -w])`, `stack([w, w])`.
static bool repeatsMagnitudes(ArrayRef<float> values) {
  std::vector<float> magnitudes;
  for (float value : values)
    if (value != 0 && !std::isnan(value))
      magnitudes.push_back(std::abs(value));
  // Weights are large, and most hold their first number once: no more is looked at.
  const size_t times = magnitudes.empty() ? 0 : size_t(llvm::count(magnitudes, magnitudes.front()));
  if (times < 2 || magnitudes.size() % times != 0 || magnitudes.size() / times < 4)
    return false;
  llvm::sort(magnitudes);
  for (size_t i = 0; i < magnitudes.size(); i += times)
    if (magnitudes[i] != magnitudes[i + times - 1] || (i && magnitudes[i] == magnitudes[i - 1]))
      return false;
  return true;
}

/// How many numbers other than zero there are, each counted once.
static size_t countDifferent(ArrayRef<float> values) {
  std::vector<float> others = values.vec();
  llvm::erase_if(others, [](float value) { return value == 0 || std::isnan(value); });
  llvm::sort(others);
  return size_t(std::unique(others.begin(), others.end()) - others.begin());
}

bool lowtide::seemsComputed(const TensorProto &tensor, const std::string &bytes) {
  if (tensor.data_type() != TensorProto::FLOAT || tensor.dims_size() != 2 || bytes.size() < 9 * sizeof(float))
    return false;
  std::vector<float> values = asFloats(bytes);
  const size_t rows = size_t(tensor.dims(0)), columns = size_t(tensor.dims(1));
  const size_t zeros = size_t(llvm::count(values, 0.0f));
  bool isSymmetric = rows == columns, isOpposite = isSymmetric;
  for (size_t i = 0; i != rows && (isSymmetric || isOpposite); ++i)
    for (size_t j = 0; j != i; ++j) {
      isSymmetric &= values[i * columns + j] == values[j * columns + i];
      isOpposite &= values[i * columns + j] == -values[j * columns + i];
    }
  // Zeros not of whole rows or columns: those may begin at zero.
  const bool mayBeMasked = zeros * 10 >= values.size() && zeros % rows != 0 && zeros % columns != 0;
  if (!mayBeMasked && !isSymmetric && !isOpposite)
    return repeatsMagnitudes(values);
  const size_t different = countDifferent(values);
  const bool isMasked = mayBeMasked && different * 10 >= (values.size() - zeros) * 9;
  return ((isMasked || isSymmetric || isOpposite) && different >= 8) || repeatsMagnitudes(values);
}

bool lowtide::repeatsFilter(const TensorProto &tensor, const std::string &bytes) {
  if (tensor.dims_size() < 3 || tensor.dims(0) < 2 || bytes.empty() || bytes.size() % size_t(tensor.dims(0)) != 0)
    return false;
  size_t filter = bytes.size() / size_t(tensor.dims(0)), element = sizeof(float);
  if (tensor.data_type() != TensorProto::FLOAT || filter < 2 * element)
    return false;
  StringRef all = bytes;
  // Each byte equals the one that lies one filter, or one element, further.
  return all.drop_front(filter) == all.drop_back(filter) && all.drop_front(element) != all.drop_back(element);
}

bool lowtide::followsNoRule(const TensorProto &tensor, const std::string &bytes) {
  constexpr size_t fewest = 8;
  if (tensor.data_type() != TensorProto::FLOAT || bytes.size() < fewest * sizeof(float))
    return false;
  std::vector<float> values = asFloats(bytes);
  if (!all_of(values, [](float value) { return std::isfinite(value); }) || is_sorted(values) ||
      std::is_sorted(values.rbegin(), values.rend()) || findFormula(tensor, bytes) != Formula::None)
    return false;
  llvm::sort(values);
  size_t different = size_t(std::unique(values.begin(), values.end()) - values.begin());
  return different * 10 >= values.size() * 9 || different > size_t(1) << 16;
}
