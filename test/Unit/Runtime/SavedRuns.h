//===- SavedRuns.h - folders of checkpoints for the runtime's tests --------===//
#ifndef LOWTIDE_TEST_UNIT_RUNTIME_SAVEDRUNS_H
#define LOWTIDE_TEST_UNIT_RUNTIME_SAVEDRUNS_H

#include "Regression.h"
#include "runtime/checkpoint/RunFolder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

namespace lowtide::rt::test {

inline std::string fresh(const char *name) {
  std::string path = testing::TempDir() + name;
  std::filesystem::remove_all(path);
  return path;
}
inline std::string artifact() { return writeRegression(testing::TempDir() + "checkpoint.tide", regressionPlan()); }

inline std::unique_ptr<Session> bound() {
  auto loaded = Session::load(artifact());
  EXPECT_TRUE((*loaded)->bind({.threads = 1}).isOk());
  return std::move(*loaded);
}
inline RunState at(int64_t step, const char *run = "") {
  RunState state;
  state.step = step, state.run = run;
  return state;
}
/// Names and contents of all files below a folder.
inline std::map<std::string, std::string> contents(const std::string &folder) {
  std::map<std::string, std::string> all;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
    all[std::filesystem::relative(entry.path(), folder).string()] =
        entry.is_directory() ? "" : readFile(entry.path().string());
  return all;
}

} // namespace lowtide::rt::test

#endif // LOWTIDE_TEST_UNIT_RUNTIME_SAVEDRUNS_H
