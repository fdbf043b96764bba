//===- DriverStub.cpp - stands for libcuda.so.1 where there is no driver ---===//
//
// cuDNN loads the driver before it compiles a kernel, and loads what it has compiled. Here nothing is a device and
// every kernel can be loaded; none can be launched. These are the functions that cuDNN 9.16 to 9.26 look up.
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

#define LOWTIDE_STUB(name)                                                                                             \
  Result name() { return NoDevice; }
LOWTIDE_STUB(cuCtxGetCurrent)
LOWTIDE_STUB(cuCtxGetDevice)
LOWTIDE_STUB(cuCtxGetLimit)
LOWTIDE_STUB(cuCtxPopCurrent)
LOWTIDE_STUB(cuCtxPushCurrent)
LOWTIDE_STUB(cuDeviceGet)
LOWTIDE_STUB(cuDeviceGetAttribute)
LOWTIDE_STUB(cuDevicePrimaryCtxRelease)
LOWTIDE_STUB(cuDevicePrimaryCtxReset)
LOWTIDE_STUB(cuDevicePrimaryCtxRetain)
LOWTIDE_STUB(cuDriverGetVersion)
LOWTIDE_STUB(cuFuncGetAttribute)
LOWTIDE_STUB(cuFuncSetAttribute)
LOWTIDE_STUB(cuGetErrorName)
LOWTIDE_STUB(cuGetErrorString)
LOWTIDE_STUB(cuKernelGetAttribute)
LOWTIDE_STUB(cuKernelGetFunction)
LOWTIDE_STUB(cuKernelSetAttribute)
LOWTIDE_STUB(cuLaunchCooperativeKernel)
LOWTIDE_STUB(cuLaunchKernel)
LOWTIDE_STUB(cuLaunchKernelEx)
LOWTIDE_STUB(cuLibraryLoadFromFile)
LOWTIDE_STUB(cuLibraryUnload)
LOWTIDE_STUB(cuLinkAddData)
LOWTIDE_STUB(cuLinkAddData_v2)
LOWTIDE_STUB(cuLinkAddFile_v2)
LOWTIDE_STUB(cuLinkComplete)
LOWTIDE_STUB(cuLinkCreate)
LOWTIDE_STUB(cuLinkCreate_v2)
LOWTIDE_STUB(cuLinkDestroy)
LOWTIDE_STUB(cuMemcpyDtoH_v2)
LOWTIDE_STUB(cuModuleGetGlobal_v2)
LOWTIDE_STUB(cuModuleLoadDataEx)
LOWTIDE_STUB(cuModuleLoadFatBinary)
LOWTIDE_STUB(cuModuleUnload)
LOWTIDE_STUB(cuOccupancyMaxActiveBlocksPerMultiprocessor)
LOWTIDE_STUB(cuOccupancyMaxPotentialClusterSize)
LOWTIDE_STUB(cuStreamGetCtx)
LOWTIDE_STUB(cuStreamGetGreenCtx)
LOWTIDE_STUB(cuStreamSynchronize)
LOWTIDE_STUB(cuTensorMapEncodeTiled)

} // extern "C"
