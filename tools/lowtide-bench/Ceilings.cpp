//===- Ceilings.cpp - what the device can do at best, measured in this run -===//

#include "Ceilings.h"

#include "runtime/ArtifactWriter.h"
#include "runtime/ExchangeBlocks.h"
#include "runtime/Verify.h"
#include "runtime/Workspace.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <unistd.h>

namespace lowtide::bench {

using namespace rt;

namespace {

void setInteger(plan::Call &call, const char *name, int64_t value) {
  plan::Attribute *attribute = call.add_attributes();
  attribute->set_name(name);
  attribute->set_i(value);
}

/// Random numbers that matrices are made of, over and over: equal ones would multiply faster than what a model trains.
constexpr int64_t randomNumbers = int64_t(1) << 18;

/// A plan that copies `copyBytes` and multiplies two matrices of `side` rows.
plan::Plan ceilingPlan(const std::string &target, uint64_t copyBytes, int64_t side, plan::DType dtype) {
  plan::Plan plan;
  plan.set_format_version(planFormatVersion);
  plan.set_producer("lowtide-bench");
  plan.set_target(target);
  plan.set_threads_max(256);
  plan::Entry *entry = plan.add_entries();
  entry->set_name("ceilings");
  uint64_t matrix = static_cast<uint64_t>(side * side) * elementBytes(dtype), at = 0, value = 0;
  auto slice = [&](uint64_t bytes) {
    plan::Slice next;
    next.set_arena(0);
    next.set_offset(at);
    next.set_bytes(bytes);
    next.set_value(++value);
    at += (bytes + 255) / 256 * 256;
    return next;
  };
  auto copy = [&](const plan::Slice &source, const plan::Slice &target) {
    plan::Copy *copy = entry->add_instructions()->mutable_copy();
    *copy->mutable_source() = source;
    *copy->mutable_target() = target;
  };
  plan::Binding *numbers = entry->add_bindings();
  numbers->set_name("numbers");
  numbers->set_kind(plan::Binding::CONSTANT);
  numbers->set_dtype(dtype);
  numbers->add_dims(randomNumbers);
  numbers->set_batch_dim(-1);
  plan::Slice &random = *numbers->mutable_slice();
  random.set_arena(1);
  random.set_bytes(static_cast<uint64_t>(randomNumbers) * elementBytes(dtype));
  random.set_value(++value);
  numbers->set_final_value(random.value());
  auto fill = [&](const plan::Slice &target) {
    for (uint64_t done = 0; done < target.bytes();) {
      plan::Slice from = random, to = target;
      from.set_bytes(std::min(random.bytes(), target.bytes() - done));
      to.set_offset(target.offset() + done);
      to.set_bytes(from.bytes());
      copy(from, to);
      done += from.bytes();
    }
  };
  plan::Slice source = slice(copyBytes), copied = slice(copyBytes), a = slice(matrix), b = slice(matrix),
              d = slice(matrix);
  plan::Fill *background = entry->add_instructions()->mutable_fill();
  *background->mutable_target() = source;
  background->set_pattern_bytes(4);
  background->set_pattern(0x3f804000);
  fill(a), fill(b);
  copy(source, copied);
  plan::Instruction *product = entry->add_instructions();
  product->set_flops(2 * static_cast<uint64_t>(side) * static_cast<uint64_t>(side) * static_cast<uint64_t>(side));
  plan::Call *call = product->mutable_call();
  call->set_callee("gemm");
  setInteger(*call, "m", side), setInteger(*call, "n", side), setInteger(*call, "k", side);
  plan::Attribute *type = call->add_attributes();
  type->set_name("dtype");
  type->set_s(dtype == plan::F16 ? "f16" : dtype == plan::BF16 ? "bf16" : dtype == plan::F64 ? "f64" : "f32");
  *call->add_reads() = a;
  *call->add_reads() = b;
  *call->add_writes() = d;
  if (target.rfind("cuda:", 0) == 0) {
    plan::Slice workspace = slice(uint64_t(32) << 20);
    workspace.set_value(0);
    *call->mutable_workspace() = workspace;
  }
  plan::Arena *arena = plan.add_arenas();
  arena->set_name("ceilings");
  arena->set_role(plan::Arena::TRANSIENT);
  arena->set_space(plan::Arena::DEVICE);
  arena->set_bytes(at);
  arena->set_alignment(256);
  plan::Arena *constants = plan.add_arenas();
  constants->set_name("numbers");
  constants->set_role(plan::Arena::PARAMS);
  constants->set_space(plan::Arena::DEVICE);
  constants->set_bytes(random.bytes());
  constants->set_alignment(256);
  if (isGpu(target))
    addExchangeArenas(plan);
  return plan;
}

} // namespace

plan::DType multiplicationType(const plan::Entry &entry) {
  std::map<std::string, uint64_t> flops;
  auto visit = [&](auto &&self, const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions) -> void {
    for (const plan::Instruction &instruction : instructions) {
      if (instruction.has_repeat())
        self(self, instruction.repeat().body());
      for (const plan::Attribute &attribute : instruction.call().attributes())
        if (attribute.name() == "dtype")
          flops[attribute.s()] += instruction.flops();
    }
  };
  visit(visit, entry.instructions());
  auto most =
      std::max_element(flops.begin(), flops.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  if (most == flops.end())
    return plan::F32;
  return most->first == "f16"    ? plan::F16
         : most->first == "bf16" ? plan::BF16
         : most->first == "f64"  ? plan::F64
                                 : plan::F32;
}

Expected<Ceilings> measureCeilings(const std::string &target, plan::DType gemmType, const BindOptions &options) {
  bool gpu = target.rfind("cuda:", 0) == 0;
  const uint64_t copyBytes = gpu ? uint64_t(4) << 30 : uint64_t(64) << 20;
  plan::Plan plan = ceilingPlan(target, copyBytes, gpu ? 8192 : 768, gemmType);
  std::string path =
      (std::filesystem::temp_directory_path() / ("lowtide-ceilings-" + std::to_string(::getpid()) + ".tide")).string();
  auto writer = ArtifactWriter::create(path);
  if (!writer)
    return writer.takeStatus();
  LOWTIDE_TRY((*writer)->add("plan", plan.SerializeAsString()));
  LOWTIDE_TRY((*writer)->add("params", ""));
  LOWTIDE_TRY((*writer)->finish());
  auto session = Session::load(path);
  std::error_code ignored;
  std::filesystem::remove(path, ignored); // it stays mapped
  if (!session)
    return session.takeStatus();
  LOWTIDE_TRY((*session)->bind(options));
  const plan::Entry &entry = (*session)->plan().entries(0);
  Ceilings best;
  best.gemmType = gemmType;
  std::vector<InstructionTime> before;
  (*session)->device().measure(entry, Measuring::Alone);
  for (int run = 0; run < 6; ++run) {
    LOWTIDE_TRY((*session)->step("ceilings"));
    LOWTIDE_TRY((*session)->settle());
    std::vector<InstructionTime> times = (*session)->device().times(entry);
    for (size_t i = 0; i < times.size() && run > 0; ++i) {
      double seconds = static_cast<double>(times[i].nanoseconds - before[i].nanoseconds) / 1e9;
      if (seconds <= 0)
        continue;
      if (times[i].flops)
        best.gemmGFlops = std::max(best.gemmGFlops, static_cast<double>(times[i].flops) / 1e9 / seconds);
      else if (times[i].what == "copy" && times[i].bytes == 2 * copyBytes)
        best.copyGBPerSecond = std::max(best.copyGBPerSecond, static_cast<double>(times[i].bytes) / 1e9 / seconds);
    }
    before = times;
  }
  LOWTIDE_TRY((*session)->close());
  return best;
}

} // namespace lowtide::bench
