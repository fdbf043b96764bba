//===- OriginalNumbers.cpp - f32 numbers of weights held in 16 bits --------===//

#include "runtime/OriginalNumbers.h"

#include "runtime/Element.h"
#include "runtime/Verify.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

namespace lowtide::rt {
namespace {

constexpr uint64_t narrowBytes = 2;

/// Calls `visit(f32 number, the same rounded)` for each of `count` numbers.
template <typename Visit> void forRounded(plan::DType type, const uint8_t *numbers, uint64_t count, Visit &&visit) {
  for (uint64_t i = 0; i < count; ++i) {
    float number;
    std::memcpy(&number, numbers + i * sizeof number, sizeof number);
    uint16_t rounded;
    storeElement(type, &rounded, number);
    visit(i, rounded);
  }
}

/// Whether `narrow` holds `count` numbers rounded to bf16, and none is NaN.
bool isRoundedToBrainFloats(const uint8_t *numbers, const uint8_t *narrow, uint64_t count) {
  uint32_t different = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t bits;
    uint16_t held;
    std::memcpy(&bits, numbers + i * sizeof bits, sizeof bits);
    std::memcpy(&held, narrow + i * sizeof held, sizeof held);
    different |= (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) ^ held) | ((bits & 0x7FFFFFFF) > 0x7F800000);
  }
  return !different;
}

} // namespace

Expected<std::vector<const plan::Binding *>> findKeptOriginals(const plan::Plan &plan) {
  std::map<std::string_view, const plan::Binding *> constants;
  for (const plan::Entry &entry : plan.entries())
    for (const plan::Binding &binding : entry.bindings())
      if (binding.kind() == plan::Binding::CONSTANT)
        constants.try_emplace(binding.name(), &binding);
  std::vector<const plan::Binding *> found;
  for (const plan::ParameterSource &source : plan.sources()) {
    if (!source.keeps_original())
      continue;
    auto constant = constants.find(source.name());
    if (constant == constants.end() ||
        (constant->second->dtype() != plan::BF16 && constant->second->dtype() != plan::F16))
      return badInput("keeps f32 numbers of what is no constant of bf16 or f16",
                      "source '" + printable(source.name()) + "'");
    found.push_back(constant->second);
    constants.erase(constant); // one source each
  }
  return found;
}

OriginalNumbers::OriginalNumbers(const plan::Binding &narrow, std::span<const uint8_t> held)
    : binding_(narrow), narrowType_(narrow.dtype()), held_(held) {
  binding_.set_dtype(plan::F32);
  binding_.mutable_slice()->set_bytes(originalBytes(narrow));
}

void OriginalNumbers::reset() { own_ = {}; }

std::span<const uint8_t> OriginalNumbers::read(const uint8_t *narrow, std::vector<uint8_t> &room) const {
  const std::span<const uint8_t> known = own_.empty() ? held_ : std::span<const uint8_t>(own_);
  const uint64_t count = binding_.slice().bytes() / sizeof(float);
  std::vector<uint64_t> others;
  auto lookAt = [&](uint64_t i, uint16_t rounded) {
    if (std::memcmp(narrow + i * narrowBytes, &rounded, narrowBytes) != 0)
      others.push_back(i);
  };
  if (!known.empty()) {
    // Every checkpoint asks: in one pass that the compiler makes vector code of.
    if (narrowType_ == plan::BF16 && isRoundedToBrainFloats(known.data(), narrow, count))
      return known;
    forRounded(narrowType_, known.data(), count, lookAt);
    if (others.empty())
      return known;
    room.assign(known.begin(), known.end());
  } else {
    room.resize(count * sizeof(float));
  }
  auto widen = [&](uint64_t i) {
    storeElement(plan::F32, room.data() + i * sizeof(float), loadElement(narrowType_, narrow + i * narrowBytes));
  };
  if (known.empty())
    for (uint64_t i = 0; i < count; ++i)
      widen(i);
  for (uint64_t i : others)
    widen(i);
  return room;
}

void OriginalNumbers::write(const uint8_t *from, uint8_t *narrow) {
  const std::span<const uint8_t> numbers(from, binding_.slice().bytes());
  // A checkpoint brings the numbers of the artifact, which need no memory.
  if (std::equal(numbers.begin(), numbers.end(), held_.begin(), held_.end()))
    own_ = {};
  else
    own_.assign(numbers.begin(), numbers.end());
  forRounded(narrowType_, from, numbers.size() / sizeof(float),
             [&](uint64_t i, uint16_t rounded) { std::memcpy(narrow + i * narrowBytes, &rounded, narrowBytes); });
}

} // namespace lowtide::rt
