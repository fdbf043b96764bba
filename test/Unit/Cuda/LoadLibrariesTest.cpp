//===- LoadLibrariesTest.cpp - where libraries are looked for --------------===//
#include "runtime/devices/Cuda/LoadLibraries.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <unistd.h>

using namespace lowtide::rt;
using namespace lowtide::rt::cuda;
namespace fs = std::filesystem;

namespace {

/// A name that no machine has but for what a test writes.
constexpr const char *library = "liblowtide-test-absent.so.9";

/// An environment in which nothing names a Python, and a folder for a test's own.
class LoadLibraries : public testing::Test {
protected:
  void SetUp() override {
    home = fs::path(testing::TempDir()) / ("lowtide-libraries-" + std::to_string(::getpid()));
    fs::create_directories(home);
    for (const char *name : {"PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME", "CUDA_HOME", "CUDA_PATH"}) {
      const char *value = std::getenv(name);
      kept[name] = value ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto &[name, value] : kept)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    fs::remove_all(home);
  }

  static void set(const char *name, const fs::path &value) { ::setenv(name, value.c_str(), 1); }
  static void write(const fs::path &file) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "no machine code\n";
  }
  /// A package of NVIDIA's, with the library in it, in an environment below `prefix`; the library's path.
  static fs::path install(const fs::path &prefix) {
    const fs::path file = prefix / "lib" / "python3.12" / "site-packages" / "nvidia" / "cudnn" / "lib" / library;
    fs::create_directories(file.parent_path());
    fs::copy_file(LOWTIDE_NVTX_PROFILER, file);
    return file;
  }
  /// Where the library was found, or what was said instead.
  static std::string look(LibraryVersion least = {}) {
    std::string path;
    Expected<void *> opened = openLibrary({library}, "not there", path, least);
    return opened ? path : opened.takeStatus().str();
  }

  fs::path home;
  std::map<std::string, std::optional<std::string>> kept;
};

TEST_F(LoadLibraries, OfAnActivatedEnvironment) {
  const fs::path file = install(home / "env");
  EXPECT_EQ(look(), "not there");
  for (const char *name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    set(name, home / "env");
    EXPECT_EQ(look(), file) << name;
    ::unsetenv(name);
  }
  set("PYTHONPATH", "/nowhere:" + (home / "env" / "lib" / "python3.12" / "site-packages").string());
  EXPECT_EQ(look(), file);
}

TEST_F(LoadLibraries, OfAPythonOnPath) {
  const fs::path file = install(home / "env");
  const fs::path programs = home / "env" / "bin";
  set("PATH", "/nowhere/bin:" + programs.string());
  EXPECT_EQ(look(), "not there") << "no Python is there";
  write(programs / "python3");
  EXPECT_EQ(look(), file);
  set("PATH", programs.string() + "/");
  EXPECT_EQ(look(), file);
  // The folder of a checkout, say, that has a python3 in it, is no environment's.
  write(home / "env" / "tools" / "python3");
  set("PATH", home / "env" / "tools");
  EXPECT_EQ(look(), "not there");
}

TEST_F(LoadLibraries, WhatIsNoLibraryIsPassedOver) {
  const fs::path broken = install(home / "broken"), file = install(home / "env");
  write(broken);
  set("VIRTUAL_ENV", home / "broken");
  EXPECT_EQ(look(), "not there");
  set("CONDA_PREFIX", home / "env");
  EXPECT_EQ(look(), file);
}

TEST_F(LoadLibraries, AnOldOneIsTakenOnlyWhereNoNewerIsFound) {
  const fs::path old = install(home / "old"), recent = install(home / "recent");
  fs::create_directories(old.parent_path().parent_path().parent_path().parent_path() /
                         "nvidia_cudnn_cu13-9.14.0.64.dist-info");
  fs::create_directories(recent.parent_path().parent_path().parent_path().parent_path() /
                         "nvidia_cudnn_cu13-9.19.0.56.dist-info");
  set("VIRTUAL_ENV", home / "old");
  EXPECT_EQ(look(), old);
  EXPECT_EQ(look({9, 16}), old) << "there is no other";
  set("CONDA_PREFIX", home / "recent");
  EXPECT_EQ(look(), old) << "any version does";
  EXPECT_EQ(look({9, 14}), old);
  EXPECT_EQ(look({9, 16}), recent);
  // A system's library has its version in its own name.
  const fs::path versioned = recent.parent_path() / (std::string(library) + ".15.1");
  fs::rename(recent, versioned);
  fs::create_symlink(versioned, recent);
  EXPECT_EQ(look({9, 16}), old) << "both are too old";
  EXPECT_EQ(look({9, 15}), recent);
}

TEST_F(LoadLibraries, AMissingOneIsSaidInWords) {
  std::string path;
  Expected<void *> opened = openLibrary({library, "liblowtide-test-absent.so.8"},
                                        missingLibrary("cuDNN", library, "cudnn9", "nvidia-cudnn"), path);
  ASSERT_FALSE(opened);
  const Status status = opened.takeStatus();
  EXPECT_EQ(status.code(), StatusCode::Device);
  EXPECT_EQ(status.message(),
            "the step calls cuDNN, and liblowtide-test-absent.so.9 is not on this machine; install the "
            "Debian package cudnn9 or the Python package nvidia-cudnn");
  EXPECT_EQ(path, "");
}

} // namespace
