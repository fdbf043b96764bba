//===- MachineCode.h - the `code` section, loaded --------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CPU_MACHINECODE_H
#define LOWTIDE_RUNTIME_DEVICES_CPU_MACHINECODE_H

#include "runtime/Status.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace lowtide::rt {

/// A generated kernel (plan.proto, Kernel).
using KernelFunction = void (*)(void *const *args, int64_t begin, int64_t end);

/// Says in words what this machine lacks for `target` ("cpu:x86-64-v3", "reference", …).
Status checkTarget(const std::string &target);

/// A shared object loaded from memory: it is written to a sealed in-memory file, so that nothing can change it between
/// its check and its execution. Unloaded with the object.
class MachineCode {
public:
  static Expected<std::unique_ptr<MachineCode>> load(std::span<const uint8_t> elf);
  ~MachineCode();
  MachineCode(const MachineCode &) = delete;
  MachineCode &operator=(const MachineCode &) = delete;

  /// Address of a function; fails if the code has none of that name.
  Expected<void *> symbol(const std::string &symbol) const;
  /// Address of a symbol, or null.
  void *find(const char *symbol) const;

private:
  MachineCode() = default;
  int file_ = -1;
  void *library_ = nullptr;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_CPU_MACHINECODE_H
