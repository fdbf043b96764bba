//===- ArtifactTest.cpp - damage of every kind is told in words ------------===//

#include "runtime/Artifact.h"
#include "Regression.h"
#include "runtime/ArtifactWriter.h"
#include "runtime/Sha256.h"
#include "runtime/SpecialFile.h"
#include "runtime/checkpoint/OutputFile.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

std::string goodArtifact() {
  std::string path = writeRegression(testing::TempDir() + "good.tide", regressionPlan());
  return readFile(path);
}

Status load(const std::string &bytes) {
  auto artifact = Artifact::fromBytes({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  return artifact ? Status::ok() : artifact.status();
}

TEST(Sha256, MatchesTheStandard) {
  EXPECT_EQ(toHex(Sha256::of("", 0)), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(toHex(Sha256::of("abc", 3)), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  std::string million(1000000, 'a');
  Sha256 hash;
  for (size_t at = 0; at < million.size(); at += 977)
    hash.update(million.data() + at, std::min<size_t>(977, million.size() - at));
  EXPECT_EQ(toHex(hash.finish()), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(OutputFile, ADeviceOrPipeIsWrittenInPlace) {
  // Renamed over, /dev/null would be a file for everybody.
  EXPECT_TRUE(isSpecialFile("/dev/null"));
  const std::string folder = testing::TempDir() + "pipe/", path = folder + "pipe";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_FALSE(isSpecialFile(folder));
  EXPECT_FALSE(isSpecialFile(path));
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(replaceFile(path, "content").isOk());
  char read[8] = {};
  EXPECT_EQ(::read(reader, read, sizeof(read)), 7);
  EXPECT_STREQ(read, "content");
  // An artifact begins with what is known last: a pipe takes none, and stays.
  auto writer = ArtifactWriter::create(path);
  ASSERT_TRUE(writer);
  EXPECT_NE((*writer)->finish().str().find("cannot seek"), std::string::npos);
  writer->reset();
  ::close(reader);
  EXPECT_TRUE(isSpecialFile(path));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST(Artifact, RoundTrips) {
  std::string bytes = goodArtifact();
  auto artifact = Artifact::fromBytes({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  ASSERT_TRUE(artifact) << artifact.status().str();
  EXPECT_EQ((*artifact)->plan().SerializeAsString(), regressionPlan().SerializeAsString());
  EXPECT_EQ((*artifact)->params().size(), size_t(width * 4));
  EXPECT_EQ(bytes, goodArtifact()) << "the same calls give the same bytes";
}

TEST(Artifact, EveryFlippedBitIsFound) {
  std::string bytes = goodArtifact();
  std::mt19937 generator(1);
  // Every byte of header, table and plan, and a sample of the rest.
  for (size_t at = 0; at < bytes.size(); at += at < 8192 ? 7 : 1 + generator() % 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << generator() % 8));
    EXPECT_FALSE(load(damaged).isOk()) << "byte " << at;
  }
}

TEST(Artifact, EveryTruncationIsFound) {
  std::string bytes = goodArtifact();
  for (size_t size = 0; size < bytes.size(); size += size < 256 ? 1 : 211) {
    Status status = load(bytes.substr(0, size));
    EXPECT_EQ(status.code(), StatusCode::BadInput) << size;
  }
  EXPECT_FALSE(load(bytes + std::string(1, '\0')).isOk());
}

TEST(Artifact, SaysWhatIsWrong) {
  std::string bytes = goodArtifact();
  auto expect = [](const std::string &damaged, StatusCode code, const char *words) {
    Status status = load(damaged);
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(status.str().find(words), std::string::npos) << status.str();
  };
  expect("PK\x03\x04 and so on, a zip file as long as a header of an artifact would be", StatusCode::BadInput,
         "LOWTIDE");
  std::string future = bytes;
  future[8] = 7;
  expect(future, StatusCode::Unsupported, "format 7");
  std::string feature = bytes;
  feature[16] = 1;
  expect(feature, StatusCode::Unsupported, "features");
  expect(bytes.substr(0, 5000), StatusCode::BadInput, "truncated");
  std::string table = bytes;
  table[64 + 33] ^= 1;
  expect(table, StatusCode::BadInput, "section table");
  std::string plan = bytes;
  plan[4096] ^= 1;
  expect(plan, StatusCode::BadInput, "section 'plan'");
}

TEST(Artifact, RefusesAPlanThatIsNotProved) {
  plan::Plan plan = regressionPlan();
  plan.mutable_entries(0)->mutable_instructions(1)->mutable_launch()->mutable_reads(0)->set_value(99);
  std::string path = writeRegression(testing::TempDir() + "unproved.tide", plan);
  auto artifact = Artifact::open(path);
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.status().code(), StatusCode::VerifyFailed);
  EXPECT_NE(artifact.status().str().find("entry 'train'"), std::string::npos) << artifact.status().str();
}

TEST(Artifact, RefusesDeepAndStrangeProtobuf) {
  EXPECT_FALSE(parsePlan("\xff\xff\xff\xff\xff\xff\xff"));
  plan::Instruction nested;
  for (int depth = 0; depth < 40; ++depth) {
    plan::Instruction outer;
    outer.mutable_repeat()->set_count(1);
    *outer.mutable_repeat()->add_body() = nested;
    nested = outer;
  }
  plan::Plan plan;
  *plan.add_entries()->add_instructions() = nested;
  EXPECT_FALSE(parsePlan(plan.SerializeAsString()));
}

TEST(Artifact, RefusesWhatIsNoRegularFile) {
  auto directory = Artifact::open(testing::TempDir());
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.status().str().find("regular"), std::string::npos);
  std::string pipe = testing::TempDir() + "pipe.tide";
  ::unlink(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(Artifact::open(pipe));
  ::unlink(pipe.c_str());
}

TEST(ArtifactWriter, LeavesNothingBehindWhenItIsNotFinished) {
  std::string path = testing::TempDir() + "unfinished.tide";
  ::unlink(path.c_str());
  {
    auto writer = ArtifactWriter::create(path);
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->add("plan", "x").isOk());
    EXPECT_FALSE((*writer)->add("plan", "x").isOk());
    EXPECT_FALSE((*writer)->append("x", 1).isOk());
  }
  EXPECT_FALSE(MappedFile::open(path));
  EXPECT_FALSE(ArtifactWriter::create("/no/such/directory/step.tide"));
}

} // namespace
