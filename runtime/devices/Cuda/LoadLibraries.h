//===- LoadLibraries.h - where CUDA's shared libraries are found -----------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_LOADLIBRARIES_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_LOADLIBRARIES_H

#include "runtime/Status.h"

#include <initializer_list>
#include <string>

namespace lowtide::rt::cuda {

/// Opens the first of `names` that the loader, CUDA's folder or a Python package's folder has; `path` says where it was
/// found. Device and the words of `missing` where there is none. It stays open until the process ends.
Expected<void *> openLibrary(std::initializer_list<const char *> names, const std::string &missing, std::string &path);

/// What is said where a step calls `library`, and its file is not there: with the packages that bring it.
std::string missingLibrary(const char *library, const char *file, const char *debianPackage, const char *pythonPackage);

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_LOADLIBRARIES_H
