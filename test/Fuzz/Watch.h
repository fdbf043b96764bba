//===- Watch.h - a child that may die, and who waits for it ----------------===//
#ifndef LOWTIDE_TEST_FUZZ_WATCH_H
#define LOWTIDE_TEST_FUZZ_WATCH_H

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace lowtide::fuzz {

/// A `Board` that a process and its children share; they are zero at first.
template <typename Board> Board &shareBoard() {
  void *shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    std::abort();
  return *new (shared) Board{};
}

/// For the child: no more memory than this, no core files.
inline void limitMemory(uint64_t bytes) {
  const rlimit limit = {bytes, bytes}, noCore = {0, 0};
  ::setrlimit(RLIMIT_AS, &limit);
  ::setrlimit(RLIMIT_CORE, &noCore);
}

/// Waits for a child that counts `done` up; what ended it, or nothing. Ten seconds of work without a step is an end,
/// measured by the processor: a busy machine is no hang. So are ten minutes of nothing, as those who wait for each
/// other do: on a machine with much else to do a minute is soon gone.
inline std::string awaitChild(pid_t child, const std::atomic<uint64_t> &done) {
  clockid_t clock{};
  ::clock_getcpuclockid(child, &clock);
  auto worked = [&] {
    timespec time{};
    return ::clock_gettime(clock, &time) ? 0.0 : double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
  };
  auto now = [] { return std::chrono::steady_clock::now(); };
  auto last = now();
  double workedThen = worked();
  uint64_t seen = done;
  for (int status = 0;;) {
    if (::waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status))
        return strsignal(WTERMSIG(status));
      return WEXITSTATUS(status) ? "exit " + std::to_string(WEXITSTATUS(status)) : "";
    }
    if (done != seen)
      seen = done, last = now(), workedThen = worked();
    if (worked() - workedThen > 10 || now() - last > std::chrono::minutes(10)) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return "no end within 10 s";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

} // namespace lowtide::fuzz

#endif // LOWTIDE_TEST_FUZZ_WATCH_H
