//===- VerifyLaunchTest.cpp - launches and what their kernels state --------===//

#include "VerifyRefusals.h"

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

TEST(Verify, RefusesBadKernelsAndLaunches) {
  refused([](plan::Plan &p) { p.mutable_kernels(0)->clear_symbol(); }, "symbol");
  refused([](plan::Plan &p) { p.mutable_kernels(0)->set_reads(3); }, "has 2 operands, the kernel 3");
  refused([](plan::Plan &p) { p.mutable_kernels(0)->set_writes(0); }, "has 1 results, the kernel 0");
  refused([](plan::Plan &p) { subtract(p).mutable_reads()->RemoveLast(); },
          "takes 2 + 1 operands, the launch has 1 + 1");
  refused([](plan::Plan &p) { p.mutable_kernels(1)->set_scratch_bytes(128); }, "scratch of 64");
  refused([](plan::Plan &p) { p.mutable_kernels(1)->set_scratch_bytes(uint64_t(1) << 62); }, "scratch is too large");
  refused([](plan::Plan &p) { p.set_threads_max(0); }, "threads_max");
  // Two tasks need two parts, or as many as threads may run.
  refused(
      [](plan::Plan &p) {
        train(p).mutable_instructions(2)->mutable_launch()->set_extent(2);
        p.mutable_kernels(1)->mutable_footprints(0)->set_extent(2);
      },
      "scratch of 64 bytes; kernel 'mean_square' needs 128");
  refused([](plan::Plan &p) { p.set_threads_max(5000); }, "5000");
  refused([](plan::Plan &p) { subtract(p).set_kernel(3); }, "kernel 3");
  refused([](plan::Plan &p) { subtract(p).set_grain(0); }, "grain 0");
  refused([](plan::Plan &p) { subtract(p).set_extent(-1); }, "extent -1");
  refused([](plan::Plan &p) { train(p).mutable_instructions(2)->mutable_launch()->mutable_scratch()->set_offset(64); },
          "workspace overlaps");
  refused([](plan::Plan &p) { train(p).mutable_instructions(2)->mutable_launch()->mutable_scratch()->set_arena(Io); },
          "transient");
  refused([](plan::Plan &p) { train(p).mutable_instructions(2)->mutable_launch()->mutable_scratch()->set_offset(100); },
          "");
}

TEST(Verify, HoldsLaunchesToTheFootprintsOfTheirKernels) {
  // The machine code would touch bytes beyond the slices, or leave some of a result unwritten.
  for (int64_t extent : {int64_t(0), samples - 1, samples + 1, int64_t(99999999), INT64_MAX})
    refused([=](plan::Plan &p) { subtract(p).set_extent(extent); },
            "kernel 'subtract' states extent 16 by 4 over 64 + 64 bytes to 64; the launch has extent");
  refused([](plan::Plan &p) { subtract(p).set_grain(8); }, "the launch has extent 16 by 8");
  refused([](plan::Plan &p) { subtract(p).mutable_reads(1)->set_bytes(32); }, "over 64 + 32 bytes to 64");
  // Another kernel with as many operands.
  refused(
      [](plan::Plan &p) {
        plan::Kernel *larger = p.add_kernels();
        *larger = p.kernels(0);
        larger->set_symbol("larger");
        larger->clear_footprints();
        addFootprint(*larger, samples, 4, {samples, samples}, {2 * samples});
        subtract(p).set_kernel(3);
      },
      "kernel 'larger' states extent 16 by 4 over 64 + 64 bytes to 128");
  refused([](plan::Plan &p) { p.mutable_kernels(0)->clear_footprints(); }, "states no footprint");
  refused([](plan::Plan &p) { p.mutable_kernels(0)->mutable_footprints(0)->mutable_reads(0)->clear_dtype(); },
          "operands of no known size");
  refused(
      [](plan::Plan &p) {
        p.mutable_kernels(0)->mutable_footprints(0)->mutable_writes(0)->set_elements(uint64_t(1) << 62);
      },
      "results of no known size");
  refused([](plan::Plan &p) { p.mutable_kernels(0)->mutable_footprints(0)->set_grain(0); }, "extent 16, grain 0");
  // Elements that the code would read across their borders.
  refused(
      [](plan::Plan &p) {
        subtract(p).mutable_reads(1)->set_offset(514);
        train(p).mutable_bindings(1)->mutable_slice()->set_offset(514);
      },
      "");

  // One code may serve several launches.
  plan::Plan both = regressionPlan();
  addFootprint(*both.mutable_kernels(0), 2 * samples, 4, {2 * samples, 2 * samples}, {2 * samples});
  EXPECT_TRUE(verifyPlan(both).isOk()) << verifyPlan(both).str();
}

TEST(Verify, ResultsTakeThePlaceOfOperandsThatAreReadBefore) {
  // The difference where the prediction was: whoever reads the prediction late would read differences.
  auto overlay = [](plan::Plan &plan) {
    for (plan::Entry &entry : *plan.mutable_entries()) {
      entry.mutable_instructions(1)->mutable_launch()->mutable_writes(0)->set_offset(0);
      entry.mutable_instructions(2)->mutable_launch()->mutable_reads(0)->set_offset(0);
      if (entry.instructions_size() > 3)
        entry.mutable_instructions(3)->mutable_call()->mutable_reads(1)->set_offset(0);
    }
    train(plan).mutable_instructions(3)->mutable_call()->mutable_writes(0)->set_offset(64);
    train(plan).mutable_instructions(4)->mutable_launch()->mutable_reads(1)->set_offset(64);
  };
  refused([&](plan::Plan &p) { overlay(p); },
          "result 0 lies where operand 0 does, which its kernel may read after that");
  // A kernel that reads each element before it writes there may.
  plan::Plan plan = regressionPlan();
  overlay(plan);
  addInPlace(*plan.mutable_kernels(0), 0, 0);
  EXPECT_TRUE(verifyPlan(plan).isOk()) << verifyPlan(plan).str();
  // The other operand is not what was stated.
  plan.mutable_kernels(0)->mutable_footprints(0)->mutable_in_place(0)->set_operand(1);
  EXPECT_NE(verifyPlan(plan).str().find("result 0 lies where operand 0 does"), std::string::npos);
  // Every operand of that range has to be one that may be written over.
  refused(
      [](plan::Plan &p) {
        *train(p).mutable_instructions(4)->mutable_launch()->mutable_reads(1) =
            train(p).instructions(4).launch().reads(0);
      },
      "result 0 lies where operand 1 does");
  refused([](plan::Plan &p) { addInPlace(*p.mutable_kernels(0), 0, 2); }, "result 0 in place of operand 2");
  refused([](plan::Plan &p) { addInPlace(*p.mutable_kernels(0), 1, 0); }, "result 1 in place of operand 0");
}

TEST(Verify, RefusesKernelsOfAnotherTarget) {
  refused([](plan::Plan &p) { p.mutable_kernels(0)->set_threads_per_block(32); }, "is for a GPU, the plan for 'cpu");
  refused([](plan::Plan &p) { p.set_target("cuda:sm_90"); }, "is for the CPU, the plan for 'cuda:sm_90'");
  plan::Plan plan = regressionPlan();
  for (uint32_t version : {0u, 1u, 2u, 99u}) {
    plan.set_format_version(version);
    EXPECT_EQ(verifyPlan(plan).code(), StatusCode::Unsupported);
    EXPECT_NE(verifyPlan(plan).str().find("plan format " + std::to_string(version)), std::string::npos);
  }
}

} // namespace
