//===- LoadLibraries.cpp - CUDA's shared libraries, found at run time ------===//
//
// Search order of NVIDIA's libraries: what the loader finds by itself (LD_LIBRARY_PATH, ldconfig), CUDA's folder, then
// the folders of the Python packages (nvidia/*/lib below every site-packages that PYTHONPATH, VIRTUAL_ENV, CONDA_PREFIX
// or the usual places name).
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/Api.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
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

/// Opens the first of `names` that can be opened; `path` says where it was found.
void *openFirst(std::initializer_list<const char *> names, std::string &path) {
  for (const char *name : names)
    if (void *library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      path = name;
      return library;
    }
  for (const fs::path &folder : libraryFolders())
    for (const char *name : names) {
      std::error_code error;
      fs::path file = folder / name;
      if (!fs::exists(file, error))
        continue;
      if (void *library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        path = file.string();
        return library;
      }
    }
  return nullptr;
}

template <typename Function> Status resolve(void *library, const char *symbol, const std::string &path, Function &to) {
  to = reinterpret_cast<Function>(::dlsym(library, symbol));
  if (to)
    return Status::ok();
  return {StatusCode::Device, path + " has no function " + symbol + ": it is older than the runtime needs; update it"};
}

} // namespace

Status loadDriver(Api &api) {
  std::string path;
  void *library = openFirst({"libcuda.so.1"}, path);
  if (!library)
    return {StatusCode::Device,
            "no CUDA driver: libcuda.so.1 is not on this machine; install NVIDIA's driver (Debian: nvidia-driver), or "
            "compile with --target=cpu, or with --target=cuda-emulated to check the GPU program without a GPU"};
#define LOWTIDE_CUDA_RESOLVE(name, symbol, parameters) LOWTIDE_TRY(resolve(library, #symbol, path, api.driver.name));
  LOWTIDE_CUDA_DRIVER(LOWTIDE_CUDA_RESOLVE)
#undef LOWTIDE_CUDA_RESOLVE
  api.driverPath = path;
  return Status::ok();
}

Status loadCublasLt(Api &api) {
  if (api.cublasLt.cublasLtCreate)
    return Status::ok();
  std::string path;
  void *library = openFirst({"libcublasLt.so.13", "libcublasLt.so.12"}, path);
  if (!library)
    return {StatusCode::Device, "the step calls cuBLASLt, and libcublasLt.so.13 is not on this machine; install the "
                                "Debian package libcublas-13-0 or the Python package nvidia-cublas"};
#define LOWTIDE_CUDA_RESOLVE(name, parameters) LOWTIDE_TRY(resolve(library, #name, path, api.cublasLt.name));
  LOWTIDE_CUBLASLT(LOWTIDE_CUDA_RESOLVE)
#undef LOWTIDE_CUDA_RESOLVE
  api.cublasLtPath = path;
  return Status::ok();
}

Status loadCudnn(Api &api) {
  if (api.cudnn.cudnnCreate)
    return Status::ok();
  std::string path;
  void *library = openFirst({"libcudnn.so.9"}, path);
  if (!library)
    return {StatusCode::Device, "the step calls cuDNN, and libcudnn.so.9 is not on this machine; install the Debian "
                                "package cudnn9-cuda-13 or the Python package nvidia-cudnn-cu13"};
#define LOWTIDE_CUDA_RESOLVE(name, parameters) LOWTIDE_TRY(resolve(library, #name, path, api.cudnn.name));
  LOWTIDE_CUDNN(LOWTIDE_CUDA_RESOLVE)
#undef LOWTIDE_CUDA_RESOLVE
  api.cudnnPath = path;
  return Status::ok();
}

} // namespace lowtide::rt::cuda
