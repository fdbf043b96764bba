//===- LoadLibraries.cpp - CUDA's shared libraries, found at run time ------===//
//
// Search order of NVIDIA's libraries: what the loader finds by itself (LD_LIBRARY_PATH, ldconfig), CUDA's folder, then
// the folders of the Python packages (nvidia/*/lib below every site-packages that PYTHONPATH, VIRTUAL_ENV,
// CONDA_PREFIX, a python3 on PATH or the usual places name). A library that is older than what a step needs is passed
// over while a newer one may follow: a system's cuDNN is often older than the one that PyTorch brings.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/LoadLibraries.h"
#include "runtime/devices/Cuda/Api.h"
#include "runtime/devices/Cuda/Nvtx.h"

#include <charconv>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <optional>
#include <vector>

namespace lowtide::rt::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> pathsOf(const char *variable) {
  std::vector<std::string> paths;
  const char *value = std::getenv(variable);
  std::string text = value ? value : "";
  for (size_t at = 0; at < text.size();) {
    size_t colon = std::min(text.find(':', at), text.size());
    if (colon > at)
      paths.push_back(text.substr(at, colon - at));
    at = colon + 1;
  }
  return paths;
}

/// Folders that hold Python packages.
std::vector<fs::path> sitePackages() {
  std::vector<fs::path> found;
  auto add = [&](const fs::path &path) {
    std::error_code error;
    if (fs::is_directory(path / "nvidia", error))
      found.push_back(path);
  };
  for (const std::string &path : pathsOf("PYTHONPATH"))
    add(path);
  std::vector<fs::path> prefixes;
  for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char *value = std::getenv(variable))
      prefixes.emplace_back(value);
  // An environment that is not activated, but whose programs are at hand.
  for (const std::string &path : pathsOf("PATH")) {
    std::error_code error;
    const fs::path programs = fs::path(path).lexically_normal() / "";
    if (programs.parent_path().filename() == "bin" && fs::exists(programs / "python3", error))
      prefixes.push_back(programs.parent_path().parent_path());
  }
  if (const char *home = std::getenv("HOME"))
    prefixes.push_back(fs::path(home) / ".local");
  for (const char *prefix : {"/usr/local", "/usr", "/opt/conda"})
    prefixes.emplace_back(prefix);
  for (const fs::path &prefix : prefixes) {
    std::error_code error;
    for (const fs::directory_entry &entry : fs::directory_iterator(prefix / "lib", error))
      if (entry.path().filename().string().rfind("python3", 0) == 0) {
        add(entry.path() / "site-packages");
        add(entry.path() / "dist-packages");
      }
  }
  return found;
}

/// Folders in which NVIDIA's libraries are looked for when the loader does not find them itself.
std::vector<fs::path> libraryFolders() {
  std::vector<fs::path> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *value = std::getenv(variable)) {
      folders.push_back(fs::path(value) / "lib64");
      folders.push_back(fs::path(value) / "lib");
    }
  folders.push_back("/usr/local/cuda/lib64");
  for (const fs::path &packages : sitePackages()) {
    std::error_code error;
    for (const fs::directory_entry &entry : fs::directory_iterator(packages / "nvidia", error))
      folders.push_back(entry.path() / "lib");
  }
  return folders;
}

/// "9.14.0" and what follows, as the numbers before and after the first dot.
std::optional<LibraryVersion> readVersion(std::string_view text) {
  LibraryVersion version;
  const char *end = text.data() + text.size();
  auto [dot, error] = std::from_chars(text.data(), end, version.major);
  if (error != std::errc() || dot == end || *dot != '.' ||
      std::from_chars(dot + 1, end, version.minor).ec != std::errc())
    return std::nullopt;
  return version;
}

/// The version of an open library by the names of files, without a call: a call may load further parts of it, which
/// would then stay. Of a system's, the name that its links end at (libcudnn.so.9.14.0); of a Python package's
/// (site-packages/nvidia/cudnn/lib), what stands next to it (nvidia_cudnn_cu13-9.19.0.56.dist-info).
std::optional<LibraryVersion> versionOf(void *library) {
  link_map *map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) || !map)
    return std::nullopt;
  std::error_code error;
  const fs::path file = fs::canonical(map->l_name, error);
  const std::string name = file.filename().string();
  if (size_t at = name.find(".so."); at != std::string::npos)
    if (std::optional<LibraryVersion> version = readVersion(std::string_view(name).substr(at + 4)))
      return version;
  const fs::path package = file.parent_path().parent_path();
  const std::string prefix = "nvidia_" + package.filename().string();
  for (const fs::directory_entry &entry : fs::directory_iterator(package.parent_path().parent_path(), error)) {
    const std::string found = entry.path().filename().string();
    const size_t dash = found.find('-');
    if (found.rfind(prefix, 0) == 0 && dash != std::string::npos && found.ends_with(".dist-info"))
      return readVersion(std::string_view(found).substr(dash + 1));
  }
  return std::nullopt;
}

template <typename Function> Status resolve(void *library, const char *symbol, const std::string &path, Function &to) {
  to = reinterpret_cast<Function>(::dlsym(library, symbol));
  if (to)
    return Status::ok();
  return {StatusCode::Device, path + " has no function " + symbol + ": it is older than the runtime needs; update it"};
}

/// Opens a library and lets `fill` look up its functions; `path` says where it was found, once all of them are there.
template <typename Fill>
Status load(std::initializer_list<const char *> names, const std::string &missing, std::string &path, Fill &&fill,
            LibraryVersion least = {}) {
  if (!path.empty())
    return Status::ok();
  std::string found;
  Expected<void *> library = openLibrary(names, missing, found, least);
  if (!library)
    return library.takeStatus();
  LOWTIDE_TRY(fill(*library, found));
  path = found;
  return Status::ok();
}

} // namespace

Expected<void *> openLibrary(std::initializer_list<const char *> names, const std::string &missing, std::string &path,
                             LibraryVersion least) {
  std::string old;
  auto open = [&](const std::string &file) -> void * {
    void *library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return nullptr;
    if (std::optional<LibraryVersion> version = versionOf(library); version && *version < least) {
      if (old.empty())
        old = file;
      ::dlclose(library);
      return nullptr;
    }
    path = file;
    return library;
  };
  for (const char *name : names)
    if (void *library = open(name))
      return library;
  for (const fs::path &folder : libraryFolders())
    for (const char *name : names) {
      std::error_code error;
      fs::path file = folder / name;
      if (fs::exists(file, error))
        if (void *library = open(file.string()))
          return library;
    }
  // What needs a newer one says so; the rest of a library's calls work.
  least = {};
  if (void *library = old.empty() ? nullptr : open(old))
    return library;
  return Status(StatusCode::Device, missing);
}

std::string missingLibrary(const char *library, const char *file, const char *debianPackage,
                           const char *pythonPackage) {
  return std::string("the step calls ") + library + ", and " + file +
         " is not on this machine; install the Debian package " + debianPackage + " or the Python package " +
         pythonPackage;
}

#define LOWTIDE_CUDA_RESOLVE(table, name, symbol) LOWTIDE_TRY(resolve(library, #symbol, path, table.name));

Status loadDriver(Api &api) {
  return load(
      {"libcuda.so.1"},
      "no CUDA driver: libcuda.so.1 is not on this machine; install NVIDIA's driver (Debian: nvidia-driver), or "
      "compile with --target=cpu, or with --target=cuda-emulated to check the GPU program without a GPU",
      api.driverPath, [&](void *library, const std::string &path) {
#define LOWTIDE_CUDA_OF_DRIVER(name, symbol, parameters) LOWTIDE_CUDA_RESOLVE(api.driver, name, symbol)
        LOWTIDE_CUDA_DRIVER(LOWTIDE_CUDA_OF_DRIVER)
        return Status::ok();
      });
}

Status loadCublasLt(Api &api) {
  return load({"libcublasLt.so.13", "libcublasLt.so.12"},
              missingLibrary("cuBLASLt", "libcublasLt.so.13", "libcublas-13-0", "nvidia-cublas"), api.cublasLtPath,
              [&](void *library, const std::string &path) {
#define LOWTIDE_CUDA_OF_CUBLASLT(name, parameters) LOWTIDE_CUDA_RESOLVE(api.cublasLt, name, name)
                LOWTIDE_CUBLASLT(LOWTIDE_CUDA_OF_CUBLASLT)
                return Status::ok();
              });
}

Status loadCudnn(Api &api) {
  return load(
      {"libcudnn.so.9"}, missingLibrary("cuDNN", "libcudnn.so.9", "cudnn9-cuda-13", "nvidia-cudnn-cu13"), api.cudnnPath,
      [&](void *library, const std::string &path) {
#define LOWTIDE_CUDA_OF_CUDNN(name, parameters) LOWTIDE_CUDA_RESOLVE(api.cudnn, name, name)
        LOWTIDE_CUDNN(LOWTIDE_CUDA_OF_CUDNN)
        return Status::ok();
      },
      leastAttentionVersion);
}

NvtxApi loadNvtx2() {
  NvtxApi api;
  std::string where;
  // A profiler's names are no reason for a failure.
  Status status = load({"libnvToolsExt.so.1"}, "absent", where, [&](void *library, const std::string &path) {
    LOWTIDE_CUDA_RESOLVE(api, nvtxRangePushA, nvtxRangePushA)
    LOWTIDE_CUDA_RESOLVE(api, nvtxRangePop, nvtxRangePop)
    return Status::ok();
  });
  return status.isOk() ? api : NvtxApi();
}

} // namespace lowtide::rt::cuda
