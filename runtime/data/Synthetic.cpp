//===- Synthetic.cpp - batches that are made up on the spot ----------------===//

#include "runtime/Element.h"
#include "runtime/RandomInit.h"
#include "runtime/data/Feeder.h"

#include <cmath>
#include <numbers>

namespace lowtide::rt {

/// Normal numbers for floating-point arrays, 0 and 1 for integers: within any vocabulary or number of classes above
/// one.
void Feeder::synthesize(const Column &column, int64_t step, uint8_t *to) const {
  const plan::Binding &binding = *column.tensor.binding;
  uint64_t size = elementBytes(binding.dtype()), count = column.tensor.bytes() / size;
  uint64_t seed = counterRandom(*synthetic_, static_cast<uint64_t>(&column - columns_.data()));
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = counterRandom(seed, static_cast<uint64_t>(step) * count + i);
    if (!isFloat(binding.dtype())) {
      storeInteger(binding.dtype(), to + i * size, static_cast<int64_t>(bits % 2));
      continue;
    }
    double u = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32, v = static_cast<double>(bits & 0xffffffff) * 0x1p-32;
    storeElement(binding.dtype(), to + i * size, std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
  }
}

} // namespace lowtide::rt
