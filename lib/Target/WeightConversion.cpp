//===- WeightConversion.cpp - weights in the types of a step --------------===//

#include "WeightConversion.h"
#include "runtime/Element.h"

#include <cstring>

using namespace lowtide;

WeightConversion::WeightConversion(mlir::Type element) {
  if (element.isF64())
    type = plan::F64;
  else if (element.isF16())
    type = plan::F16;
  else if (element.isBF16())
    type = plan::BF16;
  if (type)
    elementBytes = element.getIntOrFloatBitWidth() / 8;
}

void WeightConversion::apply(std::string &bytes, uint64_t expected) const {
  const uint64_t count = expected / elementBytes;
  if (bytes.size() == expected || bytes.size() != count * sizeof(float))
    return;
  std::string result(expected, '\0');
  for (uint64_t i = 0; i < count; ++i) {
    float from;
    std::memcpy(&from, bytes.data() + i * sizeof(float), sizeof(float));
    rt::storeElement(*type, result.data() + i * elementBytes, from);
  }
  bytes = std::move(result);
}
