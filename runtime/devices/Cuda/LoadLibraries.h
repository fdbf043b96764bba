//===- LoadLibraries.h - where CUDA's shared libraries are found -----------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_LOADLIBRARIES_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_LOADLIBRARIES_H

#include "runtime/Status.h"

#include <compare>
#include <initializer_list>
#include <string>

namespace lowtide::rt::cuda {

struct LibraryVersion {
  int major = 0, minor = 0;
  auto operator<=>(const LibraryVersion &) const = default;
  std::string str() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// The first cuDNN whose attention takes columns of any number (LibraryTable.cpp).
inline constexpr LibraryVersion leastAttentionVersion{9, 16};

/// Opens the first of `names` that the loader, CUDA's folder or a Python package's folder has; `path` says where it was
/// found. One whose file says that it is older than `least` is taken only where no other is found. Device and the words
/// of `missing` where there is none. It stays open until the process ends.
Expected<void *> openLibrary(std::initializer_list<const char *> names, const std::string &missing, std::string &path,
                             LibraryVersion least = {});

/// What is said where a step calls `library`, and its file is not there: with the packages that bring it.
std::string missingLibrary(const char *library, const char *file, const char *debianPackage, const char *pythonPackage);

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_LOADLIBRARIES_H
