//===- lowtide-device-calls.cpp - what a session asks of CUDA --------------===//
//
// Runs an artifact for cuda-emulated on made-up batches and looks at its calls of the driver and the libraries.
//
//   lowtide-device-calls step.tide --steps=1000 --overflow-every=7
//     prints, as JSON, the calls of 1000 steps after the first one, and how many steps the loss scaler skipped
//   lowtide-device-calls step.tide --fail
//     lets every call fail once during load, bind, three steps, download and shutdown: a message must name the call
//     and a remedy, and nothing may be left; says how many functions of each library were called
//   lowtide-device-calls step.tide --out-of-memory
//     lets every call up to the end of bind find no memory left: the message must show the plan too
//   lowtide-device-calls step.tide --allocations --steps=2
//     prints, as JSON, the plan's arenas, and what the session and the driver itself counted after bind and after the
//     steps of each entry: bytes by memory, and of the driver each allocation
//
//===----------------------------------------------------------------------===//

#include "runtime/Element.h"
#include "runtime/ExitCode.h"
#include "runtime/RandomInit.h"
#include "runtime/Session.h"
#include "runtime/devices/FakeCuda/FakeCuda.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

using namespace lowtide;
using namespace lowtide::rt;
namespace fake = lowtide::rt::cuda::fake;

namespace {

struct Options {
  const char *artifact = nullptr;
  int64_t steps = 3, overflowEvery = 0;
  bool fail = false, outOfMemory = false, allocations = false;
};

/// Small numbers; labels 0 and 1; in a step that is to overflow every float is beyond what f16 holds.
void fillBatch(Session &session, int64_t step, bool overflow, const std::string &entry = "train") {
  for (const Tensor &tensor : session.tensors(entry, plan::Binding::BATCH)) {
    plan::DType dtype = tensor.binding->dtype();
    uint64_t size = elementBytes(dtype);
    bool real = dtype == plan::F32 || dtype == plan::F64 || dtype == plan::F16 || dtype == plan::BF16;
    for (uint64_t i = 0; i < tensor.bytes() / size; ++i) {
      uint64_t random = counterRandom(static_cast<uint64_t>(step), i);
      double value = real ? static_cast<double>(random % 1024) / 1024 : static_cast<double>(random % 2);
      storeElement(dtype, tensor.data + i * size, real && overflow ? std::numeric_limits<double>::infinity() : value);
    }
  }
}

Status runSteps(Session &session, const Options &options, int64_t first, int64_t count) {
  for (int64_t step = first; step < first + count; ++step) {
    fillBatch(session, step, options.overflowEvery && step % options.overflowEvery == options.overflowEvery - 1);
    LOWTIDE_TRY(session.writeScalars("train", session.scalarsOf("train", step, 0)));
    LOWTIDE_TRY(session.step("train"));
    LOWTIDE_TRY(session.settle(session.depth()));
  }
  return Status::ok();
}

Expected<std::unique_ptr<Session>> bound(const Options &options) {
  auto session = Session::load(options.artifact);
  if (!session)
    return session.takeStatus();
  BindOptions bind;
  bind.threads = 1;
  bind.randomInit = true;
  LOWTIDE_TRY((*session)->bind(bind));
  return session;
}

Status trace(const Options &options) {
  fake::Options traced;
  traced.threads = 1;
  fake::configure(traced);
  auto session = bound(options);
  if (!session)
    return session.takeStatus();
  LOWTIDE_TRY(runSteps(**session, options, 0, 1));
  std::map<std::string, uint64_t> before = fake::report().calls;
  LOWTIDE_TRY(runSteps(**session, options, 1, options.steps));
  std::map<std::string, uint64_t> after = fake::report().calls;
  LOWTIDE_TRY((*session)->settle());
  double skipped = 0;
  if (Expected<Tensor> count = (*session)->tensor("train", "loss_scale.skipped"))
    skipped = loadElement(count->binding->dtype(), count->data);
  std::printf("{\"steps\": %lld, \"skipped\": %.0f, \"calls\": {", static_cast<long long>(options.steps), skipped);
  const char *comma = "";
  for (const auto &[name, count] : after)
    if (uint64_t during = count - before[name]) {
      std::printf("%s\"%s\": %llu", comma, name.c_str(), static_cast<unsigned long long>(during));
      comma = ", ";
    }
  std::printf("}}\n");
  return (*session)->close();
}

/// At one point of a session: what it counts, and what the driver has given and not got back.
void printCounts(const Session &session, const char *when) {
  auto list = [](const std::vector<uint64_t> &bytes) {
    std::string text;
    for (uint64_t each : bytes)
      text += (text.empty() ? "" : ", ") + std::to_string(each);
    return "[" + text + "]";
  };
  const fake::Report driver = fake::report();
  std::printf(", \"%s\": {\"device\": %llu, \"host_pinned\": %llu, \"driver\": {\"device\": %s, \"host_pinned\": %s}}",
              when, static_cast<unsigned long long>(session.allocatedBytes()),
              static_cast<unsigned long long>(session.allocatedBytes(plan::Arena::HOST_PINNED)),
              list(driver.device).c_str(), list(driver.pinned).c_str());
}

Status countAllocations(const Options &options) {
  fake::Options counted;
  counted.threads = 1;
  fake::configure(counted);
  auto session = bound(options);
  if (!session)
    return session.takeStatus();
  std::printf("{\"arenas\": [");
  const char *comma = "";
  for (const plan::Arena &arena : (*session)->plan().arenas()) {
    std::printf("%s{\"name\": \"%s\", \"role\": \"%s\", \"space\": \"%s\", \"bytes\": %llu}", comma,
                arena.name().c_str(), plan::Arena::Role_Name(arena.role()).c_str(), showSpace(arena.space()).c_str(),
                static_cast<unsigned long long>(arena.bytes()));
    comma = ", ";
  }
  std::printf("]");
  printCounts(**session, "bound");
  for (const plan::Entry &entry : (*session)->plan().entries())
    for (int64_t step = 0; step < options.steps; ++step) {
      fillBatch(**session, step, false, entry.name());
      LOWTIDE_TRY((*session)->writeScalars(entry.name(), (*session)->scalarsOf(entry.name(), step, 0)));
      LOWTIDE_TRY((*session)->step(entry.name()));
      LOWTIDE_TRY((*session)->settle((*session)->depth()));
    }
  LOWTIDE_TRY((*session)->settle());
  LOWTIDE_TRY((*session)->download());
  printCounts(**session, "ran");
  LOWTIDE_TRY((*session)->close());
  printCounts(**session, "closed");
  std::printf("}\n");
  return Status::ok();
}

/// Everything that a session does.
Status wholeLife(const Options &options) {
  auto session = bound(options);
  if (!session)
    return session.takeStatus();
  LOWTIDE_TRY(runSteps(**session, options, 0, options.steps));
  LOWTIDE_TRY((*session)->settle());
  LOWTIDE_TRY((*session)->download());
  return (*session)->close();
}

/// As much of it as may ask for memory.
Status bindAlone(const Options &options) {
  auto session = bound(options);
  return session ? Status::ok() : session.takeStatus();
}

/// How many functions of a library were called, and which were not.
template <size_t count>
void printCalled(const char *library, const char *const (&names)[count], const std::map<std::string, uint64_t> &calls) {
  std::string missing;
  size_t called = 0;
  for (const char *name : names) {
    if (calls.count(name))
      ++called;
    else
      missing += std::string(missing.empty() ? "; not " : ", ") + name;
  }
  std::printf("%s: %zu of %zu functions%s\n", library, called, count, called ? missing.c_str() : "");
}

void printCalled(const std::map<std::string, uint64_t> &calls) {
#define LOWTIDE_NAME(name, ...) #name,
  static const char *const driver[] = {LOWTIDE_CUDA_DRIVER(LOWTIDE_NAME)};
  static const char *const cublasLt[] = {LOWTIDE_CUBLASLT(LOWTIDE_NAME)};
  static const char *const cudnn[] = {LOWTIDE_CUDNN(LOWTIDE_NAME)};
#undef LOWTIDE_NAME
  printCalled("driver", driver, calls);
  printCalled("cuBLASLt", cublasLt, calls);
  printCalled("cuDNN", cudnn, calls);
}

/// What is wrong with how a failure was told; empty: nothing.
std::string complaint(const std::string &name, const Status &status, const Options &options) {
  if (std::vector<std::string> live = fake::report().live; !live.empty())
    return "left: " + live[0];
  // What only describes a choice may fail without harm, and so may engines, after which there are others.
  bool harmless = name == "cublasLtMatmulAlgoConfigGetAttribute" || name == "cudnnBackendFinalize" ||
                  name == "cudnnBackendGetAttribute";
  if (status.isOk())
    return harmless ? "" : "no failure was told";
  if (status.str().find(name) == std::string::npos && !harmless)
    return "the call is not named: " + status.str();
  if (options.outOfMemory && !harmless && status.code() != StatusCode::OverBudget)
    return "not told as memory that is used up: " + status.str();
  if (options.outOfMemory && !harmless && status.message().find("; the plan takes ") == std::string::npos)
    return "the plan is not shown: " + status.str();
  return status.message().find("; ") == std::string::npos ? "no remedy is named: " + status.str() : "";
}

Status failEveryCall(const Options &options) {
  fake::Options failing;
  failing.threads = 1;
  failing.failsForMemory = options.outOfMemory;
  fake::configure(failing);
  auto live = [&] { return options.outOfMemory ? bindAlone(options) : wholeLife(options); };
  std::map<std::string, uint64_t> calls;
  if (options.outOfMemory) {
    // What a shutdown calls gives memory back.
    auto session = bound(options);
    if (!session)
      return session.takeStatus();
    calls = fake::report().calls;
  } else {
    LOWTIDE_TRY(live());
    calls = fake::report().calls;
  }
  uint64_t trials = 0;
  int wrong = 0;
  for (const auto &[name, count] : calls)
    for (uint64_t n = 1; n <= count; ++n, ++trials) {
      failing.failCall = name, failing.failAt = n;
      fake::configure(failing);
      if (std::string said = complaint(name, live(), options); !said.empty() && ++wrong < 20)
        std::printf("FAIL %s, call %llu of %llu: %s\n", name.c_str(), static_cast<unsigned long long>(n),
                    static_cast<unsigned long long>(count), said.c_str());
    }
  std::printf("%zu functions, %llu calls failed one by one, %d told wrongly\n", calls.size(),
              static_cast<unsigned long long>(trials), wrong);
  printCalled(calls);
  return wrong ? Status(StatusCode::Internal, "not every failure is told") : Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--steps=", 8) == 0)
      options.steps = std::atoll(argv[i] + 8);
    else if (std::strncmp(argv[i], "--overflow-every=", 17) == 0)
      options.overflowEvery = std::atoll(argv[i] + 17);
    else if (std::strcmp(argv[i], "--fail") == 0)
      options.fail = true;
    else if (std::strcmp(argv[i], "--allocations") == 0)
      options.allocations = true;
    else if (std::strcmp(argv[i], "--out-of-memory") == 0)
      options.fail = options.outOfMemory = true;
    else
      options.artifact = argv[i];
  }
  if (!options.artifact) {
    std::fprintf(stderr, "usage: lowtide-device-calls step.tide [--steps=N] [--overflow-every=N] "
                         "[--fail|--out-of-memory|--allocations]\n");
    return 1;
  }
  return exitCodeOf([&] {
    return options.fail ? failEveryCall(options) : options.allocations ? countAllocations(options) : trace(options);
  });
}
