//===- RunFolderTest.cpp - who saves where, and what stays -----------------===//

#include "runtime/checkpoint/RunFolder.h"
#include "SavedRuns.h"
#include "runtime/MappedFile.h"
#include "runtime/checkpoint/Checkpoint.h"

#include <set>
#include <unistd.h>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;
namespace fs = std::filesystem;

namespace {

TEST(RunFolder, KeepsWhatWasWrittenLast) {
  std::string directory = fresh("keep");
  std::unique_ptr<Session> session = bound();
  std::vector<std::string> notes;
  auto folder = RunFolder::open(directory, notes);
  ASSERT_TRUE(folder) << folder.status().str();
  ASSERT_TRUE((*folder)->claim(at(0, "run"), false).isOk());
  for (int64_t i : {1, 2, 3, 4, 4}) {
    auto saved = (*folder)->save(*session, at(i, "run"), 2);
    ASSERT_TRUE(saved) << saved.status().str();
  }
  EXPECT_FALSE(fs::exists(directory + "/step-00000002"));
  EXPECT_TRUE(fs::exists(directory + "/step-00000003"));
  // Written last, although its step is the smallest.
  ASSERT_TRUE((*folder)->save(*session, at(1, "run"), 2));
  EXPECT_TRUE(fs::exists(directory + "/step-00000001"));
  EXPECT_FALSE(fs::exists(directory + "/step-00000003"));
  EXPECT_EQ(readFile(directory + "/latest"), "step-00000001\n");
  // What `best` names stays.
  ASSERT_TRUE((*folder)->point(bestPointer, 4).isOk());
  for (int64_t i : {5, 6, 7})
    ASSERT_TRUE((*folder)->save(*session, at(i, "run"), 2));
  EXPECT_TRUE(fs::exists(directory + "/step-00000004"));
  folder->reset();
  int entries = 0;
  for (const auto &entry : fs::directory_iterator(directory))
    entries += !entry.path().empty();
  EXPECT_EQ(entries, 5) << "the best, two others, 'latest' and 'best', nothing temporary";
  EXPECT_FALSE(saveCheckpoint(*session, at(1), "/proc/none", 2));
  EXPECT_FALSE(loadCheckpoint(*session, fresh("empty"), false));
}

TEST(RunFolder, BelongsToOneRun) {
  std::string directory = fresh("owner");
  std::unique_ptr<Session> session = bound();
  std::vector<std::string> notes;
  {
    auto folder = RunFolder::open(directory, notes);
    ASSERT_TRUE(folder);
    // While a process writes there, no other does; whose it is says the lock.
    auto second = RunFolder::open(directory, notes);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.status().code(), StatusCode::Usage);
    EXPECT_NE(second.status().str().find("process " + std::to_string(::getpid()) + " on "), std::string::npos)
        << second.status().str();
    ASSERT_TRUE((*folder)->save(*session, at(40, "one"), 0));
    ASSERT_TRUE((*folder)->save(*session, at(50, "one"), 0));
  }
  EXPECT_FALSE(fs::exists(directory + "/.lock"));
  auto before = contents(directory);
  auto folder = RunFolder::open(directory, notes);
  ASSERT_TRUE(folder);
  Status refused = (*folder)->claim(at(0, "two"), false);
  EXPECT_EQ(refused.code(), StatusCode::Usage);
  for (const char *word : {"run one", "step-00000050", "--resume=", "--overwrite", "another folder"})
    EXPECT_NE(refused.str().find(word), std::string::npos) << refused.str();
  folder->reset();
  EXPECT_EQ(contents(directory), before);
  // Replaced, but not before there is something to replace it.
  folder = RunFolder::open(directory, notes);
  ASSERT_TRUE((*folder)->claim(at(0, "two"), true).isOk());
  EXPECT_TRUE(fs::exists(directory + "/step-00000040"));
  ASSERT_TRUE((*folder)->save(*session, at(40, "two"), 0));
  EXPECT_EQ(readFile(directory + "/latest"), "step-00000040\n");
  folder->reset();
  std::set<std::string> names;
  for (const auto &entry : fs::directory_iterator(directory))
    names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"latest", "step-00000040"}));
  EXPECT_EQ(loadCheckpoint(*session, directory, false)->state.run, "two");
}

TEST(RunFolder, IsMadeAnewWhereItWasRenamed) {
  const std::string directory = fresh("renamed"), other = fresh("renamed-other");
  fs::remove_all(other);
  std::unique_ptr<Session> session = bound();
  std::vector<std::string> notes;
  auto folder = RunFolder::open(directory, notes);
  ASSERT_TRUE(folder);
  ASSERT_TRUE((*folder)->save(*session, at(1, "one"), 0));
  EXPECT_EQ((*folder)->takeNote(), "");
  fs::rename(directory, other);
  const auto before = contents(other);
  ASSERT_TRUE((*folder)->save(*session, at(2, "one"), 0));
  EXPECT_EQ((*folder)->takeNote(), directory +
                                       ": was renamed or removed while the run went on: what it saves goes into "
                                       "a new folder of that name");
  EXPECT_EQ(readFile(directory + "/latest"), "step-00000002\n");
  EXPECT_EQ(contents(other), before);
  // The new one has a lock of its own, which goes with the run.
  EXPECT_EQ(RunFolder::open(directory, notes).status().code(), StatusCode::Usage);
  // Another run has the name by now: nothing is mixed, and its lock stays.
  fs::remove_all(directory);
  auto second = RunFolder::open(directory, notes);
  ASSERT_TRUE(second);
  EXPECT_EQ((*folder)->save(*session, at(3, "one"), 0).status().code(), StatusCode::Usage);
  folder->reset();
  EXPECT_TRUE(fs::exists(directory + "/.lock"));
  ASSERT_TRUE((*second)->save(*session, at(1, "two"), 0));
  second->reset();
  EXPECT_FALSE(fs::exists(directory + "/.lock"));
}

TEST(RunFolder, LosesNothingToTheSameStep) {
  std::string directory = fresh("replace");
  std::unique_ptr<Session> session = bound();
  ASSERT_TRUE(saveCheckpoint(*session, at(3, "run"), directory));
  auto first = contents(directory + "/step-00000003");
  // The same bits of the same run are not written again.
  ASSERT_TRUE(saveCheckpoint(*session, at(3, "run"), directory));
  EXPECT_EQ(contents(directory + "/step-00000003"), first);
  // Others take the name; what had it is still there.
  auto w = session->tensor("train", "w");
  reinterpret_cast<float *>(w->data)[0] += 1;
  ASSERT_TRUE(saveCheckpoint(*session, at(3, "run"), directory));
  EXPECT_NE(contents(directory + "/step-00000003"), first);
  EXPECT_EQ(contents(directory + "/step-00000003.replaced-1"), first);
  // A damaged one is set aside.
  fs::remove(directory + "/step-00000003/params.safetensors");
  ASSERT_TRUE(saveCheckpoint(*session, at(3, "run"), directory));
  EXPECT_TRUE(fs::exists(directory + "/step-00000003.corrupt"));
  EXPECT_TRUE(loadCheckpoint(*session, directory, true));
}

TEST(RunFolder, RemovesWhatKilledWritersLeft) {
  std::string directory = fresh("stale");
  std::unique_ptr<Session> session = bound();
  ASSERT_TRUE(saveCheckpoint(*session, at(1, "run"), directory));
  fs::create_directory(directory + "/.tmp-7-4711");
  writeText(directory + "/.tmp-7-4711/params.safetensors", "half");
  writeText(directory + "/.latest-4711", "step-");
  writeText(directory + "/.lock", "process 4711 on nowhere\n"); // the system has let go of it
  writeText(directory + "/notes.txt", "mine");
  auto before = contents(directory);
  ASSERT_TRUE(loadCheckpoint(*session, directory, false));
  EXPECT_EQ(contents(directory), before);
  ASSERT_TRUE(saveCheckpoint(*session, at(2, "run"), directory));
  std::set<std::string> names;
  for (const auto &entry : fs::directory_iterator(directory))
    names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"latest", "notes.txt", "step-00000001", "step-00000002"}));
}

TEST(RunFolder, StartsFromWhatLatestNames) {
  std::string directory = fresh("latest");
  std::unique_ptr<Session> session = bound();
  for (int64_t step : {9, 2, 5})
    ASSERT_TRUE(saveCheckpoint(*session, at(step, "run"), directory));
  EXPECT_EQ(loadCheckpoint(*session, directory, false)->state.step, 5);
  writeText(directory + "/latest", "step-00000009\n");
  EXPECT_EQ(loadCheckpoint(*session, directory, false)->state.step, 9);
  // It may name what is not there: then the last written one.
  for (const char *text : {"step-00000077\n", "../../etc\n", "", "step-00000009.corrupt"}) {
    writeText(directory + "/latest", text);
    EXPECT_EQ(loadCheckpoint(*session, directory, false)->state.step, 5) << text;
  }
  // A clock that was set back changes no order.
  const std::string path = directory + "/step-00000005";
  std::string text = readFile(path + "/state.json");
  const size_t value = text.find("\"written_ns\": ") + 14;
  text.replace(value, text.find(',', value) - value, "8000000000000000000");
  writeText(path + "/state.json", text);
  ASSERT_TRUE(writeManifest(path).isOk());
  ASSERT_TRUE(saveCheckpoint(*session, at(6, "run"), directory));
  fs::remove(directory + "/latest");
  EXPECT_EQ(loadCheckpoint(*session, directory, false)->state.step, 6);
}

TEST(MappedFile, ReadsZerosWhereAFileHasShrunk) {
  MappedFile::surviveLostBytes();
  std::string path = fresh("shrinks");
  writeText(path, std::string(20000, 'x'));
  {
    auto file = MappedFile::open(path);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->bytes()[19999], 'x');
    fs::resize_file(path, 5000);
    EXPECT_EQ(file->bytes()[4999], 'x');
    EXPECT_TRUE(file->isWhole());
    EXPECT_EQ(file->bytes()[19999], 0);
    EXPECT_EQ(file->bytes()[9000], 0);
    EXPECT_FALSE(file->isWhole());
    EXPECT_EQ(MappedFile::firstNotWhole(), path);
  }
  EXPECT_EQ(MappedFile::firstNotWhole(), "");
  auto again = MappedFile::open(path);
  EXPECT_TRUE(again->isWhole());
}

} // namespace
