//===- Survey.h - what of CUDA this machine has ----------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_SURVEY_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_SURVEY_H

#include "runtime/devices/Cuda/Api.h"

#include <string>
#include <vector>

namespace lowtide::rt::cuda {

/// One line of a report: what was looked for, what was found; or what is missing and which package brings it.
struct Finding {
  std::string what, text;
  bool found = false;
};

/// Driver, GPU, cuBLASLt, cuDNN, in this order. Loads them as a session would; creates a context where there is a GPU.
std::vector<Finding> surveyCuda();

/// The libraries that are loaded, by name and version: "cuBLASLt 13.1.0".
std::vector<std::string> listLibraries(const Api &api);

/// The first visible GPU in words; takes its context and gives it back.
Expected<std::string> describeGpu(const Api &api);

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_SURVEY_H
