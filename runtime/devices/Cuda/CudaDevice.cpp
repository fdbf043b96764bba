//===- CudaDevice.cpp - a session on a CUDA device, real or fake -----------===//

#include "runtime/devices/Cuda/CudaDevice.h"

#include "runtime/Machines.h"
#include "runtime/MemorySpaces.h"
#include "runtime/Session.h"
#include "runtime/devices/Cuda/Exchange.h"
#include "runtime/devices/Cuda/FileCopies.h"
#include "runtime/devices/Cuda/NamedRange.h"
#include "runtime/devices/Cuda/Program.h"
#include "runtime/devices/Cuda/Survey.h"
#include "runtime/devices/FakeCuda/FakeCuda.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace lowtide::rt::cuda {
namespace {

/// Reads of the host's memory before the driver is asked whether the device still lives.
constexpr int spins = 4000;

class CudaDevice final : public Device {
public:
  explicit CudaDevice(const Artifact &artifact) : artifact_(artifact), plan_(artifact.plan()) {}
  ~CudaDevice() override { (void)close(); }

  Status bind(const BindOptions &options) override;
  std::span<uint8_t *const> hostArenas() const override { return mirror_.arenas(); }
  Status upload() override;
  Status download(const plan::Entry *entry) override;
  Status bring(const uint8_t *view, uint64_t bytes, HostAccess access) override;
  Status leave(const uint8_t *view, uint64_t bytes) override;
  Status run(const plan::Entry &entry) override;
  Status settle(unsigned lag) override;
  unsigned depth() const override { return Exchange::slots - 1; }
  Status close() override;

  uint64_t allocatedBytes(plan::Arena::Space space) const override {
    return space == plan::Arena::DEVICE        ? resources_.deviceBytes()
           : space == plan::Arena::HOST_PINNED ? resources_.pinnedBytes()
           : space == plan::Arena::FILE        ? files_.arenas().bytes()
                                               : 0;
  }
  uint64_t allocations() const override { return resources_.allocations(); }
  std::optional<uint64_t> freeBytes() const override;
  std::string besides() const override;
  std::string warning() const override { return files_.file() ? files_.file()->warnOfMemory() : std::string(); }
  std::vector<std::string> choices() const override;
  std::vector<std::string> libraries() const override;
  Transfers transfers() const override {
    Transfers sum;
    if (files_.file())
      sum.way = files_.file()->way();
    for (const auto &[planEntry, entry] : entries_)
      sum.addRuns(entry.transfers, entry.runs);
    return sum;
  }
  void measure(const plan::Entry &entry, Measuring how) override { entries_.at(&entry).measuring = how; }
  std::vector<InstructionTime> times(const plan::Entry &entry) const override {
    return entries_.at(&entry).program->times();
  }
  uint64_t measuredRuns(const plan::Entry &entry) const override { return entries_.at(&entry).program->measuredRuns(); }

private:
  struct Entry {
    ExchangeLayout layout;
    std::unique_ptr<Program> program;
    CUgraphExec graphs[Exchange::slots] = {};
    Measuring measuring = Measuring::None;
    uint64_t runs = 0;
    Transfers transfers; ///< of one run
  };

  Status open(unsigned gpu);
  Status bindAll(const BindOptions &options);
  Status uploadAll();
  Status allocateArenas(const BindOptions &options);
  Status loadKernels();
  Status prepareEntries();
  Expected<CUgraphExec> capture(const Entry &entry, unsigned slot);
  Status enqueuePoison();
  Status enqueueBefore(const Entry &entry, unsigned slot);
  Status await(uint64_t number);
  /// Of memory that is used up, whatever it was for: also what the plan takes, and what is free.
  Status withPlan(Status status) const;
  /// Of kernels that cannot be loaded: which machines the artifact runs on, where this one is none of them.
  Status withMachines(Status status) const;
  /// Copies bytes of an arena between the device and the host's view.
  Status move(size_t arena, uint64_t offset, uint64_t bytes, bool toDevice);

  const Artifact &artifact_;
  const plan::Plan &plan_;
  Api api_;
  Resources resources_{api_};
  Libraries libraries_{api_, resources_};
  HostMirror mirror_;
  Exchange exchange_;
  FileCopies files_{api_};
  /// Addresses of the arenas in device memory and of those in pinned memory of the host, parallel to Plan.arenas.
  std::vector<CUdeviceptr> arenas_;
  std::vector<uint8_t *> pinned_;
  std::vector<CUfunction> kernels_;
  std::vector<CUstream> streams_; ///< of instructions; graphs are launched on the first
  CUstream copyIn_ = nullptr, copyOut_ = nullptr;
  CUevent uploaded_[Exchange::slots] = {}, computed_[Exchange::slots] = {};
  /// Through which parameters and state travel.
  std::span<uint8_t> staging_;
  std::map<const plan::Entry *, Entry> entries_;
  bool poison_ = false, closed_ = false;
  /// Steps are numbered from 1: the newest one handed to the device, the newest known to be done, the newest whose
  /// metrics the host sees; and which entry each slot ran last.
  uint64_t newest_ = 0, done_ = 0, seen_ = 0;
  const Entry *ran_[Exchange::slots] = {};
};

Status CudaDevice::open(unsigned gpu) {
  if (plan_.target() == "cuda-emulated") {
    api_ = fake::api();
  } else {
    LOWTIDE_TRY(loadDriver(api_));
  }
  return resources_.open(gpu);
}

Status CudaDevice::bind(const BindOptions &options) { return withPlan(bindAll(options)); }

Status CudaDevice::bindAll(const BindOptions &options) {
  // The fake device is there to find mistakes.
  poison_ = options.poison || plan_.target() == "cuda-emulated";
  if (plan_.target() == "cuda-emulated")
    fake::schedule(options.schedule, options.threads);
  LOWTIDE_TRY(open(options.gpu));
  LOWTIDE_TRY(mirror_.reserve(plan_));
  LOWTIDE_TRY(allocateArenas(options));
  LOWTIDE_TRY(loadKernels());
  for (CUstream *stream : {&copyIn_, &copyOut_}) {
    Expected<CUstream> made = resources_.stream();
    if (!made)
      return made.takeStatus();
    *stream = *made;
  }
  for (CUevent *events : {uploaded_, computed_})
    for (unsigned slot = 0; slot < Exchange::slots; ++slot) {
      Expected<CUevent> made = resources_.event();
      if (!made)
        return made.takeStatus();
      events[slot] = *made;
    }
  return prepareEntries();
}

static bool outlivesSteps(const plan::Arena &arena) {
  return arena.role() == plan::Arena::PARAMS || arena.role() == plan::Arena::STATE;
}

Status CudaDevice::allocateArenas(const BindOptions &options) {
  for (const plan::Arena &arena : plan_.arenas()) {
    const std::string where = "arena '" + printable(arena.name()) + "'";
    CUdeviceptr device = 0;
    uint8_t *pinned = nullptr;
    if (arena.space() == plan::Arena::DEVICE) {
      Expected<CUdeviceptr> memory = resources_.deviceMemory(arena.bytes());
      if (!memory)
        return memory.takeStatus().at(where);
      device = *memory;
    } else if (arena.space() == plan::Arena::HOST_PINNED) {
      Expected<uint8_t *> memory = resources_.pinnedMemory(arena.bytes());
      if (!memory)
        return memory.takeStatus().at(where);
      pinned = *memory;
    } else if (arena.space() != plan::Arena::FILE) {
      return {StatusCode::Unsupported,
              "lies in space " + showSpace(arena.space()) +
                  "; this runtime's CUDA device has device, host_pinned and file: compile the model again with this "
                  "release",
              where};
    }
    if (pinned && outlivesSteps(arena))
      mirror_.adopt(arenas_.size(), pinned);
    arenas_.push_back(device);
    pinned_.push_back(pinned);
    if (arena.role() == plan::Arena::STAGING)
      staging_ = {pinned, arena.bytes()};
  }
  exchange_.bind(plan_, arenas_, pinned_);
  LOWTIDE_TRY(files_.open(plan_, options, staging_));
  for (size_t i = 0; i < arenas_.size(); ++i)
    if (uint8_t *view = files_.arenas().view(i))
      mirror_.adopt(i, view);
  return Status::ok();
}

Status CudaDevice::withPlan(Status status) const {
  if (status.code() != StatusCode::OverBudget)
    return status;
  std::string table = "; the plan takes";
  for (const plan::Arena &each : plan_.arenas())
    if (each.space() == plan::Arena::DEVICE)
      table += " " + printable(each.name()) + " " + std::to_string(each.bytes());
  table += " bytes";
  size_t free = 0, total = 0;
  if (api_.driver.cuMemGetInfo && api_.driver.cuMemGetInfo(&free, &total) == CUDA_SUCCESS)
    table += "; " + std::to_string(free) + " of the GPU's " + std::to_string(total) + " bytes are free";
  return Status(status.code(), status.message() + table, status.where());
}

Status CudaDevice::withMachines(Status status) const {
  int major = 0, minor = 0;
  auto read = [&](int &to, CUdevice_attribute attribute) {
    return api_.driver.cuDeviceGetAttribute &&
           api_.driver.cuDeviceGetAttribute(&to, attribute, resources_.device()) == CUDA_SUCCESS;
  };
  if (!read(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) ||
      !read(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))
    return status;
  // A target that `refuseGpu` speaks of is of known letters.
  const std::string refusal = refuseGpu(plan_.target(), static_cast<uint32_t>(10 * major + minor));
  return refusal.empty() ? status : Status(StatusCode::Unsupported, refusal, status.where());
}

Status CudaDevice::loadKernels() {
  if (!plan_.kernels_size())
    return Status::ok();
  // A cubin is for one chip; PTX is compiled by the driver for any that is newer. The fake device takes host code.
  Expected<CUmodule> module = badInput("the artifact has no machine code for its target", "section 'code'");
  for (std::span<const uint8_t> image : {artifact_.cubin(), api_.fake ? artifact_.code() : artifact_.ptx()})
    if (!module && !image.empty())
      module = resources_.module(std::string(image.begin(), image.end()).c_str()); // PTX ends with a NUL
  if (!module)
    return withMachines(module.takeStatus());
  for (const plan::Kernel &kernel : plan_.kernels()) {
    CUfunction function = nullptr;
    CUresult result = api_.driver.cuModuleGetFunction(&function, *module, kernel.symbol().c_str());
    LOWTIDE_TRY(api_.check(result, "cuModuleGetFunction").at("kernel '" + printable(kernel.symbol()) + "'"));
    kernels_.push_back(function);
  }
  return Status::ok();
}

Status CudaDevice::prepareEntries() {
  for (const plan::Entry &entry : plan_.entries()) {
    Entry &to = entries_[&entry];
    to.layout = ExchangeLayout(entry);
    to.transfers = countTransfers(plan_, entry);
    ProgramContext context{api_, resources_, libraries_, plan_, arenas_, pinned_, files_, kernels_, streams_};
    Expected<std::unique_ptr<Program>> program = Program::prepare(context, entry);
    if (!program)
      return program.takeStatus();
    to.program = std::move(*program);
    LOWTIDE_TRY(to.program->warmUp());
    for (unsigned slot = 0; slot < Exchange::slots; ++slot) {
      Expected<CUgraphExec> graph = capture(to, slot);
      if (!graph)
        return graph.takeStatus().at("entry '" + printable(entry.name()) + "'");
      to.graphs[slot] = *graph;
    }
  }
  return Status::ok();
}

/// Fills what a step finds undefined: on the host with what lies on the device, which the device can do by itself.
Status CudaDevice::enqueuePoison() {
  CUdeviceptr poisoned = 0;
  uint64_t poisonedBytes = 0;
  for (size_t i = 0; i < arenas_.size(); ++i) {
    const plan::Arena &arena = plan_.arenas(static_cast<int>(i));
    if (!isDeviceTransient(arena) || !arena.bytes())
      continue;
    LOWTIDE_CUDA(api_, driver, cuMemsetD8Async, arenas_[i], 0xFF, arena.bytes(), streams_[0]);
    if (arena.bytes() > poisonedBytes)
      poisoned = arenas_[i], poisonedBytes = arena.bytes();
  }
  for (size_t i = 0; i < pinned_.size() && poisonedBytes; ++i) {
    const plan::Arena &arena = plan_.arenas(static_cast<int>(i));
    if (arena.role() != plan::Arena::TRANSIENT || !pinned_[i])
      continue;
    for (uint64_t done = 0; done < arena.bytes(); done += poisonedBytes)
      LOWTIDE_CUDA(api_, driver, cuMemcpyDtoHAsync, pinned_[i] + done, poisoned,
                   std::min(poisonedBytes, arena.bytes() - done), streams_[0]);
  }
  return files_.enqueuePoison(streams_[0]);
}

/// What comes before the instructions of a step.
Status CudaDevice::enqueueBefore(const Entry &entry, unsigned slot) {
  if (poison_)
    LOWTIDE_TRY(enqueuePoison());
  return exchange_.enqueueIn(api_, entry.layout, slot, arenas_, streams_[0]);
}

Expected<CUgraphExec> CudaDevice::capture(const Entry &entry, unsigned slot) {
  LOWTIDE_CUDA(api_, driver, cuStreamBeginCapture, streams_[0], CU_STREAM_CAPTURE_MODE_RELAXED);
  auto enqueue = [&]() -> Status {
    LOWTIDE_TRY(enqueueBefore(entry, slot));
    LOWTIDE_TRY(entry.program->enqueue());
    return exchange_.enqueueOut(api_, entry.layout, slot, arenas_, streams_[0]);
  };
  Status status = enqueue();
  CUgraph graph = nullptr;
  Status ended = api_.check(api_.driver.cuStreamEndCapture(streams_[0], &graph), "cuStreamEndCapture");
  if (!status.isOk() || !ended.isOk()) {
    if (graph)
      (void)api_.driver.cuGraphDestroy(graph);
    return status.isOk() ? ended : status;
  }
  return resources_.executable(graph, streams_[0]);
}

Status CudaDevice::run(const plan::Entry &planEntry) {
  Entry &entry = entries_.at(&planEntry);
  LOWTIDE_TRY(files_.failure());
  LOWTIDE_TRY(resources_.enter());
  if (files_.file() && files_.file()->hasWindows()) {
    LOWTIDE_TRY(settle(0));
    LOWTIDE_TRY(files_.file()->leaveAll());
  }
  NamedRange named(planEntry.name().c_str());
  if (entry.measuring != Measuring::None)
    LOWTIDE_TRY(settle(0));
  uint64_t number = newest_ + 1;
  unsigned slot = Exchange::slotOf(number);
  // The blocks of this slot were those of the step before the last.
  if (number > Exchange::slots)
    LOWTIDE_TRY(await(number - Exchange::slots));
  exchange_.pack(entry.layout, mirror_, number);
  LOWTIDE_TRY(exchange_.upload(api_, entry.layout, slot, copyIn_));
  LOWTIDE_CUDA(api_, driver, cuEventRecord, uploaded_[slot], copyIn_);
  LOWTIDE_CUDA(api_, driver, cuStreamWaitEvent, streams_[0], uploaded_[slot], 0);
  // From here on there is something to wait for, even if not all of it can be enqueued.
  newest_ = number;
  ran_[slot] = &entry;
  ++entry.runs;
  if (entry.measuring != Measuring::None) {
    LOWTIDE_TRY(enqueueBefore(entry, slot));
    LOWTIDE_TRY(entry.measuring == Measuring::Lanes ? entry.program->measureLanes() : entry.program->measureOnce());
    LOWTIDE_TRY(exchange_.enqueueOut(api_, entry.layout, slot, arenas_, streams_[0]));
  } else {
    LOWTIDE_CUDA(api_, driver, cuGraphLaunch, entry.graphs[slot], streams_[0]);
  }
  LOWTIDE_CUDA(api_, driver, cuEventRecord, computed_[slot], streams_[0]);
  LOWTIDE_CUDA(api_, driver, cuStreamWaitEvent, copyOut_, computed_[slot], 0);
  return exchange_.download(api_, entry.layout, slot, copyOut_);
}

Status CudaDevice::await(uint64_t number) {
  while (done_ < number) {
    for (int i = 0; i < spins && done_ < number; ++i)
      if (exchange_.arrived(done_ + 1))
        ++done_;
    if (done_ >= number)
      break;
    // Not a wait: it asks, and brings to light what went wrong on the device.
    CUresult result = api_.driver.cuStreamQuery(copyOut_);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
      return api_.check(result, "cuStreamQuery").at("step " + std::to_string(done_ + 1));
    if (result == CUDA_SUCCESS && !exchange_.arrived(done_ + 1))
      return {StatusCode::Internal, "step " + std::to_string(done_ + 1) + " ended without saying so"};
  }
  return files_.failure();
}

Status CudaDevice::settle(unsigned lag) {
  if (newest_ <= lag || closed_)
    return Status::ok();
  LOWTIDE_TRY(resources_.enter());
  uint64_t number = newest_ - lag;
  LOWTIDE_TRY(await(number));
  if (seen_ < number) {
    exchange_.unpack(ran_[Exchange::slotOf(number)]->layout, mirror_, number);
    seen_ = number;
  }
  return Status::ok();
}

Status CudaDevice::move(size_t arena, uint64_t offset, uint64_t bytes, bool toDevice) {
  uint8_t *host = mirror_.arenas()[arena] + offset;
  CUdeviceptr device = arenas_[arena] + offset;
  for (uint64_t done = 0; done < bytes; done += staging_.size()) {
    uint64_t piece = std::min<uint64_t>(staging_.size(), bytes - done);
    if (toDevice) {
      std::memcpy(staging_.data(), host + done, piece);
      LOWTIDE_CUDA(api_, driver, cuMemcpyHtoDAsync, device + done, staging_.data(), piece, streams_[0]);
      LOWTIDE_CUDA(api_, driver, cuStreamSynchronize, streams_[0]);
    } else {
      LOWTIDE_CUDA(api_, driver, cuMemcpyDtoHAsync, staging_.data(), device + done, piece, streams_[0]);
      LOWTIDE_CUDA(api_, driver, cuStreamSynchronize, streams_[0]);
      std::memcpy(host + done, staging_.data(), piece);
    }
  }
  return Status::ok();
}

/// Whether the host has a view of its own, that is brought together with what the device has. Others are seen where
/// they lie.
static bool isMirrored(const plan::Arena &arena) {
  return outlivesSteps(arena) && arena.space() == plan::Arena::DEVICE;
}

Status CudaDevice::bring(const uint8_t *view, uint64_t bytes, HostAccess access) {
  if (!files_.file())
    return Status::ok();
  LOWTIDE_TRY(settle(0));
  return files_.file()->bring(view, bytes, access);
}

Status CudaDevice::leave(const uint8_t *view, uint64_t bytes) {
  return files_.file() ? files_.file()->leave(view, bytes) : Status::ok();
}

Status CudaDevice::upload() { return withPlan(uploadAll()); }

Status CudaDevice::uploadAll() {
  LOWTIDE_TRY(settle(0));
  LOWTIDE_TRY(resources_.enter());
  for (int i = 0; i < plan_.arenas_size(); ++i)
    if (isMirrored(plan_.arenas(i))) {
      LOWTIDE_TRY(move(static_cast<size_t>(i), 0, plan_.arenas(i).bytes(), true));
      // What was uploaded is on the device; the host's copy would only be a second one.
      mirror_.drop(static_cast<size_t>(i));
    }
  return Status::ok();
}

Status CudaDevice::download(const plan::Entry *entry) {
  LOWTIDE_TRY(settle(0));
  LOWTIDE_TRY(resources_.enter());
  for (int i = 0; i < plan_.arenas_size(); ++i)
    if (isMirrored(plan_.arenas(i)))
      LOWTIDE_TRY(move(static_cast<size_t>(i), 0, plan_.arenas(i).bytes(), false));
  if (entry)
    for (const plan::Binding &binding : entry->bindings())
      if (binding.kind() == plan::Binding::OUTPUT || binding.kind() == plan::Binding::GRADIENT)
        LOWTIDE_TRY(move(binding.slice().arena(), binding.slice().offset(), binding.slice().bytes(), false));
  return Status::ok();
}

std::optional<uint64_t> CudaDevice::freeBytes() const {
  size_t free = 0, total = 0;
  return api_.driver.cuMemGetInfo(&free, &total) == CUDA_SUCCESS ? std::optional<uint64_t>(free) : std::nullopt;
}

std::string CudaDevice::besides() const {
  uint64_t nodes = 0;
  for (const auto &[entry, state] : entries_)
    nodes += state.program ? state.program->nodes() : 0;
  return std::to_string(resources_.pinnedBytes()) + " bytes of pinned host memory, " + std::to_string(nodes) +
         " graph nodes" + (files_.file() ? "; " + files_.file()->describe() : "");
}

std::vector<std::string> CudaDevice::choices() const {
  std::vector<std::string> lines;
  for (const plan::Entry &entry : plan_.entries())
    if (auto state = entries_.find(&entry); state != entries_.end() && state->second.program)
      for (std::string &line : state->second.program->choices())
        lines.push_back(entry.name() + ": " + line);
  return lines;
}

std::vector<std::string> CudaDevice::libraries() const { return listLibraries(api_); }

Status CudaDevice::close() {
  if (closed_)
    return Status::ok();
  closed_ = true;
  // What is still under way reads memory that is about to go.
  Status waited;
  if (newest_ > done_ && resources_.enter().isOk())
    for (CUstream stream : {streams_[0], copyOut_})
      if (Status each = api_.check(api_.driver.cuStreamSynchronize(stream), "cuStreamSynchronize"); waited.isOk())
        waited = std::move(each);
  Status released = resources_.close();
  entries_.clear();
  return waited.isOk() ? released : waited;
}

} // namespace

Expected<std::unique_ptr<Device>> createCudaDevice(const Artifact &artifact) {
  return std::unique_ptr<Device>(new CudaDevice(artifact));
}

} // namespace lowtide::rt::cuda
