//===- Machines.cpp - which machines run an artifact, in words -------------===//

#include "runtime/Machines.h"

#include <charconv>

namespace lowtide::rt {

/// Kernels need bf16 numbers.
static constexpr uint32_t oldestCapability = 80;

std::optional<Capability> readCapability(std::string_view target) {
  constexpr std::string_view prefix = "cuda:sm_";
  if (target.substr(0, prefix.size()) != prefix)
    return std::nullopt;
  target.remove_prefix(prefix.size());
  Capability capability{0, false};
  auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), capability.number);
  const std::string_view rest(end, static_cast<size_t>(target.data() + target.size() - end));
  if (error != std::errc() || (!rest.empty() && rest != "a"))
    return std::nullopt;
  capability.isOnly = rest == "a";
  return capability;
}

/// "9.0".
static std::string showCapability(uint32_t number) {
  return std::to_string(number / 10) + "." + std::to_string(number % 10);
}

std::string describeMachines(std::string_view target) {
  const char *const common = "x86-64 CPUs with AVX2 and FMA (Intel from Haswell, AMD from Excavator on)";
  if (target == "cpu:x86-64-v3" || target == "reference" || target == "cuda-emulated")
    return common;
  if (target == "cpu:x86-64-v4")
    return "x86-64 CPUs with AVX-512 F, BW, DQ and VL (Intel servers from Skylake, AMD from Zen 4 on)";
  const std::optional<Capability> capability = readCapability(target);
  if (!capability)
    return "";
  return "NVIDIA GPUs of compute capability " + showCapability(capability->number) +
         (capability->isOnly ? ", and no others" : " and later");
}

std::string refuseGpu(std::string_view target, uint32_t own) {
  const std::optional<Capability> asked = readCapability(target);
  if (!asked || (asked->isOnly ? own == asked->number : own >= asked->number))
    return "";
  return "compiled for " + std::string(target) + ", which runs on " + describeMachines(target) + "; this GPU has " +
         showCapability(own) +
         (own < oldestCapability ? ", and no target is for one below " + showCapability(oldestCapability)
                                 : ": compile with --target=cuda:sm_" + std::to_string(own));
}

} // namespace lowtide::rt
