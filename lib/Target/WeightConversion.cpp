//===- WeightConversion.cpp - weights in the types of a step --------------===//

#include "WeightConversion.h"
#include "runtime/Element.h"
#include "runtime/Halves.h"

#include <cstring>

using namespace lowtide;

WeightConversion::WeightConversion(mlir::Type element, bool isSplit) : isSplit(isSplit) {
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

void WeightConversion::apply(std::string &bytes, uint64_t expected) const {
  const uint64_t count = expected / elementBytes;
  if (bytes.size() == expected && type == plan::I16)
    bytes.assign(expected, '\0');
  if (bytes.size() == expected || bytes.size() != count * sizeof(float))
    return;
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
}
