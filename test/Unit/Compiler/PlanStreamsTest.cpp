//===- PlanStreamsTest.cpp - streams and events of plans with two memories -===//
//
// Values that wait in the plan of a real model are copied to memory of the host, or to a file, their place on the
// device is overwritten, and they come back before they are read. plan-assign-streams writes the events: the plan is
// proved, and the fake device gets the bits of the plan without copies in every order that the streams allow; the CPU
// gets them with copies that run while it computes. Without any one of its events, or of its waits, the proof fails.
//
//===----------------------------------------------------------------------===//
#include "Passes.h"
#include "lowtide/Compiler/Compiler.h"
#include "lowtide/Serialize/PlanProto.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/ArtifactWriter.h"
#include "runtime/FileStaging.h"
#include "runtime/Session.h"
#include "runtime/Verify.h"
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace lowtide;
namespace fs = std::filesystem;

namespace {

/// Where a value is, and when it is touched: indices of instructions of the entry.
struct Touched {
  plan::Slice slice;
  std::vector<int> at;
  bool isSimple = true;
};

/// Values that only launches and calls of the entry's own list touch, each as a whole.
std::map<uint64_t, Touched> findValues(const plan::Plan &plan, const plan::Entry &entry) {
  std::map<uint64_t, Touched> values;
  for (int i = 0; i < entry.instructions_size(); ++i) {
    const plan::Instruction &instruction = entry.instructions(i);
    const bool isSimple = instruction.has_launch() || instruction.has_call();
    auto touch = [&](auto &&self, const plan::Instruction &each) -> void {
      auto add = [&](const plan::Slice &slice) {
        Touched &value = values[slice.value()];
        if (value.at.empty())
          value.slice = slice;
        value.isSimple &= isSimple && slice.SerializeAsString() == value.slice.SerializeAsString() &&
                          plan.arenas(int(slice.arena())).role() == plan::Arena::TRANSIENT;
        value.at.push_back(i);
      };
      for (const auto *slices :
           {&each.launch().reads(), &each.launch().writes(), &each.call().reads(), &each.call().writes()})
        for (const plan::Slice &slice : *slices)
          add(slice);
      for (const plan::Slice *slice : {&each.copy().source(), &each.copy().target(), &each.fill().target()})
        add(*slice);
      for (const plan::Carry &carry : each.repeat().carries()) {
        add(carry.slice());
        values[carry.next_value()].isSimple = false;
      }
      for (const plan::Instruction &inner : each.repeat().body())
        self(self, inner);
    };
    touch(touch, instruction);
  }
  for (const plan::Binding &binding : entry.bindings()) {
    values[binding.slice().value()].isSimple = false;
    values[binding.final_value()].isSimple = false;
  }
  return values;
}

/// Adds copies to another memory and back around waits of at least three instructions, at most `most` in an entry.
int evict(plan::Plan &plan, std::mt19937_64 &random, int most, plan::Arena::Space space) {
  const uint64_t alignment = space == plan::Arena::FILE ? rt::fileAlignment : 64;
  const auto host = uint32_t(plan.arenas_size());
  uint64_t hostBytes = 0;
  int evicted = 0;
  for (plan::Entry &entry : *plan.mutable_entries()) {
    std::map<uint64_t, Touched> values = findValues(plan, entry);
    uint64_t fresh = values.rbegin()->first + 1;
    std::multimap<int, plan::Instruction> before, after;
    int left = most;
    for (auto &[number, value] : values) {
      if (!value.isSimple || !left || !value.slice.bytes() || random() % 2)
        continue;
      for (size_t k = 0; k + 1 < value.at.size(); ++k) {
        const int from = value.at[k], to = value.at[k + 1];
        if (to - from < 3)
          continue;
        plan::Slice away = value.slice, lost = value.slice, back = value.slice;
        away.set_arena(host), away.set_offset(hostBytes);
        away.set_value(fresh++), lost.set_value(fresh++), back.set_value(fresh++);
        hostBytes += (value.slice.bytes() + alignment - 1) / alignment * alignment;
        plan::Instruction out, over, in;
        *out.mutable_copy()->mutable_source() = value.slice, *out.mutable_copy()->mutable_target() = away;
        *over.mutable_fill()->mutable_target() = lost;
        over.mutable_fill()->set_pattern(0xFF), over.mutable_fill()->set_pattern_bytes(1);
        *in.mutable_copy()->mutable_source() = away, *in.mutable_copy()->mutable_target() = back;
        after.emplace(from, out), after.emplace(from, over);
        before.emplace(from + 2 + int(random() % uint64_t(to - from - 1)), in);
        for (int i = to; i < entry.instructions_size(); ++i) {
          plan::Instruction &later = *entry.mutable_instructions(i);
          auto rename = [&](auto &slices) {
            for (plan::Slice &slice : slices)
              if (slice.value() == number)
                slice.set_value(back.value());
          };
          if (later.has_launch())
            rename(*later.mutable_launch()->mutable_reads());
          else if (later.has_call())
            rename(*later.mutable_call()->mutable_reads());
        }
        --left, ++evicted;
        break;
      }
    }
    plan::Entry made = entry;
    made.clear_instructions();
    for (int i = 0; i < entry.instructions_size(); ++i) {
      for (auto [it, end] = before.equal_range(i); it != end; ++it)
        *made.add_instructions() = it->second;
      *made.add_instructions() = entry.instructions(i);
      for (auto [it, end] = after.equal_range(i); it != end; ++it)
        *made.add_instructions() = it->second;
    }
    made.set_peak_live_bytes(0);
    entry = made;
  }
  plan::Arena &arena = *plan.add_arenas();
  arena.set_name("evicted");
  arena.set_role(plan::Arena::TRANSIENT);
  arena.set_space(space);
  arena.set_bytes(hostBytes);
  arena.set_alignment(alignment);
  if (space == plan::Arena::FILE)
    *plan.add_arenas() = rt::listFileStaging();
  return evicted;
}

/// The plan with streams and events; nothing if the pass fails.
std::optional<plan::Plan> assignStreams(const plan::Plan &plan) {
  mlir::MLIRContext context;
  context.loadDialect<plan::PlanDialect>();
  mlir::OpBuilder builder(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder.getUnknownLoc());
  mlir::OwningOpRef<plan::ModuleOp> made = importPlan(plan, builder.getUnknownLoc());
  if (!made)
    return std::nullopt;
  plan::ModuleOp inner = made.release();
  module->push_back(inner);
  mlir::PassManager passes(&context);
  passes.addPass(createPlanAssignStreams());
  plan::Plan result;
  if (failed(passes.run(*module)) || failed(exportPlan(inner, result)))
    return std::nullopt;
  return result;
}

/// Losses of three steps, and what parameters and state are then, as bytes.
std::string train(const rt::Artifact &artifact, const plan::Plan &plan, uint64_t seed, unsigned threads = 1) {
  const std::string path = fs::temp_directory_path() / ("lowtide-streams-" + std::to_string(getpid()) + ".tide");
  auto text = [](std::span<const uint8_t> bytes) {
    return std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  };
  auto writer = rt::ArtifactWriter::create(path);
  bool good = bool(writer);
  auto add = [&](const char *name, std::string_view bytes) {
    good = good && (bytes.empty() || (*writer)->add(name, bytes).isOk());
  };
  add("plan", serializePlan(plan));
  add("params", text(artifact.params()));
  add("code", text(artifact.code()));
  add("ptx", text(artifact.ptx()));
  rt::Status status = good ? (*writer)->finish() : rt::Status(rt::StatusCode::Io, "cannot write");
  auto session = rt::Session::load(path);
  fs::remove(path);
  if (!status.isOk() || !session)
    return "not loaded: " + session.status().str();
  rt::BindOptions options;
  options.threads = threads, options.poison = true, options.schedule = seed;
  status = (*session)->bind(options);
  std::string bytes;
  auto take = [&](const rt::Tensor &tensor) {
    bytes.append(reinterpret_cast<const char *>(tensor.data), tensor.bytes());
  };
  for (int64_t step = 0; step < 3 && status.isOk(); ++step) {
    for (const rt::Tensor &tensor : (*session)->tensors("train", plan::Binding::BATCH))
      for (uint64_t i = 0; i < tensor.bytes() / rt::elementBytes(tensor.binding->dtype()); ++i) {
        const float real = float((i + uint64_t(step)) % 17) / 17;
        const int64_t whole = int64_t(i % 3);
        if (tensor.binding->dtype() == plan::F32)
          std::memcpy(tensor.data + i * 4, &real, 4);
        else if (tensor.binding->dtype() == plan::I64)
          std::memcpy(tensor.data + i * 8, &whole, 8);
      }
    status = (*session)->writeScalars("train", (*session)->scalarsOf("train", step, 0));
    if (status.isOk())
      status = (*session)->step("train");
    if (status.isOk())
      status = (*session)->settle();
    for (const rt::Tensor &tensor : (*session)->tensors("train", plan::Binding::METRIC))
      take(tensor);
  }
  if (status.isOk())
    status = (*session)->download("train");
  if (!status.isOk())
    return "not run: " + status.str();
  for (const rt::Tensor &tensor : (*session)->persistent()) {
    if (rt::Status brought = tensor.bring(rt::HostAccess::Read); !brought.isOk())
      return "not read: " + brought.str();
    take(tensor);
  }
  return bytes;
}

class PlanStreams : public testing::TestWithParam<const char *> {};

/// The step of a model for a target; null where it does not compile.
std::unique_ptr<rt::Artifact> compileStep(const std::string &model, const char *target) {
  Compiler compiler;
  Request request;
  request.target = target;
  request.optimizer = "adamw";
  request.lr = "0.01";
  request.batch = 4;
  Result step = compiler.compile(request, {LOWTIDE_TEST_MODELS "/" + model + "/model.onnx"});
  const std::string path = fs::temp_directory_path() / ("lowtide-streams-" + std::to_string(getpid()) + ".tide");
  if (!step.failure)
    step.failure = step.write(path);
  EXPECT_FALSE(step.failure) << step.failure.message;
  auto artifact = rt::Artifact::open(path);
  EXPECT_TRUE(artifact) << artifact.status().str();
  fs::remove(path);
  return artifact ? std::move(*artifact) : nullptr;
}

TEST_P(PlanStreams, CopiesToAFileRunMeanwhile) {
  const std::unique_ptr<rt::Artifact> artifact = compileStep(GetParam(), "cpu");
  ASSERT_TRUE(artifact);
  const plan::Plan given = artifact->plan();
  const std::string expected = train(*artifact, given, 0);
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    plan::Plan moved = given;
    ASSERT_GT(evict(moved, random, /*most=*/20, plan::Arena::FILE), 0);
    std::optional<plan::Plan> streamed = assignStreams(moved);
    ASSERT_TRUE(streamed);
    ASSERT_TRUE(rt::verifyPlan(*streamed).isOk()) << rt::verifyPlan(*streamed).str();
    uint32_t streams = 0;
    for (const plan::Entry &entry : streamed->entries())
      streams = std::max(streams, entry.streams());
    EXPECT_EQ(streams, 3u);
    EXPECT_TRUE(train(*artifact, *streamed, 0, /*threads=*/1 + seed % 3) == expected);
  }
}

TEST_P(PlanStreams, EveryEventIsNeeded) {
  const std::unique_ptr<rt::Artifact> artifact = compileStep(GetParam(), "cuda-emulated");
  ASSERT_TRUE(artifact);
  const plan::Plan given = artifact->plan();
  // Without copies between memories there is nothing to do.
  std::optional<plan::Plan> same = assignStreams(given);
  ASSERT_TRUE(same);
  EXPECT_EQ(serializePlan(*same), serializePlan(given));
  const std::string expected = train(*artifact, given, 0);
  int events = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    plan::Plan moved = given;
    ASSERT_GT(evict(moved, random, /*most=*/12, plan::Arena::HOST_PINNED), 0);
    rt::Status status = rt::verifyPlan(moved);
    ASSERT_TRUE(status.isOk()) << status.str();
    std::optional<plan::Plan> streamed = assignStreams(moved);
    ASSERT_TRUE(streamed);
    status = rt::verifyPlan(*streamed);
    ASSERT_TRUE(status.isOk()) << status.str();
    EXPECT_TRUE(train(*artifact, *streamed, seed) == expected);
    for (int number = 0; number < streamed->entries_size(); ++number) {
      const plan::Entry &entry = streamed->entries(number);
      EXPECT_EQ(entry.streams(), 3u);
      events += int(entry.events());
      // Each event with all that wait for it, then each wait alone.
      auto without = [&](auto &&isGone) {
        plan::Plan less = *streamed;
        less.mutable_entries(number)->clear_instructions();
        for (int i = 0; i < entry.instructions_size(); ++i)
          if (!isGone(i, entry.instructions(i)))
            *less.mutable_entries(number)->add_instructions() = entry.instructions(i);
        return rt::verifyPlan(less);
      };
      for (uint32_t event = 0; event < entry.events(); ++event)
        EXPECT_EQ(without([&](int, const plan::Instruction &each) {
                    return (each.has_record() && each.record().event() == event) ||
                           (each.has_wait() && each.wait().event() == event);
                  }).code(),
                  rt::StatusCode::VerifyFailed)
            << "without event " << event << " of " << entry.name();
      for (int i = 0; i < entry.instructions_size(); ++i)
        if (entry.instructions(i).has_wait())
          EXPECT_EQ(without([&](int at, const plan::Instruction &) { return at == i; }).code(),
                    rt::StatusCode::VerifyFailed)
              << "without the wait that is instruction " << i << " of " << entry.name();
    }
  }
  EXPECT_GT(events, 20);
}

INSTANTIATE_TEST_SUITE_P(Models, PlanStreams, testing::Values("mlp-digits", "cnn-digits", "moe-tiny"));

} // namespace
