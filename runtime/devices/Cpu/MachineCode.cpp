//===- MachineCode.cpp - the `code` section, loaded ------------------------===//

#include "runtime/devices/Cpu/MachineCode.h"

#include "runtime/Machines.h"
#include "runtime/kernels/WideVectors.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace lowtide::rt {

Status checkTarget(const std::string &target) {
  auto starts = [&](const char *prefix) { return target.rfind(prefix, 0) == 0; };
  if (!starts("cpu") && !starts("reference"))
    return {StatusCode::Unsupported, "compiled for target '" + printable(target) +
                                         "'; this runtime executes cpu, reference, cuda:<chip> and cuda-emulated"};
  const std::string machines = describeMachines(target);
  const std::string asks =
      "compiled for " + printable(target) + (machines.empty() ? "" : ", which runs on " + machines);
#if defined(__x86_64__)
  __builtin_cpu_init();
  // The library calls need AVX2 whatever the target says.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return {StatusCode::Unsupported, asks + "; this machine has no AVX2 with FMA"};
  if (target.find("x86-64-v4") != std::string::npos && !kernels::hasWideVectors())
    return {StatusCode::Unsupported, asks + "; this machine has no AVX-512: compile with --target=cpu:x86-64-v3"};
#else
  if (target.find("x86-64") != std::string::npos)
    return {StatusCode::Unsupported, asks + "; this machine is not of that kind"};
#endif
  return Status::ok();
}

static Status systemError(const char *what) {
  return {StatusCode::Device, std::string(what) + ": " + std::strerror(errno), "section 'code'"};
}

Expected<std::unique_ptr<MachineCode>> MachineCode::load(std::span<const uint8_t> elf) {
  std::unique_ptr<MachineCode> code(new MachineCode);
  code->file_ = ::memfd_create("lowtide-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (code->file_ < 0)
    return systemError("cannot create an in-memory file");
  for (size_t done = 0; done < elf.size();) {
    ssize_t written = ::write(code->file_, elf.data() + done, elf.size() - done);
    if (written < 0 && errno != EINTR)
      return systemError("cannot write to the in-memory file");
    done += written > 0 ? static_cast<size_t>(written) : 0;
  }
  if (::fcntl(code->file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
    return systemError("cannot seal the in-memory file");
  std::string path = "/proc/self/fd/" + std::to_string(code->file_);
  code->library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!code->library_) {
    const char *reason = ::dlerror();
    return Status(StatusCode::Device, std::string("cannot load the machine code: ") + (reason ? reason : "unknown"),
                  "section 'code'");
  }
  return code;
}

MachineCode::~MachineCode() {
  if (library_)
    ::dlclose(library_);
  if (file_ >= 0)
    ::close(file_);
}

Expected<void *> MachineCode::symbol(const std::string &symbol) const {
  void *address = find(symbol.c_str());
  if (!address)
    return badInput("the machine code has no kernel '" + printable(symbol) + "'", "section 'code'");
  return address;
}

void *MachineCode::find(const char *symbol) const { return ::dlsym(library_, symbol); }

} // namespace lowtide::rt
