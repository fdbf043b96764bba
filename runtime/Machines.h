//===- Machines.h - which machines run an artifact, in words ---------------===//
//
// What a target asks of a machine, for reports and for refusals.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_MACHINES_H
#define LOWTIDE_RUNTIME_MACHINES_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lowtide::rt {

/// A GPU's compute capability, 10 · major + minor, and whether code for it runs on no other.
struct Capability {
  uint32_t number;
  bool isOnly;
};

/// The capability that a target asks for: "cuda:sm_90" → 90, "cuda:sm_90a" → 90 and no other; nothing: it asks for no
/// GPU, or says it in another way.
std::optional<Capability> readCapability(std::string_view target);

/// "NVIDIA GPUs of compute capability 9.0 and later"; what artifacts for `target` run on. Empty: the target is not
/// known.
std::string describeMachines(std::string_view target);

/// Why a GPU of capability `own` (10 · major + minor) runs no artifact for `target`, and what to do; empty: it runs
/// them, or they ask for no GPU.
std::string refuseGpu(std::string_view target, uint32_t own);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_MACHINES_H
