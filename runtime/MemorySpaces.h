//===- MemorySpaces.h - where arenas lie, and which way copies go ----------===//
#ifndef LOWTIDE_RUNTIME_MEMORYSPACES_H
#define LOWTIDE_RUNTIME_MEMORYSPACES_H

#include "plan.pb.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lowtide::rt {

/// "device", "host_pinned", "host", "file"; of a number that is no space, the number.
inline std::string showSpace(plan::Arena::Space space) {
  switch (space) {
  case plan::Arena::DEVICE:
    return "device";
  case plan::Arena::HOST_PINNED:
    return "host_pinned";
  case plan::Arena::HOST:
    return "host";
  case plan::Arena::FILE:
    return "file";
  default:
    return std::to_string(static_cast<int>(space));
  }
}

/// Which engine makes a copy.
enum class CopyDirection : uint8_t { Within, FromDevice, ToDevice };

/// What the spaces of source and target say; nothing: no copy goes between them.
inline std::optional<CopyDirection> findDirection(plan::Arena::Space source, plan::Arena::Space target) {
  const bool isFrom = source == plan::Arena::DEVICE, isTo = target == plan::Arena::DEVICE;
  if (!isFrom && !isTo)
    return std::nullopt;
  return isFrom && isTo ? CopyDirection::Within : isFrom ? CopyDirection::FromDevice : CopyDirection::ToDevice;
}

/// Whether no slice lies in an arena of the role.
inline bool isOfRuntime(plan::Arena::Role role) { return role > plan::Arena::IO; }

/// Whether it holds what a step makes and forgets, where it is computed.
inline bool isDeviceTransient(const plan::Arena &arena) {
  return arena.role() == plan::Arena::TRANSIENT && arena.space() == plan::Arena::DEVICE;
}

/// Bytes of the arenas in a space.
inline uint64_t countPlannedBytes(const plan::Plan &plan, plan::Arena::Space space) {
  uint64_t bytes = 0;
  for (const plan::Arena &arena : plan.arenas())
    bytes += arena.space() == space ? arena.bytes() : 0;
  return bytes;
}

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_MEMORYSPACES_H
