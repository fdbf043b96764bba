//===- SpillFileTest.cpp - the memory space that is a file -----------------===//

#include "runtime/devices/Spill/SpillFile.h"

#include "runtime/FileStaging.h"
#include "runtime/devices/Cpu/Lanes.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <numeric>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace lowtide;
using namespace lowtide::rt;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

/// Two halves of `pages` pages each, at a multiple of the file's alignment.
struct Staging {
  explicit Staging(size_t pages) : bytes(2 * pages * fileAlignment) {
    data = static_cast<uint8_t *>(std::aligned_alloc(fileAlignment, bytes));
  }
  ~Staging() { std::free(data); }
  std::span<uint8_t> span() const { return {data, bytes}; }
  size_t bytes;
  uint8_t *data;
};

std::vector<uint8_t> number(size_t bytes, uint8_t from) {
  std::vector<uint8_t> numbers(bytes);
  std::iota(numbers.begin(), numbers.end(), from);
  return numbers;
}

/// Folders on a disk, where copies go past the page cache, and in memory.
std::vector<std::string> folders() { return {testing::TempDir(), "/dev/shm"}; }

/// What this machine has.
std::vector<FileTraffic> ways() {
  std::vector<FileTraffic> found = {FileTraffic::Threads};
  const Staging staging(1);
  auto ring = SpillFile::create(testing::TempDir(), fileAlignment, staging.span(), FileTraffic::Ring);
  if (ring)
    found.push_back(FileTraffic::Ring);
  else
    EXPECT_THAT(ring.status().str(), testing::AnyOf(HasSubstr("the system has no io_uring for this process: "),
                                                    HasSubstr("this runtime was built without liburing")));
  return found;
}

struct SpillFileIn : testing::TestWithParam<std::tuple<std::string, size_t, FileTraffic>> {};

TEST_P(SpillFileIn, GivesBackWhatWasWritten) {
  const auto [folder, pages, way] = GetParam();
  const Staging staging(pages);
  const uint64_t bytes = 64 * fileAlignment;
  auto file = SpillFile::create(folder, bytes, staging.span(), way);
  ASSERT_TRUE(file) << file.status().str();
  EXPECT_EQ((*file)->bytes(), bytes);
  // Whatever the sizes, also beyond a half of the staging memory; neighbours stay as they are.
  uint64_t offset = 0;
  std::vector<std::pair<uint64_t, size_t>> written;
  for (size_t size : {1, 63, 4095, 4096, 4097, 20000, 40961}) {
    ASSERT_TRUE((*file)->write(offset, number(size, uint8_t(size)).data(), size).isOk());
    written.emplace_back(offset, size);
    offset += alignToFile(size);
  }
  for (auto [at, size] : written) {
    std::vector<uint8_t> back(size + 1, 7);
    ASSERT_TRUE((*file)->read(at, back.data(), size).isOk());
    EXPECT_EQ(back.back(), 7); // not a byte more
    back.pop_back();
    EXPECT_EQ(back, number(size, uint8_t(size)));
  }
  // A part that is written again leaves what follows it on its page.
  ASSERT_TRUE((*file)->write(offset, number(3 * fileAlignment, 1).data(), 3 * fileAlignment).isOk());
  ASSERT_TRUE((*file)->write(offset + fileAlignment, number(5, 200).data(), 5).isOk());
  std::vector<uint8_t> whole = number(3 * fileAlignment, 1), back(3 * fileAlignment);
  std::ranges::copy(number(5, 200), whole.begin() + fileAlignment);
  ASSERT_TRUE((*file)->read(offset, back.data(), back.size()).isOk());
  EXPECT_EQ(back, whole);
  // The same of what lies in the memory that is staged for it.
  std::ranges::copy(number(7, 50), (*file)->stagedForWriting().begin());
  ASSERT_TRUE((*file)->writeStaged(offset + fileAlignment, 7).isOk());
  std::ranges::copy(number(7, 50), whole.begin() + fileAlignment);
  ASSERT_TRUE((*file)->readStaged(offset + fileAlignment, fileAlignment).isOk());
  EXPECT_TRUE(std::equal(whole.begin() + fileAlignment, whole.begin() + 2 * fileAlignment,
                         (*file)->stagedForReading().begin()));
}

INSTANTIATE_TEST_SUITE_P(Ways, SpillFileIn,
                         testing::Combine(testing::ValuesIn(folders()), testing::Values<size_t>(1, 3, 4, 9),
                                          testing::ValuesIn(ways())));

TEST(SpillFile, SaysHowBytesGetThere) {
  const Staging staging(1);
  for (FileTraffic way : ways()) {
    auto file = SpillFile::create(testing::TempDir(), fileAlignment, staging.span(), way);
    ASSERT_TRUE(file) << file.status().str();
    EXPECT_THAT((*file)->describe(), testing::EndsWith(way == FileTraffic::Ring ? "by io_uring" : "by threads"));
  }
  EXPECT_EQ(*findFileTraffic("auto"), FileTraffic::Any);
  EXPECT_EQ(*findFileTraffic("threads"), FileTraffic::Threads);
  EXPECT_EQ(findFileTraffic("aio").status().code(), StatusCode::Usage);
}

TEST(SpillFile, HasNoNameInItsFolder) {
  const std::string folder = testing::TempDir() + "spill-names";
  fs::create_directories(folder);
  const Staging staging(1);
  auto file = SpillFile::create(folder, fileAlignment, staging.span());
  ASSERT_TRUE(file) << file.status().str();
  EXPECT_TRUE(fs::is_empty(folder)); // a run that dies leaves nothing
  EXPECT_THAT((*file)->describe(), HasSubstr("space file: 4096 bytes in " + folder));
}

TEST(SpillFile, ShowsTheHostWhatCopiesWrote) {
  for (const std::string &folder : folders()) {
    SCOPED_TRACE(folder);
    const Staging staging(2);
    auto file = SpillFile::create(folder, 16 * fileAlignment, staging.span());
    ASSERT_TRUE(file) << file.status().str();
    const uint64_t offset = 4 * fileAlignment, bytes = 5 * fileAlignment;
    auto view = (*file)->map(offset, bytes);
    ASSERT_TRUE(view) << view.status().str();
    auto bring = [&](uint64_t from, uint64_t count, HostAccess access) {
      const Status brought = (*file)->bring(*view + from, count, access);
      ASSERT_TRUE(brought.isOk()) << brought.str();
    };
    std::vector<uint8_t> back(bytes);
    for (uint8_t round = 1; round < 4; ++round) {
      // What the host writes is what a copy reads, and the other way.
      bring(0, bytes, round == 1 ? HostAccess::Overwrite : HostAccess::Change);
      std::memset(*view, round, bytes);
      ASSERT_TRUE(round % 2 ? (*file)->leaveAll().isOk() : (*file)->leave(*view, bytes).isOk());
      ASSERT_TRUE((*file)->read(offset, back.data(), bytes).isOk());
      EXPECT_EQ(back, std::vector<uint8_t>(bytes, round));
      ASSERT_TRUE((*file)->write(offset + fileAlignment, number(9000, round).data(), 9000).isOk());
      bring(fileAlignment, 9000, HostAccess::Read);
      EXPECT_EQ(std::vector<uint8_t>(*view + fileAlignment, *view + fileAlignment + 9000), number(9000, round));
      // All of it while a part is there.
      bring(0, bytes, HostAccess::Read);
      EXPECT_EQ((*view)[0], round);
      EXPECT_EQ(std::vector<uint8_t>(*view + fileAlignment, *view + fileAlignment + 9000), number(9000, round));
      // What is only to be read is not written.
      (*view)[1] = 77;
      ASSERT_TRUE((*file)->leaveAll().isOk());
      bring(0, 2, HostAccess::Read);
      EXPECT_EQ((*view)[1], round);
      ASSERT_TRUE((*file)->leaveAll().isOk());
    }
    // Neighbours on its pages stay as they are.
    bring(fileAlignment - 10, 4000, HostAccess::Overwrite);
    std::memset(*view + fileAlignment - 10, 99, 4000);
    ASSERT_TRUE((*file)->leave(*view + fileAlignment, 1).isOk());
    ASSERT_TRUE((*file)->read(offset, back.data(), bytes).isOk());
    EXPECT_EQ(back[fileAlignment - 11], 3);
    EXPECT_EQ(std::vector<uint8_t>(back.begin() + fileAlignment - 10, back.begin() + fileAlignment + 3990),
              std::vector<uint8_t>(4000, 99));
    const std::vector<uint8_t> before = number(9000, 3);
    EXPECT_TRUE(std::equal(before.begin() + 3990, before.end(), back.begin() + fileAlignment + 3990));
    ASSERT_TRUE((*file)->poison(offset, fileAlignment).isOk());
    bring(0, bytes, HostAccess::Read);
    EXPECT_EQ((*view)[0], 0xFF);
    EXPECT_EQ((*view)[4 * fileAlignment], 3);
  }
}

/// Cuts the only file of this process that has no name.
void cutNamelessFile() {
  for (const fs::directory_entry &entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    // Who started the process may have left it a device that is gone.
    if (fs::is_regular_file(entry, gone) && fs::read_symlink(entry, gone).string().ends_with(" (deleted)"))
      ASSERT_EQ(::truncate(entry.path().c_str(), 0), 0);
  }
}

TEST(SpillFile, SaysWhatTheHostCannotRead) {
  for (FileTraffic way : ways()) {
    const Staging staging(2);
    auto file = SpillFile::create(testing::TempDir(), 4 * fileAlignment, staging.span(), way);
    ASSERT_TRUE(file) << file.status().str();
    auto view = (*file)->map(0, 4 * fileAlignment);
    ASSERT_TRUE(view) << view.status().str();
    cutNamelessFile();
    const Status brought = (*file)->bring(*view + fileAlignment, fileAlignment, HostAccess::Change);
    EXPECT_EQ(brought.code(), StatusCode::Io);
    EXPECT_THAT(brought.str(),
                HasSubstr("reading 4096 bytes at 4096 of the file in which values wait failed: it ends"));
    EXPECT_TRUE((*file)->leaveAll().isOk()); // nothing of it is written
  }
}

TEST(SpillFile, SaysWhatIsWrong) {
  const Staging staging(1);
  auto refusal = [&](const std::string &folder, uint64_t bytes) {
    return SpillFile::create(folder, bytes, staging.span()).status();
  };
  Status missing = refusal("/nowhere/at/all", 4096);
  EXPECT_EQ(missing.code(), StatusCode::Io);
  EXPECT_EQ(missing.str(),
            "spill folder '/nowhere/at/all': takes no file: No such file or directory; --spill=FOLDER, or "
            "`spill` of lowtide_bind_options, names "
            "another one");
  Status large = refusal(testing::TempDir(), uint64_t(1) << 45);
  EXPECT_EQ(large.code(), StatusCode::OverBudget);
  EXPECT_THAT(
      large.str(),
      testing::AllOf(HasSubstr("has no room for the 35184372088832 bytes in which values wait"),
                     HasSubstr(" free; --spill=FOLDER, or `spill` of lowtide_bind_options, names another one")));
  // A limit on the size of files, as ulimit -f sets it.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 1 << 16;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  Status limited = refusal(testing::TempDir(), 1 << 20);
  auto file = SpillFile::create(testing::TempDir(), 1 << 16, staging.span());
  ASSERT_TRUE(file) << file.status().str();
  // What lies beyond it is an error of the copy, and so is what was never there.
  const std::vector<uint8_t> numbers(4096);
  Status written = (*file)->write(1 << 16, numbers.data(), numbers.size());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(limited.code(), StatusCode::OverBudget);
  EXPECT_THAT(limited.str(), HasSubstr("has no room for the 1048576 bytes in which values wait: File too large"));
  EXPECT_EQ(written.code(), StatusCode::Io);
  EXPECT_THAT(written.str(),
              HasSubstr("writing 4096 bytes at 65536 of the file in which values wait failed: File too"));
  std::vector<uint8_t> back(4096);
  EXPECT_THAT((*file)->read(1 << 20, back.data(), back.size()).str(), HasSubstr("failed: it ends there"));
}

TEST(Lanes, MeetAtEvents) {
  auto lanes = Lanes::create(2);
  ASSERT_TRUE(lanes) << lanes.status().str();
  Events events(4);
  for (uint32_t run = 1; run <= 200; ++run) {
    std::vector<int> order; // no lock: events alone keep the lanes apart
    auto work = [&](unsigned lane) {
      if (lane == 0) {
        events.await(0, run);
        order.push_back(1);
        events.record(1, run);
      } else {
        events.await(1, run);
        order.push_back(2);
        events.record(2, run);
      }
    };
    (*lanes)->start(2, work);
    order.push_back(0);
    events.record(0, run);
    events.await(2, run);
    order.push_back(3);
    (*lanes)->wait();
    ASSERT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_TRUE(events.isRecorded(1, run));
    EXPECT_FALSE(events.isRecorded(1, run + 1));
    EXPECT_FALSE(events.isRecorded(3, run));
  }
}

} // namespace
