//===- PlanProtoTest.cpp - plan text ⇄ protobuf ---------------------------===//
//
// Random plans in the format: proto → op → proto keeps every byte, op → text → op → proto too.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Serialize/PlanProto.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>
#include <random>

using namespace lowtide;

namespace {

/// Fills a plan with whatever the format allows; it does not have to be right.
class Generator {
public:
  explicit Generator(uint64_t seed) : random(seed) {}

  plan::Plan make() {
    plan.set_format_version(getPlanFormatVersion());
    plan.set_producer(text());
    plan.set_target("cpu:x86-64-v3");
    plan.set_threads_max(below(64));
    for (uint64_t i = 0, e = 1 + below(4); i < e; ++i) {
      plan::Arena &arena = *plan.add_arenas();
      arena.set_name("arena" + std::to_string(i));
      arena.set_role(plan::Arena::Role(1 + below(4)));
      arena.set_space(plan::Arena::DEVICE);
      arena.set_bytes(1 << 20);
      arena.set_alignment(uint64_t(1) << below(12));
      arena.set_image_bytes(below(1 << 20));
    }
    for (uint64_t i = 0, e = 1 + below(4); i < e; ++i) {
      plan::Kernel &kernel = *plan.add_kernels();
      kernel.set_symbol("kernel \"" + std::to_string(i));
      kernel.set_reads(below(3));
      kernel.set_writes(below(3));
      kernel.set_scratch_bytes(below(100));
      kernel.set_description(text());
      for (uint64_t j = 0, e = below(3); j < e; ++j)
        footprint(kernel, j);
    }
    for (uint64_t i = 0, e = below(4); i < e; ++i)
      source(*plan.add_sources());
    if (below(2)) {
      plan.mutable_schedule()->set_kind(plan::Schedule::Kind(below(3)));
      plan.mutable_schedule()->set_lr(real());
      plan.mutable_schedule()->set_warmup_steps(below(100));
      plan.mutable_schedule()->set_min_lr(real());
    }
    if (below(2)) {
      plan.mutable_optimizer()->set_kind("adamw");
      for (uint64_t i = 0, e = below(4); i < e; ++i)
        (*plan.mutable_optimizer()->mutable_options())["o" + std::to_string(below(9))] = real();
    }
    for (uint64_t i = 0, e = below(4); i < e; ++i)
      entry(*plan.add_entries(), i);
    // Where no slice lies.
    for (uint64_t i = 0, e = below(4); i < e; ++i) {
      plan::Arena &arena = *plan.add_arenas();
      arena.set_name("own" + std::to_string(i));
      arena.set_role(plan::Arena::Role(plan::Arena::EXCHANGE_IN + below(3)));
      arena.set_space(plan::Arena::Space(plan::Arena::DEVICE + below(4)));
      arena.set_bytes(below(1 << 20));
      arena.set_alignment(uint64_t(1) << below(12));
    }
    return plan;
  }

private:
  uint64_t below(uint64_t bound) { return random() % bound; }
  std::string text() { return below(3) ? "näme/\"" + std::to_string(below(100)) + "\\\n" : ""; }
  double real() { return below(3) ? double(int64_t(random())) / 3e7 : 0.0; }
  void slice(plan::Slice &slice) {
    slice.set_arena(below(plan.arenas_size()));
    slice.set_offset(below(1000));
    slice.set_bytes(below(1000));
    slice.set_value(random() >> below(64));
  }
  /// Extents tell the footprints of a kernel apart: equal ones are stated once.
  void footprint(plan::Kernel &kernel, uint64_t number) {
    plan::Footprint &to = *kernel.add_footprints();
    to.set_extent(number);
    to.set_grain(1 + below(9));
    auto fill = [&](plan::Footprint::Tensor &tensor) {
      tensor.set_dtype(plan::DType(1 + below(13)));
      tensor.set_elements(below(1000));
    };
    for (uint32_t i = 0; i < kernel.reads(); ++i)
      fill(*to.add_reads());
    for (uint32_t i = 0; i < kernel.writes(); ++i)
      fill(*to.add_writes());
    for (uint64_t i = 0, e = kernel.reads() && kernel.writes() ? below(3) : 0; i < e; ++i) {
      plan::Footprint::InPlace &pair = *to.add_in_place();
      pair.set_result(uint32_t(below(kernel.writes())));
      pair.set_operand(uint32_t(below(kernel.reads())));
    }
  }
  void source(plan::ParameterSource &source) {
    source.set_name(text());
    source.set_initializer(text());
    for (uint64_t i = 0, e = below(3); i < e; ++i) {
      source.add_original_dims(below(9));
      source.add_permutation(i);
      source.add_tied_names(text());
    }
    source.set_module_path(text());
    source.set_slice_axis(below(3));
    source.set_slice_start(below(3));
    source.set_slice_size(below(3));
    source.set_random_init(text());
  }
  void instruction(plan::Instruction &to, int depth) {
    to.set_stream(below(3));
    to.set_location(text());
    to.set_flops(below(3) ? random() : 0);
    switch (below(depth < 3 ? 7 : 6)) {
    case 0: {
      plan::Launch &launch = *to.mutable_launch();
      launch.set_kernel(below(plan.kernels_size()));
      for (uint32_t i = 0; i < plan.kernels(launch.kernel()).reads(); ++i)
        slice(*launch.add_reads());
      for (uint32_t i = 0; i < plan.kernels(launch.kernel()).writes(); ++i)
        slice(*launch.add_writes());
      launch.set_extent(below(1000));
      launch.set_grain(below(1000));
      if (below(2))
        slice(*launch.mutable_scratch());
      break;
    }
    case 1: {
      plan::Call &call = *to.mutable_call();
      call.set_callee("gemm");
      // The compiler writes attributes sorted by name.
      for (const char *name : {"a", "b", "c", "d"}) {
        plan::Attribute &attribute = *call.add_attributes();
        attribute.set_name(name);
        switch (below(4)) {
        case 0:
          attribute.set_i(int64_t(random()));
          break;
        case 1:
          attribute.set_f(real());
          break;
        case 2:
          attribute.set_s(text());
          break;
        default:
          for (uint64_t i = 0, e = below(4); i < e; ++i)
            attribute.mutable_ints()->add_values(int64_t(random()));
          attribute.mutable_ints();
        }
      }
      slice(*call.add_reads());
      if (below(2))
        slice(*call.add_writes());
      if (below(2))
        slice(*call.mutable_workspace());
      break;
    }
    case 2:
      slice(*to.mutable_copy()->mutable_source());
      slice(*to.mutable_copy()->mutable_target());
      to.mutable_copy()->set_source_step(int64_t(below(5)) * 64 - 128);
      to.mutable_copy()->set_target_step(int64_t(below(5)) * 64 - 128);
      break;
    case 3:
      slice(*to.mutable_fill()->mutable_target());
      to.mutable_fill()->set_pattern(random());
      to.mutable_fill()->set_pattern_bytes(below(9));
      break;
    case 4:
      to.mutable_record()->set_event(below(9));
      break;
    case 5:
      to.mutable_wait()->set_event(below(9));
      break;
    default:
      to.mutable_repeat()->set_count(below(9));
      for (uint64_t i = 0, e = below(3); i < e; ++i) {
        plan::Carry &carry = *to.mutable_repeat()->add_carries();
        slice(*carry.mutable_slice());
        carry.set_next_value(random() >> below(64));
      }
      for (uint64_t i = 0, e = below(3); i < e; ++i)
        instruction(*to.mutable_repeat()->add_body(), depth + 1);
    }
  }
  void entry(plan::Entry &entry, uint64_t number) {
    entry.set_name("entry" + std::to_string(number));
    entry.set_batch(below(64));
    entry.set_peak_live_bytes(below(1 << 20));
    entry.set_streams(below(4));
    entry.set_events(below(4));
    for (uint64_t i = 0, e = below(4); i < e; ++i) {
      plan::Binding &binding = *entry.add_bindings();
      binding.set_name(text());
      binding.set_kind(plan::Binding::Kind(1 + below(7)));
      binding.set_dtype(plan::DType(1 + below(13)));
      for (uint64_t d = 0, rank = below(4); d < rank; ++d)
        binding.add_dims(below(9));
      slice(*binding.mutable_slice());
      binding.set_final_value(below(100));
      binding.set_initial_value(real());
      binding.set_from_image(below(2));
      binding.set_batch_dim(int64_t(below(4)) - 1);
      binding.set_group(text());
    }
    for (uint64_t i = 0, e = below(6); i < e; ++i)
      instruction(*entry.add_instructions(), 0);
  }

  std::mt19937_64 random;
  plan::Plan plan;
};

TEST(PlanProto, RoundTripsKeepEveryByte) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<plan::PlanDialect>();
  for (uint64_t seed = 0; seed < 500; ++seed) {
    plan::Plan proto = Generator(seed).make();
    std::string bytes = serializePlan(proto);
    auto op = importPlan(proto, mlir::UnknownLoc::get(&context));
    ASSERT_TRUE(op) << "seed " << seed;
    plan::Plan again;
    ASSERT_TRUE(mlir::succeeded(exportPlan(*op, again)));
    ASSERT_EQ(serializePlan(again), bytes) << "seed " << seed;

    std::string text;
    llvm::raw_string_ostream(text) << **op;
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    plan::Plan third;
    ASSERT_TRUE(mlir::succeeded(exportPlan(*module->getOps<plan::ModuleOp>().begin(), third)));
    ASSERT_EQ(serializePlan(third), bytes) << text;
  }
}

TEST(PlanProto, RefusesWhatDoesNotExist) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::vector<std::string> messages;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) { messages.push_back(d.str()); });
  plan::Plan proto;
  proto.add_entries()->set_name("train");
  proto.mutable_entries(0)->add_instructions()->mutable_fill()->mutable_target()->set_arena(3);
  EXPECT_FALSE(importPlan(proto, mlir::UnknownLoc::get(&context)));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0], "arena 3 does not exist");
}

} // namespace
