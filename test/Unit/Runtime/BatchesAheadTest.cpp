//===- BatchesAheadTest.cpp - batches that are prepared while steps run ----===//

#include "runtime/data/BatchesAhead.h"
#include "Regression.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

/// The bytes that share `share` of the batch of a step is made of.
Status number(int64_t step, uint8_t *slot, Share share, uint64_t bytes) {
  for (uint64_t i = bytes * share.part / share.parts; i < bytes * (share.part + 1) / share.parts; ++i)
    slot[i] = static_cast<uint8_t>(step * 31 + static_cast<int64_t>(i));
  return Status::ok();
}

TEST(BatchesAhead, ComeInOrderWhateverTheNumberOfThreads) {
  constexpr uint64_t bytes = 1000;
  for (unsigned threads : {1u, 2u, 4u, 7u}) {
    std::atomic<int64_t> last = 0;
    auto fill = [&](int64_t step, uint8_t *slot, Share share) {
      last = std::max<int64_t>(last, step);
      return number(step, slot, share, bytes);
    };
    auto ahead = BatchesAhead::create(fill, {.slotBytes = bytes, .threads = threads, .first = 5, .end = 305});
    ASSERT_TRUE(ahead) << ahead.status().str();
    for (int64_t step = 5; step < 305; ++step) {
      ASSERT_TRUE((*ahead)->await());
      auto slot = (*ahead)->current();
      ASSERT_TRUE(slot);
      for (uint64_t i = 0; i < bytes; ++i)
        ASSERT_EQ((*slot)[i], static_cast<uint8_t>(step * 31 + static_cast<int64_t>(i))) << step << ", " << i;
      EXPECT_LT(last, step + 2) << "two slots hold two batches";
      (*ahead)->release();
    }
    EXPECT_EQ(last, 304) << "nothing is read after the last step";
    EXPECT_EQ((*ahead)->bytes(), 2 * bytes);
  }
}

TEST(BatchesAhead, FailAtTheStepThatLacksItsBatch) {
  for (unsigned threads : {1u, 3u}) {
    auto fill = [](int64_t step, uint8_t *, Share share) {
      return step == 4 && share.part == 0 ? badInput("no batch") : Status::ok();
    };
    auto ahead = BatchesAhead::create(fill, {.slotBytes = 8, .threads = threads});
    ASSERT_TRUE(ahead);
    for (int64_t step = 0; step < 4; ++step) {
      ASSERT_TRUE((*ahead)->await());
      ASSERT_TRUE((*ahead)->current()) << step;
      (*ahead)->release();
    }
    ASSERT_TRUE((*ahead)->await());
    EXPECT_EQ((*ahead)->current().status().message(), "no batch");
  }
}

TEST(BatchesAhead, ASourceThatHangsIsGivenUp) {
  std::atomic<bool> interrupted = false;
  auto fill = [&](int64_t step, uint8_t *, Share) {
    while (step == 1 && !interrupted)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status::ok();
  };
  auto ahead = BatchesAhead::create(fill, {.slotBytes = 8, .interrupt = [&] { interrupted = true; }});
  ASSERT_TRUE(ahead);
  ASSERT_TRUE((*ahead)->await());
  (*ahead)->release();
  int asked = 0;
  EXPECT_FALSE((*ahead)->await([&] { return ++asked > 2; }));
  EXPECT_FALSE((*ahead)->current());
  EXPECT_GT((*ahead)->secondsWaited(), 0.04) << "twice 50 ms, less the pace of the machine";
  ahead->reset(); // and the thread ends
  EXPECT_TRUE(interrupted);
}

// --- what a feeder writes into a slot ---

class Slots : public testing::Test {
protected:
  void SetUp() override {
    auto loaded = Session::load(writeRegression(testing::TempDir() + "ahead.tide", regressionPlan()));
    ASSERT_TRUE(loaded);
    session = std::move(*loaded);
    ASSERT_TRUE(session->bind({.threads = 1}).isOk());
  }
  Feeder feeder(const std::string &spec, std::optional<uint64_t> shuffle = {}) {
    auto dataset = Dataset::open(spec);
    EXPECT_TRUE(dataset) << dataset.status().str();
    std::vector<std::string> notes;
    auto made = Feeder::create(*dataset, *session, "train", shuffle, notes);
    EXPECT_TRUE(made) << made.status().str();
    return std::move(*made);
  }
  std::string batch() {
    std::string bytes;
    for (const Tensor &tensor : session->tensors("train", plan::Binding::BATCH))
      bytes.append(reinterpret_cast<const char *>(tensor.data), tensor.bytes());
    return bytes;
  }
  /// x counts from `first`, y is 1.
  std::string data(const std::string &name, int64_t rows) {
    std::vector<float> x(static_cast<size_t>(rows * width)), y(static_cast<size_t>(rows), 1);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(i);
    const std::string folder = testing::TempDir() + name, count = std::to_string(rows);
    writeText(folder + "-x.npy", npy("<f4", "(" + count + ", 8)", x.data(), x.size() * 4));
    writeText(folder + "-y.npy", npy("<f4", "(" + count + ", 1)", y.data(), y.size() * 4));
    return "x=" + folder + "-x.npy,y=" + folder + "-y.npy";
  }
  std::unique_ptr<Session> session;
};

TEST_F(Slots, HoldWhatTheBindingsWouldInAnyShares) {
  const std::string files = data("slots", 50);
  for (const std::string &spec : {files, std::string("synthetic:3")})
    for (std::optional<uint64_t> shuffle : {std::optional<uint64_t>(), std::optional<uint64_t>(7)}) {
      Feeder direct = feeder(spec, shuffle);
      std::vector<uint8_t> slot(direct.batchBytes());
      for (unsigned parts : {1u, 2u, 3u, 64u})
        for (int64_t step : {0, 1, 2}) {
          ASSERT_TRUE(direct.feedRows(step, 1, 16 * (step % 3)).isOk());
          const std::string expected = batch();
          std::fill(slot.begin(), slot.end(), uint8_t(0xab));
          for (unsigned part = 0; part < parts; ++part)
            ASSERT_TRUE(direct.feedRows(step, 1, 16 * (step % 3), slot.data(), {part, parts}).isOk());
          for (const Tensor &tensor : session->tensors("train", plan::Binding::BATCH))
            std::memset(tensor.data, 0, tensor.bytes());
          direct.deliver(slot.data());
          EXPECT_EQ(batch(), expected) << spec << ", " << parts << " shares, step " << step;
        }
    }
}

// --- programs ---

class Programs : public Slots {
protected:
  /// One batch as numpy.save would write it, with a mark in x.
  std::string batchText(float mark, const std::string &shape = "(16, 8)") {
    std::vector<float> x(16 * 8, mark), y(16, 1);
    return npy("<f4", shape, x.data(), x.size() * 4) + npy("<f4", "(16, 1)", y.data(), y.size() * 4);
  }
  std::string file(const std::string &name, const std::string &content) {
    writeText(testing::TempDir() + name, content);
    return testing::TempDir() + name;
  }
  float mark() {
    float value;
    std::memcpy(&value, session->tensor("train", "x")->data, sizeof value);
    return value;
  }
};

TEST_F(Programs, WriteOneBatchAfterTheOther) {
  const std::string path = file("batches", batchText(1) + batchText(2) + batchText(3) + batchText(4));
  Feeder all = feeder("pipe:cat " + path);
  EXPECT_EQ(all.rows(), 0) << "no end that is known";
  for (int64_t step : {0, 1, 3}) { // a step that is left out is read and dropped
    ASSERT_TRUE(all.feedRows(step, 0, 0).isOk());
    EXPECT_EQ(mark(), static_cast<float>(step + 1));
  }
  EXPECT_FALSE(all.feedRows(3, 0, 0).isOk()) << "it has gone by";
  Status status = all.feedRows(4, 0, 0);
  EXPECT_EQ(status.code(), StatusCode::BadInput);
  EXPECT_NE(status.str().find("batch 4: the program has ended with status 0; the run needs more batches"),
            std::string::npos)
      << status.str();
}

TEST_F(Programs, BeginWhereTheyAreTold) {
  const std::string path = file("seek", batchText(6));
  Feeder late = feeder("pipe:test {step} = 5 && cat " + path);
  ASSERT_TRUE(late.feedRows(5, 0, 0).isOk());
  EXPECT_EQ(mark(), 6);
}

TEST_F(Programs, SayWhatIsWrong) {
  auto message = [&](const std::string &command, int64_t step = 0) {
    return feeder("pipe:" + command).feedRows(step, 0, 0).str();
  };
  auto expect = [&](const std::string &text, const std::string &part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(message("exit 3"), "batch 0: the program has ended with status 3");
  expect(message("kill -9 $$"), "batch 0: the program was ended by signal 9");
  expect(message("sh -c 'kill -11 $$'; exit $?"),
         "batch 0: the program has ended with status 139, as a shell says of signal 11");
  expect(message("/no/such/program 2>/dev/null"), "the program has ended with status 127");
  expect(message("yes"), "batch 0: not a .npy array");
  expect(message("cat " + file("shape", batchText(1, "(8, 16)"))),
         "array 1: is float32[8, 16], the model reads 'x' float32[16, 8] here");
  expect(message("head -c 300 " + file("cut", batchText(1))), "array 1: the program has ended with status 0");
  std::vector<int32_t> integers(16 * 8, 7);
  std::vector<double> tooLarge(16 * 8, 1e300);
  expect(message("cat " + file("large", npy("<f8", "(16, 8)", tooLarge.data(), tooLarge.size() * 8))),
         "value 1e+300 at position 0 is no float32");
  std::vector<uint8_t> bytes(16, 1);
  Feeder converts = feeder("pipe:cat " + file("int", npy("<i4", "(16, 8)", integers.data(), integers.size() * 4) +
                                                         npy("|u1", "(16, 1)", bytes.data(), bytes.size())));
  EXPECT_TRUE(converts.feedRows(0, 0, 0).isOk());
  EXPECT_EQ(mark(), 7) << "integers are converted";
  EXPECT_NE(Dataset::open("pipe:  ").status().message().find("names no program"), std::string::npos);
}

TEST_F(Programs, AreEndedWithTheirReader) {
  const std::string marker = testing::TempDir() + "alive";
  std::remove(marker.c_str());
  {
    auto dataset = Dataset::open("pipe:trap 'echo ended > " + marker + "; exit' TERM; while true; do sleep 0.05; done");
    std::vector<std::string> notes;
    auto endless = Feeder::create(*dataset, *session, "train", {}, notes);
    ASSERT_TRUE(endless);
    std::thread reader([&] { EXPECT_FALSE(endless->feedRows(0, 0, 0).isOk()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    dataset->stream->interrupt();
    reader.join();
  }
  EXPECT_TRUE(std::ifstream(marker).good());
}

} // namespace
