//===- Survey.cpp - what of CUDA this machine has --------------------------===//

#include "runtime/devices/Cuda/Survey.h"

#include "runtime/devices/Cuda/Resources.h"

namespace lowtide::rt::cuda {

Expected<std::string> describeGpu(const Api &api) {
  Resources resources(api);
  LOWTIDE_TRY(resources.open());
  char name[256] = {};
  int major = 0, minor = 0, processors = 0;
  size_t total = 0, free = 0;
  CUdevice device = resources.device();
  LOWTIDE_CUDA(api, driver, cuDeviceGetName, name, sizeof name, device);
  LOWTIDE_CUDA(api, driver, cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  LOWTIDE_CUDA(api, driver, cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  LOWTIDE_CUDA(api, driver, cuDeviceGetAttribute, &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  LOWTIDE_CUDA(api, driver, cuMemGetInfo, &free, &total);
  std::string text = printable(name) + ", sm_" + std::to_string(major) + std::to_string(minor) + ", " +
                     std::to_string(processors) + " multiprocessors, " + std::to_string(free >> 20) + " of " +
                     std::to_string(total >> 20) + " MiB free";
  LOWTIDE_TRY(resources.close());
  return text;
}

/// "13.1.0", as the library itself says.
template <typename GetProperty>
static std::string readVersion(const Api &api, GetProperty getProperty, const char *call) {
  std::string version;
  for (libraryPropertyType property : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    if (Status status = api.check(getProperty(property, &number), call); !status.isOk())
      return "of unknown version: " + status.message();
    version += (version.empty() ? "" : ".") + std::to_string(number);
  }
  return version;
}
static std::string readCublasLtVersion(const Api &api) {
  return readVersion(api, api.cublasLt.cublasLtGetProperty, "cublasLtGetProperty");
}
static std::string readCudnnVersion(const Api &api) {
  return readVersion(api, api.cudnn.cudnnGetProperty, "cudnnGetProperty");
}

std::vector<std::string> listLibraries(const Api &api) {
  std::vector<std::string> libraries;
  if (api.cublasLt.cublasLtGetProperty)
    libraries.push_back("cuBLASLt " + readCublasLtVersion(api));
  if (api.cudnn.cudnnGetProperty)
    libraries.push_back("cuDNN " + readCudnnVersion(api));
  return libraries;
}

std::vector<Finding> surveyCuda() {
  std::vector<Finding> findings;
  Api api;
  auto add = [&](const char *what, const Status &status, const std::string &text) {
    findings.push_back({what, status.isOk() ? text : status.message(), status.isOk()});
  };
  Status driver = loadDriver(api);
  int version = 0;
  if (driver.isOk())
    (void)api.driver.cuDriverGetVersion(&version);
  add("driver", driver,
      api.driverPath + ", CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10));
  if (driver.isOk()) {
    Expected<std::string> gpu = describeGpu(api);
    add("gpu", gpu ? Status::ok() : gpu.status(), gpu ? *gpu : "");
  } else {
    add("gpu", {StatusCode::Device, "none without a driver"}, "");
  }
  Status cublasLt = loadCublasLt(api);
  add("cublaslt", cublasLt, cublasLt.isOk() ? api.cublasLtPath + ", " + readCublasLtVersion(api) : "");
  Status cudnn = loadCudnn(api);
  add("cudnn", cudnn, cudnn.isOk() ? api.cudnnPath + ", " + readCudnnVersion(api) : "");
  return findings;
}

} // namespace lowtide::rt::cuda
