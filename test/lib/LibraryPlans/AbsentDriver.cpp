//===- AbsentDriver.cpp - libcuda.so.1 of a machine without a device -------===//
//
// cuDNN loads the driver before it compiles a kernel, and loads what it has compiled. This one has no device, loads
// every kernel and launches none: all that making a plan takes. These are the functions that cuDNN 9.16 to 9.26 look
// up.
//
//===----------------------------------------------------------------------===//

namespace {

enum Result : int { Success = 0, NoDevice = 100 };

int something;

Result make(void **handle) {
  *handle = &something;
  return Success;
}

} // namespace

extern "C" {

Result cuInit(unsigned) { return NoDevice; }
Result cuDeviceGetCount(int *count) {
  *count = 0;
  return Success;
}
Result cuLibraryLoadData(void **library) { return make(library); }
Result cuLibraryGetKernel(void **kernel) { return make(kernel); }
Result cuModuleLoadData(void **module) { return make(module); }
Result cuModuleGetFunction(void **function) { return make(function); }

#define LOWTIDE_WITHOUT_DEVICE(name)                                                                                   \
  Result name() { return NoDevice; }
LOWTIDE_WITHOUT_DEVICE(cuCtxGetCurrent)
LOWTIDE_WITHOUT_DEVICE(cuCtxGetDevice)
LOWTIDE_WITHOUT_DEVICE(cuCtxGetLimit)
LOWTIDE_WITHOUT_DEVICE(cuCtxPopCurrent)
LOWTIDE_WITHOUT_DEVICE(cuCtxPushCurrent)
LOWTIDE_WITHOUT_DEVICE(cuDeviceGet)
LOWTIDE_WITHOUT_DEVICE(cuDeviceGetAttribute)
LOWTIDE_WITHOUT_DEVICE(cuDevicePrimaryCtxRelease)
LOWTIDE_WITHOUT_DEVICE(cuDevicePrimaryCtxReset)
LOWTIDE_WITHOUT_DEVICE(cuDevicePrimaryCtxRetain)
LOWTIDE_WITHOUT_DEVICE(cuDriverGetVersion)
LOWTIDE_WITHOUT_DEVICE(cuFuncGetAttribute)
LOWTIDE_WITHOUT_DEVICE(cuFuncSetAttribute)
LOWTIDE_WITHOUT_DEVICE(cuGetErrorName)
LOWTIDE_WITHOUT_DEVICE(cuGetErrorString)
LOWTIDE_WITHOUT_DEVICE(cuKernelGetAttribute)
LOWTIDE_WITHOUT_DEVICE(cuKernelGetFunction)
LOWTIDE_WITHOUT_DEVICE(cuKernelSetAttribute)
LOWTIDE_WITHOUT_DEVICE(cuLaunchCooperativeKernel)
LOWTIDE_WITHOUT_DEVICE(cuLaunchKernel)
LOWTIDE_WITHOUT_DEVICE(cuLaunchKernelEx)
LOWTIDE_WITHOUT_DEVICE(cuLibraryLoadFromFile)
LOWTIDE_WITHOUT_DEVICE(cuLibraryUnload)
LOWTIDE_WITHOUT_DEVICE(cuLinkAddData)
LOWTIDE_WITHOUT_DEVICE(cuLinkAddData_v2)
LOWTIDE_WITHOUT_DEVICE(cuLinkAddFile_v2)
LOWTIDE_WITHOUT_DEVICE(cuLinkComplete)
LOWTIDE_WITHOUT_DEVICE(cuLinkCreate)
LOWTIDE_WITHOUT_DEVICE(cuLinkCreate_v2)
LOWTIDE_WITHOUT_DEVICE(cuLinkDestroy)
LOWTIDE_WITHOUT_DEVICE(cuMemcpyDtoH_v2)
LOWTIDE_WITHOUT_DEVICE(cuModuleGetGlobal_v2)
LOWTIDE_WITHOUT_DEVICE(cuModuleLoadDataEx)
LOWTIDE_WITHOUT_DEVICE(cuModuleLoadFatBinary)
LOWTIDE_WITHOUT_DEVICE(cuModuleUnload)
LOWTIDE_WITHOUT_DEVICE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
LOWTIDE_WITHOUT_DEVICE(cuOccupancyMaxPotentialClusterSize)
LOWTIDE_WITHOUT_DEVICE(cuStreamGetCtx)
LOWTIDE_WITHOUT_DEVICE(cuStreamGetGreenCtx)
LOWTIDE_WITHOUT_DEVICE(cuStreamSynchronize)
LOWTIDE_WITHOUT_DEVICE(cuTensorMapEncodeTiled)

} // extern "C"
