//===- RandomInit.cpp - a start for parameters whose weights are absent ----===//

#include "runtime/RandomInit.h"

#include "runtime/Element.h"
#include "runtime/Sha256.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace lowtide::rt {

uint64_t counterRandom(uint64_t seed, uint64_t counter) {
  // SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014), position `counter`.
  uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// In (0, 1).
static double uniform(uint64_t seed, uint64_t counter) {
  return (static_cast<double>(counterRandom(seed, counter) >> 11) + 0.5) * 0x1p-53;
}

bool startsRandomly(const plan::Plan &plan, const plan::Binding &binding) {
  for (const plan::ParameterSource &source : plan.sources())
    if (source.name() == binding.name())
      return !source.random_init().empty() && source.initializer().empty();
  return false;
}

bool startsAsNorm(const plan::Plan &plan, const plan::Binding &binding) {
  const auto &sources = plan.sources();
  const auto &adapters = plan.adapters();
  return std::any_of(sources.begin(), sources.end(),
                     [&](const plan::ParameterSource &source) {
                       return source.name() == binding.name() && source.random_init() == "norm";
                     }) &&
         std::any_of(adapters.begin(), adapters.end(), [&](const plan::Adapter &adapter) {
           return adapter.magnitude() == binding.name() || adapter.norm() == binding.name();
         });
}

Status initializeRandomly(const plan::Plan &plan, const plan::Binding &binding, uint64_t seed, uint64_t begin,
                          std::span<uint8_t> part) {
  std::string rule = "normal:0.02";
  for (const plan::ParameterSource &source : plan.sources())
    if (source.name() == binding.name() && !source.random_init().empty())
      rule = source.random_init();
  std::string kind = rule.substr(0, rule.find(':'));
  double scale = 0;
  if (size_t colon = rule.find(':'); colon != std::string::npos)
    scale = std::strtod(rule.c_str() + colon + 1, nullptr);
  if (kind == "zeros" || kind == "ones") {
    fillElements(binding.dtype(), part.data(), part.size(), kind == "ones");
    return Status::ok();
  }
  if ((kind != "normal" && kind != "uniform") || !std::isfinite(scale) || scale < 0)
    return badInput("initialization '" + printable(rule) + "' is unknown",
                    "parameter '" + printable(binding.name()) + "'");
  Digest digest = Sha256::of(binding.name().data(), binding.name().size());
  uint64_t stream;
  std::memcpy(&stream, digest.data(), sizeof stream);
  stream ^= counterRandom(seed, 0);
  uint64_t size = elementBytes(binding.dtype());
  for (uint64_t i = begin / size; i * size < begin + part.size(); ++i) {
    double value;
    if (kind == "uniform")
      value = scale * (2 * uniform(stream, i) - 1);
    else // Box and Muller
      value = scale * std::sqrt(-2 * std::log(uniform(stream, 2 * i))) *
              std::cos(2 * std::numbers::pi * uniform(stream, 2 * i + 1));
    storeElement(binding.dtype(), part.data() + (i * size - begin), value);
  }
  return Status::ok();
}

} // namespace lowtide::rt
