// Every call of the C interface in every state of a session, with arguments that no one should give it.
#include "Regression.h"
#include "lowtide-rt/lowtide.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <limits>
#include <malloc.h>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace fs = std::filesystem;

namespace {

std::string artifactOf(const char *name, const plan::Plan &plan = regressionPlan()) {
  return writeRegression(testing::TempDir() + name, plan);
}

/// The regression without weights: binding it asks for random ones.
std::string artifactWithoutWeights() {
  plan::Plan plan = regressionPlan();
  for (plan::Entry &entry : *plan.mutable_entries())
    for (plan::Binding &binding : *entry.mutable_bindings())
      binding.set_from_image(false);
  return artifactOf("c-no-weights.tide", plan);
}

/// Takes a status apart: success, or a documented code with words.
lowtide_code take(lowtide_status *status, const std::string &call) {
  const lowtide_code code = lowtide_status_code(status);
  if (status) {
    EXPECT_GE(code, LOWTIDE_USAGE) << call;
    EXPECT_LE(code, LOWTIDE_LOSS_MISMATCH) << call << ": " << lowtide_status_message(status);
    EXPECT_STRNE(lowtide_status_message(status), "") << call;
    EXPECT_NE(lowtide_status_where(status), nullptr) << call;
  }
  lowtide_status_free(status);
  return code;
}

/// Calls everything but load, bind and free with all kinds of arguments; `bound`: whether calls may succeed at all.
void callEverything(lowtide_session *session, bool bound) {
  const std::string longName(1 << 20, 'a'), file = testing::TempDir() + "a-file";
  writeText(file, "no folder");
  const char *names[] = {nullptr, "", "absent", "train", "eval", "train\n", "\xff\xfe\x80", longName.c_str()};
  const int64_t numbers[] = {0, 1, -1, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  const char *folders[] = {nullptr, "", "/dev/null", "/proc/none", file.c_str(), longName.c_str(), "/dev/null/\xff"};
  auto expectOnly = [&](lowtide_code code, bool mayBeGood, const char *call) {
    if (!mayBeGood)
      EXPECT_NE(code, LOWTIDE_OK) << call;
  };
  lowtide_tensor tensor{};
  (void)lowtide_session_planned_bytes(session), (void)lowtide_session_allocated_bytes(session);
  for (size_t index : {size_t(0), size_t(2), size_t(3), SIZE_MAX})
    EXPECT_EQ(lowtide_session_entry_name(session, index) != nullptr, index < lowtide_session_entry_count(session));
  for (const char *entry : names) {
    const bool isEntry = session && entry && (!std::strcmp(entry, "train") || !std::strcmp(entry, "eval"));
    EXPECT_EQ(lowtide_session_tensor_count(session, entry) != 0, isEntry);
    for (size_t index : {size_t(0), size_t(5), size_t(6), size_t(1) << 32, SIZE_MAX})
      expectOnly(take(lowtide_session_tensor_at(session, entry, index, &tensor), "tensor_at"), bound && isEntry,
                 "tensor_at");
    expectOnly(take(lowtide_session_tensor_at(session, entry, 0, nullptr), "tensor_at"), false, "tensor_at");
    for (const char *name : names)
      expectOnly(take(lowtide_session_tensor(session, entry, name, &tensor), "tensor"), false, "tensor");
    expectOnly(take(lowtide_session_tensor(session, entry, "w", nullptr), "tensor"), false, "tensor");
    for (int64_t number : numbers)
      for (double rate : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e-300})
        expectOnly(take(lowtide_session_write_scalars(session, entry, rate, number, number, number), "write_scalars"),
                   bound && isEntry, "write_scalars");
    for (const char *name : {(const char *)nullptr, "", "lr", "step", "seed", "row", "LR", "lr ", "momentum", "w", "x",
                             "\xff\xfe", longName.c_str()}) {
      const std::string called = name ? name : "";
      const bool isReal = called == "lr", isInteger = called == "step" || called == "seed" || called == "row";
      for (double value : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e-300})
        EXPECT_EQ(take(lowtide_session_write_real(session, entry, name, value), "write_real"),
                  bound && isEntry && isReal ? LOWTIDE_OK : LOWTIDE_USAGE)
            << called;
      for (int64_t value : numbers)
        EXPECT_EQ(take(lowtide_session_write_integer(session, entry, name, value), "write_integer"),
                  bound && isEntry && isInteger ? LOWTIDE_OK : LOWTIDE_USAGE)
            << called;
    }
    if (bound && isEntry)
      EXPECT_EQ(take(lowtide_session_write_scalars(session, entry, 0.01, 0, 0, 0), "write_scalars"), LOWTIDE_OK);
    expectOnly(take(lowtide_session_step(session, entry), "step"), bound && isEntry, "step");
    expectOnly(take(lowtide_session_download(session, entry), "download"), session && (isEntry || !entry || !*entry),
               "download");
  }
  expectOnly(take(lowtide_session_upload(session), "upload"), session != nullptr, "upload");
  EXPECT_EQ(lowtide_session_data_seconds(session), 0);
  auto noBatch = [](void *, int64_t, const lowtide_tensor *, size_t) { return 1; };
  for (const char *entry : names)
    for (int64_t first : numbers) {
      const bool isGood = bound && first >= 0 && entry && (!std::strcmp(entry, "train") || !std::strcmp(entry, "eval"));
      expectOnly(take(lowtide_session_feed(session, entry, first, noBatch, nullptr), "feed"), isGood, "feed");
      expectOnly(take(lowtide_session_feed(session, entry, first, nullptr, nullptr), "feed"), session != nullptr,
                 "feed");
    }
  for (int64_t number : numbers) {
    (void)lowtide_session_learning_rate(session, number);
    for (const char *folder : folders) {
      expectOnly(take(lowtide_session_save(session, folder, number, number), "save"), false, folder ? folder : "save");
      int64_t step = 0, seed = 0;
      expectOnly(take(lowtide_session_resume(session, folder, &step, &seed), "resume"), false, "resume");
      expectOnly(take(lowtide_session_resume(session, folder, nullptr, &seed), "resume"), false, "resume");
      expectOnly(take(lowtide_session_resume(session, folder, &step, nullptr), "resume"), false, "resume");
    }
  }
}

lowtide_session *load(const std::string &path) {
  lowtide_session *session = nullptr;
  EXPECT_EQ(take(lowtide_session_load(path.c_str(), &session), "load"), LOWTIDE_OK);
  return session;
}

/// Counts the batches that it was asked for; from the fourth on there are none.
struct Source {
  int64_t asked = 0;
  static int fill(void *context, int64_t step, const lowtide_tensor *arrays, size_t count) {
    Source &self = *static_cast<Source *>(context);
    EXPECT_EQ(step, 10 + self.asked++);
    EXPECT_EQ(count, 2u);
    for (size_t i = 0; i < count; ++i)
      for (uint64_t at = 0; at < arrays[i].bytes / 4; ++at)
        static_cast<float *>(arrays[i].data)[at] = static_cast<float>(step + static_cast<int64_t>(i));
    return step < 13 ? 0 : 42;
  }
};

TEST(CInterface, StepsTakeBatchesOfACallersFunction) {
  lowtide_session *session = load(artifactOf("c-feed.tide"));
  ASSERT_EQ(take(lowtide_session_bind(session, nullptr), "bind"), LOWTIDE_OK);
  lowtide_tensor x{}, y{};
  ASSERT_EQ(take(lowtide_session_tensor(session, "train", "x", &x), "tensor"), LOWTIDE_OK);
  ASSERT_EQ(take(lowtide_session_tensor(session, "train", "y", &y), "tensor"), LOWTIDE_OK);
  Source source;
  ASSERT_EQ(take(lowtide_session_feed(session, "train", 10, Source::fill, &source), "feed"), LOWTIDE_OK);
  for (int64_t step = 10; step < 13; ++step) {
    ASSERT_EQ(take(lowtide_session_write_scalars(session, "train", 0.01, step, 0, 0), "write_scalars"), LOWTIDE_OK);
    ASSERT_EQ(take(lowtide_session_step(session, "train"), "step"), LOWTIDE_OK);
    EXPECT_EQ(static_cast<const float *>(x.data)[x.bytes / 4 - 1], static_cast<float>(step));
    EXPECT_EQ(*static_cast<const float *>(y.data), static_cast<float>(step + 1));
  }
  lowtide_status *status = lowtide_session_step(session, "train");
  EXPECT_EQ(lowtide_status_code(status), LOWTIDE_BAD_INPUT);
  EXPECT_STREQ(lowtide_status_message(status), "the caller's function has no batch for step 13 (it returned 42)");
  lowtide_status_free(status);
  EXPECT_GE(lowtide_session_data_seconds(session), 0);
  ASSERT_EQ(take(lowtide_session_feed(session, "train", 0, nullptr, nullptr), "feed"), LOWTIDE_OK);
  EXPECT_EQ(take(lowtide_session_step(session, "train"), "step"), LOWTIDE_OK) << "on what the caller wrote, as before";
  lowtide_session_free(session);
}

TEST(CInterface, ScalarsAreWrittenByName) {
  lowtide_session *session = load(artifactOf("c-scalars.tide"));
  auto expectRefusal = [&](lowtide_status *status, const char *message) {
    EXPECT_EQ(lowtide_status_code(status), LOWTIDE_USAGE);
    EXPECT_STREQ(lowtide_status_message(status), message);
    lowtide_status_free(status);
  };
  expectRefusal(lowtide_session_write_real(session, "train", "lr", 0.5), "the session is not bound");
  ASSERT_EQ(take(lowtide_session_bind(session, nullptr), "bind"), LOWTIDE_OK);
  lowtide_tensor rate{};
  ASSERT_EQ(take(lowtide_session_tensor(session, "train", "lr", &rate), "tensor"), LOWTIDE_OK);
  ASSERT_EQ(rate.kind, LOWTIDE_SCALAR);
  ASSERT_EQ(rate.dtype, LOWTIDE_F32);
  auto read = [&] { return *static_cast<const float *>(rate.data); };
  EXPECT_EQ(take(lowtide_session_write_real(session, "train", "lr", 0.25), "write_real"), LOWTIDE_OK);
  EXPECT_EQ(read(), 0.25f);
  // What the entry does not have is written nowhere, and what it has keeps its value.
  EXPECT_EQ(take(lowtide_session_write_integer(session, "train", "step", 7), "write_integer"), LOWTIDE_OK);
  EXPECT_EQ(take(lowtide_session_write_real(session, "eval", "lr", 3), "write_real"), LOWTIDE_OK);
  EXPECT_EQ(read(), 0.25f);
  expectRefusal(lowtide_session_write_integer(session, "train", "lr", 1),
                "step scalar 'lr' is a real number: write it as one");
  expectRefusal(lowtide_session_write_real(session, "train", "row", 1),
                "step scalar 'row' is an integer: write it as one");
  expectRefusal(lowtide_session_write_real(session, "train", "momentum", 1),
                "step scalar 'momentum' is unknown to this runtime; it knows lr, step, seed, row");
  expectRefusal(lowtide_session_write_integer(session, "absent", "step", 1), "no entry 'absent'");
  expectRefusal(lowtide_session_write_integer(session, "train", nullptr, 1), "session, entry or name is NULL");
  EXPECT_EQ(read(), 0.25f);
  // One call for all of them does the same.
  EXPECT_EQ(take(lowtide_session_write_scalars(session, "train", 0.75, 7, 0, 0), "write_scalars"), LOWTIDE_OK);
  EXPECT_EQ(read(), 0.75f);
  lowtide_session_free(session);
}

TEST(CInterfaceStates, NoSession) {
  callEverything(nullptr, false);
  EXPECT_EQ(take(lowtide_session_bind(nullptr, nullptr), "bind"), LOWTIDE_USAGE);
  lowtide_session_free(nullptr);
  lowtide_status_free(nullptr);
  EXPECT_STREQ(lowtide_status_message(nullptr), "");
  EXPECT_STREQ(lowtide_status_where(nullptr), "");
}

TEST(CInterface, AGradientIsAKindOfItsOwn) {
  lowtide_session *session = load(artifactOf("c-gradient.tide"));
  ASSERT_EQ(take(lowtide_session_bind(session, nullptr), "bind"), LOWTIDE_OK);
  lowtide_tensor tensor{};
  ASSERT_EQ(take(lowtide_session_tensor(session, "gradient", "grad/w", &tensor), "tensor"), LOWTIDE_OK);
  EXPECT_EQ(tensor.kind, LOWTIDE_GRADIENT);
  EXPECT_STREQ(tensor.name, "grad/w");
  lowtide_session_free(session);
}

TEST(CInterfaceStates, LoadsNothingThatIsNoArtifact) {
  const std::string longName(1 << 20, 'a'), file = testing::TempDir() + "a-file";
  writeText(file, "no artifact");
  lowtide_session *session = nullptr;
  for (const char *path : {(const char *)nullptr, "", "/", "/dev/null", "/dev/zero", "/proc/self/mem", "\xff",
                           file.c_str(), longName.c_str()})
    EXPECT_NE(take(lowtide_session_load(path, &session), path ? path : "NULL"), LOWTIDE_OK);
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(take(lowtide_session_load(artifactOf("c.tide").c_str(), nullptr), "load"), LOWTIDE_USAGE);
}

TEST(CInterfaceStates, LoadedAndNotBound) {
  lowtide_session *session = load(artifactOf("c.tide"));
  callEverything(session, false);
  EXPECT_EQ(lowtide_session_allocated_bytes(session), 0u);
  lowtide_session_free(session);
}

TEST(CInterfaceStates, AfterABindThatFailed) {
  lowtide_session *session = load(artifactWithoutWeights());
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(take(lowtide_session_bind(session, nullptr), "bind"), LOWTIDE_BAD_INPUT);
  EXPECT_EQ(lowtide_session_allocated_bytes(session), 0u) << "what it took is given back";
  callEverything(session, false);
  // With what was missing it goes on.
  lowtide_bind_options options = {};
  options.random_init = 1;
  EXPECT_EQ(take(lowtide_session_bind(session, &options), "bind"), LOWTIDE_OK);
  EXPECT_EQ(lowtide_session_allocated_bytes(session), lowtide_session_planned_bytes(session));
  callEverything(session, true);
  lowtide_session_free(session);
}

TEST(CInterfaceStates, Bound) {
  lowtide_session *session = load(artifactOf("c.tide"));
  lowtide_bind_options options = {UINT32_MAX, -1, 0, UINT64_MAX, UINT32_MAX, "/proc/none"};
  ASSERT_EQ(take(lowtide_session_bind(session, &options), "bind"), LOWTIDE_OK);
  EXPECT_EQ(take(lowtide_session_bind(session, &options), "bind"), LOWTIDE_USAGE);
  callEverything(session, true);
  const std::string folder = testing::TempDir() + "c-states";
  fs::remove_all(folder);
  int64_t step = 0, seed = 0;
  EXPECT_EQ(take(lowtide_session_save(session, folder.c_str(), 3, -7), "save"), LOWTIDE_OK);
  EXPECT_EQ(take(lowtide_session_resume(session, folder.c_str(), &step, &seed), "resume"), LOWTIDE_OK);
  EXPECT_EQ(step, 3);
  EXPECT_EQ(seed, -7);
  callEverything(session, true);
  lowtide_session_free(session);
}

TEST(CInterfaceStates, NamesTheFolderOfValuesThatWait) {
  const std::string path = testing::TempDir() + "c-spill.tide", folder = testing::TempDir() + "c-spill";
  fs::create_directories(folder);
  auto writer = ArtifactWriter::create(path);
  ASSERT_TRUE((*writer)->add("plan", evictionPlan(plan::Arena::FILE).SerializeAsString()).isOk());
  ASSERT_TRUE((*writer)->add("params", "").isOk());
  ASSERT_TRUE((*writer)->finish().isOk());
  lowtide_session *session = load(path);
  lowtide_bind_options options = {};
  const std::string absent = folder + "/absent";
  options.spill = absent.c_str();
  lowtide_status *status = lowtide_session_bind(session, &options);
  EXPECT_EQ(std::string(lowtide_status_where(status)), "spill folder '" + absent + "'");
  EXPECT_EQ(take(status, "bind"), LOWTIDE_IO);
  EXPECT_EQ(lowtide_session_allocated_bytes(session), 0u);
  for (const char *given : {folder.c_str(), "", static_cast<const char *>(nullptr)}) {
    lowtide_session *next = load(path);
    options.spill = given;
    EXPECT_EQ(take(lowtide_session_bind(next, &options), "bind"), LOWTIDE_OK);
    EXPECT_EQ(take(lowtide_session_step(next, "run"), "step"), LOWTIDE_OK);
    lowtide_tensor out{};
    EXPECT_EQ(take(lowtide_session_tensor(next, "run", "out", &out), "tensor"), LOWTIDE_OK);
    EXPECT_EQ(*static_cast<const int32_t *>(out.data), 1);
    lowtide_session_free(next);
  }
  EXPECT_TRUE(fs::is_empty(folder)) << "the file has no name";
  lowtide_session_free(session);
}

size_t count(const char *folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(CInterfaceStates, AThousandCyclesStayFlat) {
#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
  const bool counts = false; // freed memory is kept for a while; leaks are found at the end
#else
  const bool counts = true;
#endif
  const std::string path = artifactOf("c.tide"), folder = testing::TempDir() + "c-cycles";
  fs::remove_all(folder);
  size_t files = 0, bytes = 0;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    lowtide_session *session = load(path);
    lowtide_bind_options options = {};
    options.threads = 2;
    ASSERT_EQ(take(lowtide_session_bind(session, &options), "bind"), LOWTIDE_OK);
    ASSERT_EQ(take(lowtide_session_write_scalars(session, "train", 0.01, cycle, 0, 0), "scalars"), LOWTIDE_OK);
    ASSERT_EQ(take(lowtide_session_step(session, "train"), "step"), LOWTIDE_OK);
    EXPECT_NE(take(lowtide_session_step(session, "absent"), "step"), LOWTIDE_OK);
    if (cycle % 100 == 0) {
      int64_t step = 0, seed = 0;
      ASSERT_EQ(take(lowtide_session_save(session, folder.c_str(), cycle, 0), "save"), LOWTIDE_OK);
      ASSERT_EQ(take(lowtide_session_resume(session, folder.c_str(), &step, &seed), "resume"), LOWTIDE_OK);
    }
    lowtide_session_free(session);
    if (cycle == 199)
      files = count("/proc/self/fd"), bytes = mallinfo2().uordblks;
  }
  EXPECT_EQ(count("/proc/self/fd"), files);
  EXPECT_EQ(count("/proc/self/task"), 1u);
  if (counts)
    EXPECT_LT(mallinfo2().uordblks, bytes + 65536);
}

} // namespace
