//===- DeferredUpdatesTest.cpp - updates that wait for the next step ------===//

#include "Plans.h"
#include "runtime/ArtifactWriter.h"
#include "runtime/Session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

/// `train` leaves fives as the pending new value of "w", `flush` makes it, `eval` copies "w" to its output "out".
plan::Plan deferredPlan() {
  plan::Plan plan;
  plan.set_format_version(planFormatVersion);
  plan.set_target("reference");
  addArena(plan, "transient", plan::Arena::TRANSIENT, 64);
  addArena(plan, "state", plan::Arena::STATE, 192);
  auto add = [&](const char *name) -> plan::Entry & {
    plan::Entry &entry = *plan.add_entries();
    entry.set_name(name);
    return entry;
  };
  auto fill = [](plan::Entry &entry, const plan::Slice &to, uint64_t pattern, uint32_t bytes) {
    plan::Fill &fill = *entry.add_instructions()->mutable_fill();
    *fill.mutable_target() = to;
    fill.set_pattern(pattern), fill.set_pattern_bytes(bytes);
  };
  auto copy = [](plan::Entry &entry, const plan::Slice &from, const plan::Slice &to) {
    plan::Copy &copy = *entry.add_instructions()->mutable_copy();
    *copy.mutable_source() = from, *copy.mutable_target() = to;
  };
  auto pending = [](plan::Entry &entry, uint64_t gradient, uint64_t flag) {
    bind(entry, "pending/grad/w", plan::Binding::STATE, plan::I32, {16}, slice(1, 64, 64, 2), gradient)
        .set_pending(true);
    bind(entry, "pending", plan::Binding::STATE, plan::BOOL, {}, slice(1, 128, 1, 3), flag).set_pending(true);
  };
  plan::Entry &train = add("train");
  fill(train, slice(1, 64, 64, 4), 5, 4);
  fill(train, slice(1, 128, 1, 5), 1, 1);
  pending(train, 4, 5);
  plan::Entry &flush = add("flush");
  copy(flush, slice(1, 64, 64, 2), slice(1, 0, 64, 4));
  fill(flush, slice(1, 128, 1, 5), 0, 1);
  bind(flush, "w", plan::Binding::STATE, plan::I32, {16}, slice(1, 0, 64, 1), 4).set_initial_value(3);
  pending(flush, 2, 5);
  plan::Entry &eval = add("eval");
  copy(eval, slice(1, 0, 64, 1), slice(0, 0, 64, 2));
  bind(eval, "w", plan::Binding::STATE, plan::I32, {16}, slice(1, 0, 64, 1), 1).set_initial_value(3);
  bind(eval, "out", plan::Binding::OUTPUT, plan::I32, {16}, slice(0, 0, 64, 0), 2);
  return plan;
}

class DeferredUpdates : public testing::Test {
protected:
  void SetUp() override {
    const std::string path = testing::TempDir() + "deferred.tide";
    auto writer = ArtifactWriter::create(path);
    ASSERT_TRUE((*writer)->add("plan", deferredPlan().SerializeAsString()).isOk());
    ASSERT_TRUE((*writer)->finish().isOk());
    auto loaded = Session::load(path);
    ASSERT_TRUE(loaded) << loaded.status().str();
    session = std::move(*loaded);
    ASSERT_TRUE(session->bind({.threads = 1}).isOk());
  }

  int32_t read(const char *entry, const char *name) {
    int32_t number = 0;
    std::memcpy(&number, session->tensor(entry, name)->data, sizeof number);
    return number;
  }

  std::unique_ptr<Session> session;
};

} // namespace

TEST_F(DeferredUpdates, AreMadeBeforeAnotherEntry) {
  ASSERT_TRUE(session->step("train").isOk());
  EXPECT_EQ(read("flush", "w"), 3);
  ASSERT_TRUE(session->step("eval").isOk());
  EXPECT_EQ(read("eval", "out"), 5);
  EXPECT_EQ(*session->tensor("flush", "pending")->data, 0);
}

TEST_F(DeferredUpdates, AreMadeBeforeTheHostReads) {
  // Nothing is pending at first, and what stands there is not overwritten.
  ASSERT_TRUE(session->download().isOk());
  EXPECT_EQ(read("flush", "w"), 3);
  ASSERT_TRUE(session->step("train").isOk());
  ASSERT_TRUE(session->step("train").isOk());
  EXPECT_EQ(*session->tensor("flush", "pending")->data, 1);
  ASSERT_TRUE(session->download().isOk());
  EXPECT_EQ(read("flush", "w"), 5);
}

TEST_F(DeferredUpdates, AreDroppedForWhatTheHostWrites) {
  ASSERT_TRUE(session->step("train").isOk());
  const int32_t nine = 9;
  std::memcpy(session->tensor("flush", "w")->data, &nine, sizeof nine);
  ASSERT_TRUE(session->upload().isOk());
  ASSERT_TRUE(session->step("eval").isOk());
  EXPECT_EQ(read("eval", "out"), 9);
  // Nor are they there after everything started over.
  ASSERT_TRUE(session->step("train").isOk());
  ASSERT_TRUE(session->restart({}).isOk());
  ASSERT_TRUE(session->step("eval").isOk());
  EXPECT_EQ(read("eval", "out"), 3);
}

TEST_F(DeferredUpdates, AreNoTensorsThatLast) {
  const std::vector<Tensor> tensors = session->persistent();
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors.front().binding->name(), "w");
}
