//===- lowtide-library-plans.cpp - what cuDNN itself says of a step's calls ===//
//
// cuDNN chooses engines and compiles plans for a GPU that is only described (cuDNN 9 documentation,
// CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR; from 9.8 on). So every call of an artifact is prepared as `bind` does it, by the
// same code, and cuDNN says whether it takes it. Nothing is executed.
//
//   lowtide-library-plans --gpu=sm_90.json step.tide...
//   lowtide-library-plans --gpu=sm_90.json --random=1000:200
//
// A line for each call that differs: "takes", "refuses" or "slow", where tensor cores are only missed for want of
// workspace. With a stand-in for the driver (AbsentDriver.cpp) engines that compile their kernels are asked too.
//
//===----------------------------------------------------------------------===//

#include "RandomCalls.h"

#include "runtime/Artifact.h"
#include "runtime/ExitCode.h"
#include "runtime/LibraryTable.h"
#include "runtime/Workspace.h"
#include "runtime/calls/Attention/AttentionShape.h"
#include "runtime/devices/Cuda/CudnnGraph.h"
#include "runtime/devices/Cuda/LibraryCall.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

namespace {

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::cuda;

/// Of cuDNN's header, what only this program uses.
constexpr auto deviceDescriptor = static_cast<cudnnBackendDescriptorType_t>(38);
constexpr auto deviceOfHeuristics = static_cast<cudnnBackendAttributeName_t>(204);
constexpr auto deviceOfPlan = static_cast<cudnnBackendAttributeName_t>(407);
constexpr auto deviceAsJson = static_cast<cudnnBackendAttributeName_t>(2702);
constexpr auto typeChar = static_cast<cudnnBackendAttributeType_t>(24);

CudnnApi real;
cudnnBackendDescriptor_t described = nullptr;

/// Where the runtime hands over its handle, the description of the GPU goes instead.
cudnnStatus_t setAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
    return CUDNN_STATUS_SUCCESS;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
    return real.cudnnBackendSetAttribute(descriptor, deviceOfPlan, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &described);
  cudnnStatus_t status = real.cudnnBackendSetAttribute(descriptor, name, type, count, values);
  if (status == CUDNN_STATUS_SUCCESS && name == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
    return real.cudnnBackendSetAttribute(descriptor, deviceOfHeuristics, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &described);
  return status;
}

/// Makes `api` one of a GPU with the properties in a file.
Status describe(Api &api, const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::string json((std::istreambuf_iterator<char>(file)), {});
  if (!file)
    return {StatusCode::Io, std::string("cannot read ") + path};
  LOWTIDE_CUDA(api, cudnn, cudnnBackendCreateDescriptor, deviceDescriptor, &described);
  LOWTIDE_CUDA(api, cudnn, cudnnBackendSetAttribute, described, deviceAsJson, typeChar,
               static_cast<int64_t>(json.size()), json.data());
  LOWTIDE_CUDA(api, cudnn, cudnnBackendFinalize, described);
  real = api.cudnn;
  api.driver.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  api.cudnn.cudnnBackendSetAttribute = setAttribute;
  return Status::ok();
}

/// Prepares the call as `bind` does; its choice of an engine.
Expected<std::string> choose(Api &api, const plan::Call &call, const CallAddresses &addresses) {
  Resources resources(api);
  Libraries libraries(api, resources);
  libraries.useCudnn(nullptr);
  Expected<std::unique_ptr<LibraryCall>> prepared = libraries.prepare(call, addresses);
  if (!prepared)
    return prepared.takeStatus();
  std::string choice = (*prepared)->choice();
  LOWTIDE_TRY(resources.close());
  return choice;
}

std::string textOf(const plan::Call &call) {
  std::string text = call.callee();
  for (const plan::Attribute &attribute : call.attributes()) {
    text += " " + attribute.name() + "=";
    if (attribute.has_s())
      text += attribute.s();
    else if (attribute.has_f())
      text += std::to_string(attribute.f());
    else if (attribute.has_i())
      text += std::to_string(attribute.i());
    for (int i = 0; i < attribute.ints().values_size(); ++i)
      text += (i ? "," : "") + std::to_string(attribute.ints().values(i));
  }
  return text;
}

class Questions {
public:
  explicit Questions(Api &api) : api_(api) {}

  /// Of what an entry calls, everything that cuDNN is to do.
  void ask(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions);
  void ask(const plan::Call &call, CallAddresses addresses);
  Status summary() const {
    std::printf("%d taken, %d refused, %d slow\n", taken_, refused_, slow_);
    return refused_ ? Status(StatusCode::Device, "cuDNN does not take every call") : Status::ok();
  }

private:
  Api &api_;
  std::set<std::string> asked_;
  int taken_ = 0, refused_ = 0, slow_ = 0;
};

void Questions::ask(const plan::Call &call, CallAddresses addresses) {
  std::string text = textOf(call);
  for (const std::vector<CUdeviceptr> &side : {addresses.reads, addresses.writes})
    for (CUdeviceptr address : side)
      text += " @" + std::to_string(alignmentOf(address));
  if (!asked_.insert(text).second)
    return;
  const Expected<std::string> choice = choose(api_, call, addresses);
  auto hasTensorCores = [](const std::string &engine) { return engine.find("tensor cores") != std::string::npos; };
  std::string said = choice ? *choice : choice.status().str();
  bool isSlow = false;
  if (choice && !hasTensorCores(*choice)) {
    addresses.workspace = CUdeviceptr(1) << 46, addresses.workspaceBytes = uint64_t(1) << 44;
    const Expected<std::string> best = choose(api_, call, addresses);
    isSlow = best && hasTensorCores(*best);
    if (isSlow)
      said += "; where there is room: " + *best;
  }
  ++(!choice ? refused_ : isSlow ? slow_ : taken_);
  std::printf("%s %s: %s\n", !choice ? "refuses" : isSlow ? "slow" : "takes", text.c_str(), said.c_str());
}

void Questions::ask(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions) {
  for (const plan::Instruction &instruction : instructions) {
    ask(instruction.repeat().body());
    const plan::Call &call = instruction.call();
    if (!instruction.has_call() || call.callee() == "gemm")
      continue;
    // Of an address only its alignment counts.
    auto address = [](const plan::Slice &slice) { return (CUdeviceptr(slice.arena()) + 1) << 40 | slice.offset(); };
    ask(call, CallAddresses::of(call, address));
  }
}

/// Calls at random, of those that the table takes.
Status askAtRandom(Questions &questions, uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    plan::Call call = test::randomCall(seed);
    Expected<const LibraryRule *> declined = declineCall(call);
    if (!declined)
      return declined.takeStatus().at("seed " + std::to_string(seed));
    if (*declined)
      continue;
    Expected<AttentionShape> attention = readAttention(call);
    const int reads = attention ? attention->reads() : 2, writes = attention ? attention->writes() : 1;
    CallAddresses addresses;
    for (int i = 0; i < reads + writes; ++i)
      (i < reads ? addresses.reads : addresses.writes).push_back(CUdeviceptr(i + 1) << 40);
    addresses.workspace = CUdeviceptr(reads + writes + 1) << 40,
    addresses.workspaceBytes = *queryGpuWorkspace(call, 132);
    questions.ask(call, addresses);
  }
  return Status::ok();
}

Status run(const char *gpu, std::span<char *> works) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Api api;
  LOWTIDE_TRY(loadCudnn(api));
  LOWTIDE_TRY(describe(api, gpu));
  Questions questions(api);
  for (const char *work : works) {
    unsigned long long first = 0, count = 0;
    if (std::sscanf(work, "--random=%llu:%llu", &first, &count) == 2) {
      LOWTIDE_TRY(askAtRandom(questions, first, count));
      continue;
    }
    auto artifact = Artifact::open(work);
    if (!artifact)
      return artifact.takeStatus();
    for (const plan::Entry &entry : (*artifact)->plan().entries())
      questions.ask(entry.instructions());
  }
  return questions.summary();
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3 || std::strncmp(argv[1], "--gpu=", 6) != 0) {
    std::fprintf(stderr, "usage: lowtide-library-plans --gpu=FILE.json {--random=SEED:COUNT | step.tide}...\n");
    return 1;
  }
  return exitCodeOf([&] { return run(argv[1] + 6, {argv + 2, argv + argc}); });
}
