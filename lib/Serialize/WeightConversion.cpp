//===- WeightConversion.cpp - weights in the types of a step --------------===//

#include "WeightConversion.h"
#include "lowtide/Serialize/CodedWeights.h"
#include "runtime/Element.h"
#include "runtime/Halves.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace lowtide;

std::optional<CodedPart> CodedPart::get(DictionaryAttr fields) {
  auto name = fields ? fields.getAs<StringAttr>("codec") : StringAttr();
  auto dims = fields ? fields.getAs<DenseI64ArrayAttr>("coded_dims") : DenseI64ArrayAttr();
  const std::optional<rt::FewBits> codec = name ? rt::findFewBits(name.getValue()) : std::nullopt;
  // A dimension of 2^31 elements is more than any file holds; products of two do not overflow.
  auto isSound = [](int64_t dim) { return dim > 0 && dim < (int64_t(1) << 31); };
  if (!codec || !dims || dims.size() != 2 || !isSound(dims[0]) || !isSound(dims[1]) ||
      static_cast<uint64_t>(dims[0] * dims[1]) % rt::fewBitsBlock)
    return std::nullopt;
  return CodedPart{*codec, !fields.contains("scales"), static_cast<uint64_t>(dims[0]), static_cast<uint64_t>(dims[1]),
                   fields.contains("coded_transposed")};
}

std::vector<float> CodedPart::order(StringRef bytes) const {
  std::vector<float> numbers(rows * columns);
  if (!isTransposed) {
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
    return numbers;
  }
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t column = 0; column < columns; ++column)
      std::memcpy(&numbers[row * columns + column], bytes.data() + (column * rows + row) * sizeof(float),
                  sizeof(float));
  return numbers;
}

WeightConversion::WeightConversion(Type element, DictionaryAttr fields, bool isSplit)
    : coded(CodedPart::get(fields)), isSplit(isSplit) {
  if (element.isF64())
    type = plan::F64;
  else if (element.isF16())
    type = plan::F16;
  else if (element.isBF16())
    type = plan::BF16;
  else if (isSplit)
    type = plan::I16;
  if (type)
    elementBytes = element.getIntOrFloatBitWidth() / 8;
}

namespace {
struct Encoded {
  std::vector<float> numbers, scales;
  std::vector<uint8_t> codes;
};
} // namespace

static std::string encode(const CodedPart &part, StringRef bytes, Encoded &result) {
  const uint64_t count = part.rows * part.columns, blocks = count / rt::fewBitsBlock;
  if (bytes.size() != count * sizeof(float))
    return "has " + std::to_string(bytes.size()) + " bytes, and a matrix of " + std::to_string(part.rows) + " × " +
           std::to_string(part.columns) + " f32 numbers is to be encoded";
  result.numbers = part.order(bytes);
  result.scales.resize(blocks);
  result.codes.resize(blocks * rt::blockBytes(part.codec));
  if (std::optional<uint64_t> at =
          rt::encodeFewBits(part.codec, result.numbers, result.codes.data(), result.scales.data()))
    return "holds a number that is not finite (" + std::to_string(result.numbers[*at]) +
           "), for which there is no code";
  return {};
}

std::string lowtide::measureCoded(DictionaryAttr coded, StringRef bytes, CodedError &error) {
  const std::optional<CodedPart> part = CodedPart::get(coded);
  Encoded encoded;
  if (!part)
    return "is not said to be held in codes";
  if (std::string fault = encode(*part, bytes, encoded); !fault.empty())
    return fault;
  std::vector<float> decoded(encoded.numbers.size());
  rt::decodeFewBits(part->codec, encoded.codes.data(), encoded.scales.data(), decoded);
  double largest = 0, squares = 0;
  for (auto [number, held] : llvm::zip_equal(encoded.numbers, decoded)) {
    const double difference = double(held) - double(number);
    largest = std::max(largest, std::fabs(double(number)));
    squares += double(number) * double(number);
    error.largest = std::max(error.largest, std::fabs(difference));
    error.rms += difference * difference;
  }
  error.largest = largest > 0 ? error.largest / largest : 0;
  error.rms = squares > 0 ? std::sqrt(error.rms / squares) : 0;
  error.bytesBefore = bytes.size();
  error.bytes = encoded.codes.size() + encoded.scales.size() * sizeof(float);
  return {};
}

std::string WeightConversion::apply(std::string &bytes, uint64_t expected) const {
  if (coded) {
    Encoded encoded;
    if (std::string fault = encode(*coded, bytes, encoded); !fault.empty())
      return fault;
    if (coded->isScale)
      bytes.assign(reinterpret_cast<const char *>(encoded.scales.data()), encoded.scales.size() * sizeof(float));
    else
      bytes.assign(reinterpret_cast<const char *>(encoded.codes.data()), encoded.codes.size());
  }
  if (!type)
    return {};
  const uint64_t count = expected / elementBytes;
  if (type == plan::F64 && bytes.size() == count * sizeof(uint16_t))
    return "holds numbers of 16 bits, and a step in f64 starts from f32 or f64 ones: export the module in float32";
  if (bytes.size() == expected && type == plan::I16)
    bytes.assign(expected, '\0');
  if (bytes.size() == expected || bytes.size() != count * sizeof(float))
    return {};
  std::string result(expected, '\0');
  for (uint64_t i = 0; i < count; ++i) {
    float from;
    std::memcpy(&from, bytes.data() + i * sizeof(float), sizeof(float));
    if (isSplit) {
      const rt::Halves halves = rt::splitNumber(from);
      std::memcpy(result.data() + i * elementBytes, type == plan::I16 ? &halves.low : &halves.high, elementBytes);
    } else {
      rt::storeElement(*type, result.data() + i * elementBytes, from);
    }
  }
  bytes = std::move(result);
  return {};
}
