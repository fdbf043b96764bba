//===- Driver.cpp - the driver API of the fake device ----------------------===//

#include "runtime/devices/FakeCuda/FiberSwitch.h"
#include "runtime/devices/FakeCuda/Libraries.h"
#include "runtime/devices/FakeCuda/Machine.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

namespace lowtide::rt::cuda::fake {
namespace {

Machine &machine() { return Machine::get(); }

/// Threads start without a context, and most of the driver asks for one.
thread_local CUcontext currentContext = nullptr;

/// Of a thread that a stream has called: it may not call the driver.
thread_local bool isHostFunction = false;

/// Counts the call; what it is to fail with.
CUresult callInContext(const char *name) {
  CUresult result = machine().call(name);
  if (isHostFunction)
    return CUDA_ERROR_NOT_PERMITTED;
  return result == CUDA_SUCCESS && !currentContext ? CUDA_ERROR_INVALID_CONTEXT : result;
}

/// Counts the call and returns if it is to fail.
#define ENTER_WITH(call, name)                                                                                         \
  do {                                                                                                                 \
    if (CUresult failed = call(name); failed != CUDA_SUCCESS)                                                          \
      return failed;                                                                                                   \
  } while (false)
#define ENTER_ANYWHERE(name) ENTER_WITH(machine().call, #name)
#define ENTER(name) ENTER_WITH(callInContext, #name)

template <typename Handle, typename T> Handle handle(T *object) { return reinterpret_cast<Handle>(object); }
/// A release is done even when the call reports a failure: CUDA reports earlier failures there. What is under way may
/// still use the object, so it is done first.
template <typename T, typename Handle> CUresult release(const char *name, Handle handle) {
  CUresult result = callInContext(name);
  if (result == CUDA_ERROR_INVALID_CONTEXT)
    return result;
  machine().finish();
  bool there = machine().destroy(reinterpret_cast<T *>(handle));
  return there ? result : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuInit(unsigned) {
  ENTER_ANYWHERE(cuInit);
  if (!haveFibers)
    return CUDA_ERROR_NO_DEVICE;
  return machine().start().isOk() ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult cuDriverGetVersion(int *version) {
  ENTER_ANYWHERE(cuDriverGetVersion);
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char **name) {
  const std::pair<CUresult, const char *> names[] = {
      {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
      {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
      {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
      {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
      {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
      {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
      {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"}};
  *name = nullptr;
  for (const auto &[code, text] : names)
    if (code == error)
      *name = text;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char **text) {
  bool own = error == CUDA_ERROR_LAUNCH_FAILED && !machine().failure().empty();
  *text = own ? machine().failure().c_str() : "the fake device was told to fail here, or was misused";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) {
  ENTER_ANYWHERE(cuDeviceGetCount);
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER_ANYWHERE(cuDeviceGet);
  *device = 0;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char *name, int bytes, CUdevice) {
  ENTER_ANYWHERE(cuDeviceGetName);
  std::strncpy(name, "fake CUDA device on host memory", static_cast<size_t>(bytes));
  name[bytes - 1] = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  ENTER_ANYWHERE(cuDeviceGetAttribute);
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  ENTER_ANYWHERE(cuDevicePrimaryCtxRetain);
  ++machine().contexts;
  *context = handle<CUcontext>(&machine());
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  CUresult result = machine().call("cuDevicePrimaryCtxRelease");
  --machine().contexts;
  return result;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER_ANYWHERE(cuCtxSetCurrent);
  currentContext = context;
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t *free, size_t *total) {
  ENTER(cuMemGetInfo);
  *free = *total = size_t(1) << 37;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  ENTER(cuMemAlloc);
  void *memory = machine().allocate(bytes, false);
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFree(CUdeviceptr address) {
  CUresult result = callInContext("cuMemFree");
  if (result == CUDA_ERROR_INVALID_CONTEXT)
    return result;
  machine().finish();
  bool whole = machine().release(reinterpret_cast<void *>(address), false);
  return whole ? result : result == CUDA_SUCCESS ? CUDA_ERROR_LAUNCH_FAILED : result;
}
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  ENTER(cuMemHostAlloc);
  *address = machine().allocate(bytes, true);
  return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFreeHost(void *address) {
  CUresult result = callInContext("cuMemFreeHost");
  if (result == CUDA_ERROR_INVALID_CONTEXT)
    return result;
  machine().finish();
  bool whole = machine().release(address, true);
  return whole ? result : result == CUDA_SUCCESS ? CUDA_ERROR_LAUNCH_FAILED : result;
}

/// Enqueues a copy whose both ends have been found in memory of the right kind.
CUresult copy(CUstream stream, void *to, bool toPinned, const void *from, bool fromPinned, size_t bytes) {
  Stream *queue = liveObject<Stream>(stream);
  if (!queue)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!machine().holds(to, bytes, toPinned) || !machine().holds(from, bytes, fromPinned))
    return CUDA_ERROR_INVALID_VALUE;
  machine().enqueue(*queue, [=] {
    std::memcpy(to, from, bytes);
    return std::string();
  });
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  ENTER(cuMemcpyHtoDAsync);
  return copy(stream, reinterpret_cast<void *>(to), false, from, true, bytes);
}
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  ENTER(cuMemcpyDtoHAsync);
  return copy(stream, to, true, reinterpret_cast<void *>(from), false, bytes);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  ENTER(cuMemcpyDtoDAsync);
  return copy(stream, reinterpret_cast<void *>(to), false, reinterpret_cast<void *>(from), false, bytes);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
  ENTER(cuLaunchHostFunc);
  Stream *queue = liveObject<Stream>(stream);
  if (!queue)
    return CUDA_ERROR_INVALID_HANDLE;
  machine().enqueue(*queue, [=] {
    isHostFunction = true;
    function(data);
    isHostFunction = false;
    return std::string();
  });
  return CUDA_SUCCESS;
}

/// Writes `height` rows of `width` elements, `pitch` bytes apart.
template <typename T>
CUresult set(CUdeviceptr to, T value, size_t pitch, size_t width, size_t height, CUstream stream) {
  Stream *queue = liveObject<Stream>(stream);
  auto *at = reinterpret_cast<uint8_t *>(to);
  if (!queue)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!width || !height || to % sizeof(T) || (height > 1 && pitch < width * sizeof(T)) ||
      !machine().holds(at, pitch * (height - 1) + width * sizeof(T), false))
    return CUDA_ERROR_INVALID_VALUE;
  machine().enqueue(*queue, [=] {
    for (size_t row = 0; row < height; ++row)
      std::fill_n(reinterpret_cast<T *>(at + row * pitch), width, value);
    return std::string();
  });
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  ENTER(cuMemsetD8Async);
  return set<uint8_t>(to, value, 0, count, 1, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  ENTER(cuMemsetD16Async);
  return set<uint16_t>(to, value, 0, count, 1, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  ENTER(cuMemsetD32Async);
  return set<uint32_t>(to, value, 0, count, 1, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                            CUstream stream) {
  ENTER(cuMemsetD2D32Async);
  return set<uint32_t>(to, value, pitch, width, height, stream);
}

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  ENTER(cuStreamCreate);
  Stream *made = machine().make<Stream>("stream");
  machine().streams().push_back(made);
  *stream = handle<CUstream>(made);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  if (Stream *queue = liveObject<Stream>(stream)) {
    machine().finish();
    std::erase(machine().streams(), queue);
    if (queue->capture)
      std::erase(queue->capture->streams, queue);
  }
  return release<Stream>("cuStreamDestroy", stream);
}
/// Does at most `most` pieces of work; whether something is left goes to `left`.
CUresult advance(CUstream stream, uint64_t most, bool &left) {
  Stream *queue = liveObject<Stream>(stream);
  if (!queue)
    return CUDA_ERROR_INVALID_HANDLE;
  if (queue->capture)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  (void)machine().drive(*queue, most);
  left = !queue->queue.empty();
  return machine().failure().empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}
CUresult cuStreamSynchronize(CUstream stream) {
  ENTER(cuStreamSynchronize);
  bool left = false;
  return advance(stream, UINT64_MAX, left);
}
CUresult cuStreamQuery(CUstream stream) {
  ENTER(cuStreamQuery);
  constexpr uint64_t piecesPerQuery = 16;
  bool left = false;
  CUresult result = advance(stream, piecesPerQuery, left);
  return result == CUDA_SUCCESS && left ? CUDA_ERROR_NOT_READY : result;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  ENTER(cuStreamWaitEvent);
  Stream *queue = liveObject<Stream>(stream);
  Event *waited = liveObject<Event>(event);
  if (!queue || !waited)
    return CUDA_ERROR_INVALID_HANDLE;
  return machine().wait(*queue, *waited) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  ENTER(cuStreamBeginCapture);
  Stream *queue = liveObject<Stream>(stream);
  if (!queue || queue->capture)
    return CUDA_ERROR_INVALID_VALUE;
  queue->capture = std::make_shared<Capture>();
  queue->capture->origin = queue;
  queue->capture->streams.push_back(queue);
  queue->last.clear();
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  CUresult injected = machine().call("cuStreamEndCapture");
  *graph = nullptr;
  Stream *queue = liveObject<Stream>(stream);
  if (!queue || !queue->capture || queue->capture->origin != queue)
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  std::shared_ptr<Capture> capture = queue->capture;
  // Everything must lie before the end of the stream in which the capture began.
  std::vector<bool> joined(capture->graph->nodes.size());
  std::vector<uint32_t> stack = queue->last;
  while (!stack.empty()) {
    uint32_t node = stack.back();
    stack.pop_back();
    if (joined[node])
      continue;
    joined[node] = true;
    stack.insert(stack.end(), capture->graph->nodes[node].after.begin(), capture->graph->nodes[node].after.end());
  }
  for (Stream *member : capture->streams)
    member->capture = nullptr, member->last.clear();
  if (injected != CUDA_SUCCESS)
    return injected;
  if (std::find(joined.begin(), joined.end(), false) != joined.end())
    return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  Graph *made = machine().make<Graph>("graph");
  *made = std::move(*capture->graph);
  *graph = handle<CUgraph>(made);
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned) {
  ENTER(cuEventCreate);
  *event = handle<CUevent>(machine().make<Event>("event"));
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) { return release<Event>("cuEventDestroy", event); }
CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER(cuEventRecord);
  Stream *queue = liveObject<Stream>(stream);
  Event *recorded = liveObject<Event>(event);
  if (!queue || !recorded)
    return CUDA_ERROR_INVALID_HANDLE;
  machine().record(*queue, *recorded);
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  ENTER(cuEventElapsedTime);
  Event *first = liveObject<Event>(start), *last = liveObject<Event>(end);
  if (!first || !last)
    return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = std::chrono::duration<float, std::milli>(last->time - first->time).count();
  return CUDA_SUCCESS;
}

/// Bytes of an ELF file, from its own tables.
size_t elfBytes(const void *image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return 0;
  size_t end = header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, static_cast<const uint8_t *>(image) + header.e_phoff + i * header.e_phentsize,
                sizeof segment);
    end = std::max<size_t>(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned, CUjit_option *, void **) {
  ENTER(cuModuleLoadDataEx);
  size_t bytes = elfBytes(image);
  if (!bytes)
    return CUDA_ERROR_INVALID_IMAGE;
  Expected<std::unique_ptr<MachineCode>> code = MachineCode::load({static_cast<const uint8_t *>(image), bytes});
  if (!code)
    return CUDA_ERROR_INVALID_IMAGE;
  Module *made = machine().make<Module>("module");
  made->code = std::move(*code);
  *module = handle<CUmodule>(made);
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) { return release<Module>("cuModuleUnload", module); }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  ENTER(cuModuleGetFunction);
  Module *from = liveObject<Module>(module);
  if (!from)
    return CUDA_ERROR_INVALID_HANDLE;
  void *address = from->code->find(name);
  if (!address)
    return CUDA_ERROR_NOT_FOUND;
  auto made = std::make_unique<Function>();
  made->kernel = reinterpret_cast<lt_gpu_kernel>(address);
  made->name = printable(name);
  *function = handle<CUfunction>(made.get());
  from->functions.push_back(std::move(made));
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream, void **parameters,
                        void **extra) {
  ENTER(cuLaunchKernel);
  Stream *queue = liveObject<Stream>(stream);
  if (!queue || !function)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!gridX || gridY != 1 || gridZ != 1 || !blockX || blockX > 1024 || blockY != 1 || blockZ != 1 || parameters ||
      !extra)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<void *> arguments;
  const void *buffer = nullptr;
  size_t bytes = 0;
  for (void **at = extra; reinterpret_cast<uintptr_t>(*at) != CU_LAUNCH_PARAM_END; at += 2) {
    if (reinterpret_cast<uintptr_t>(*at) == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = at[1];
    else if (reinterpret_cast<uintptr_t>(*at) == CU_LAUNCH_PARAM_BUFFER_SIZE)
      bytes = *static_cast<size_t *>(at[1]);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  arguments.resize(bytes / sizeof(void *));
  if (bytes)
    std::memcpy(arguments.data(), buffer, bytes);
  auto *callee = reinterpret_cast<const Function *>(function);
  machine().enqueue(*queue, [=] {
    BlockLaunch launch{callee->kernel, arguments.data(), gridX, blockX, sharedBytes};
    return machine().runKernel(*callee, launch);
  });
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec *executable, CUgraph graph, unsigned long long) {
  ENTER(cuGraphInstantiate);
  Graph *from = liveObject<Graph>(graph);
  if (!from)
    return CUDA_ERROR_INVALID_HANDLE;
  Graph *made = machine().make<Graph>("executable graph");
  *made = *from;
  *executable = handle<CUgraphExec>(made);
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec executable) { return release<Graph>("cuGraphExecDestroy", executable); }
CUresult cuGraphDestroy(CUgraph graph) { return release<Graph>("cuGraphDestroy", graph); }
CUresult cuGraphUpload(CUgraphExec executable, CUstream stream) {
  ENTER(cuGraphUpload);
  return liveObject<Graph>(executable) && liveObject<Stream>(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  ENTER(cuGraphLaunch);
  Graph *graph = liveObject<Graph>(executable);
  Stream *queue = liveObject<Stream>(stream);
  if (!graph || !queue)
    return CUDA_ERROR_INVALID_HANDLE;
  if (queue->capture)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  machine().launch(*queue, *graph);
  return CUDA_SUCCESS;
}

} // namespace

Api api() {
  Api api;
#define LOWTIDE_CUDA_FAKE(name, symbol, parameters) api.driver.name = name;
  LOWTIDE_CUDA_DRIVER(LOWTIDE_CUDA_FAKE)
#undef LOWTIDE_CUDA_FAKE
  api.cublasLt = cublasLtApi();
  api.cudnn = cudnnApi();
  api.driverPath = api.cublasLtPath = api.cudnnPath = "fake";
  api.fake = true;
  return api;
}

void configure(const Options &options) { machine().configure(options); }
void schedule(uint64_t seed, unsigned threads) { machine().schedule(seed, threads); }
Report report() { return machine().report(); }

} // namespace lowtide::rt::cuda::fake
