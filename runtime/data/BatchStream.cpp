//===- BatchStream.cpp - batches that a program writes into a pipe ---------===//

#include "runtime/data/BatchStream.h"

#include "runtime/Verify.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace lowtide::rt {

/// How often a thread that waits for bytes looks whether it was interrupted.
static constexpr int pollMilliseconds = 50;

BatchStream::~BatchStream() { finish(); }

std::string BatchStream::place() const {
  std::string text = "pipe:" + printable(command_);
  if (batch_ >= 0)
    text += ": batch " + std::to_string(batch_) + (next_ ? ", array " + std::to_string(next_) : "");
  return text;
}

Status BatchStream::start(int64_t step) {
  std::string command = command_;
  const std::string key = "{step}";
  const bool seeks = command.find(key) != std::string::npos;
  for (size_t at = 0; (at = command.find(key, at)) != std::string::npos;)
    command.replace(at, key.size(), std::to_string(step));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return ioError(std::string("cannot make a pipe: ") + std::strerror(errno), place());
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  // A group of its own: Ctrl-C asks the run to finish its step, for which it may need this batch.
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    ::sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  std::string shell = "sh", flag = "-c";
  char *arguments[] = {shell.data(), flag.data(), command.data(), nullptr};
  const int error = ::posix_spawn(&program_, "/bin/sh", &actions, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  ::close(ends[1]);
  if (error != 0) {
    program_ = -1;
    ::close(ends[0]);
    return ioError(std::string("cannot start: ") + std::strerror(error), place());
  }
  pipe_ = ends[0];
  batch_ = seeks ? step : 0;
  return Status::ok();
}

void BatchStream::finish() {
  if (pipe_ >= 0)
    ::close(pipe_);
  pipe_ = -1;
  if (program_ < 0)
    return;
  ::kill(-program_, SIGTERM);
  // Two seconds to clean up.
  for (int tries = 0; ::waitpid(program_, nullptr, WNOHANG) == 0; ++tries) {
    if (tries == 200)
      ::kill(-program_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  program_ = -1;
}

Status BatchStream::ended() {
  // The pipe is closed; the program may be about to end.
  int state = 0;
  pid_t waited = 0;
  for (int tries = 0; program_ >= 0 && tries < 100; ++tries) {
    if ((waited = ::waitpid(program_, &state, WNOHANG)) != 0)
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::string how = "has closed its output";
  if (waited > 0) {
    program_ = -1;
    how = WIFSIGNALED(state) ? "was ended by signal " + std::to_string(WTERMSIG(state))
                             : "has ended with status " + std::to_string(WEXITSTATUS(state));
    // Of a program that a signal has ended, the shell that ran it says 128 and the signal's number.
    if (const int signal = WEXITSTATUS(state) - 128; !WIFSIGNALED(state) && signal > 0 && signal < NSIG)
      how += ", as a shell says of signal " + std::to_string(signal);
  }
  return badInput("the program " + how + "; the run needs more batches", place());
}

Status BatchStream::fill(uint8_t *to, uint64_t bytes) {
  while (bytes > 0) {
    if (interrupted_)
      return ioError("reading was interrupted", place());
    pollfd ready = {pipe_, POLLIN, 0};
    const int found = ::poll(&ready, 1, pollMilliseconds);
    if (found == 0 || (found < 0 && errno == EINTR))
      continue;
    const ssize_t count = found < 0 ? -1 : ::read(pipe_, to, std::min<uint64_t>(bytes, 1 << 20));
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (count < 0)
      return ioError(std::string("cannot read: ") + std::strerror(errno), place());
    if (count == 0)
      return ended();
    to += count;
    bytes -= static_cast<uint64_t>(count);
  }
  return Status::ok();
}

Expected<NpyHeader> BatchStream::readHeader() {
  header_.resize(npyPrefix);
  LOWTIDE_TRY(fill(header_.data(), npyPrefix));
  Expected<size_t> size = npyHeaderSize(header_);
  if (!size)
    return size.takeStatus().at(place());
  header_.resize(std::max(*size, npyPrefix));
  LOWTIDE_TRY(fill(header_.data() + npyPrefix, header_.size() - npyPrefix));
  Expected<NpyHeader> header = parseNpyHeader(header_);
  if (!header)
    return header.takeStatus().at(place());
  ++next_;
  return header;
}

Status BatchStream::seek(int64_t step, size_t arrays) {
  if (batch_ < 0)
    LOWTIDE_TRY(start(step));
  else if (step < batch_ || (step == batch_ && next_ > 0))
    return {StatusCode::Internal, "batch " + std::to_string(step) + " has gone by", place()};
  arrays_ = arrays;
  while (arrays_ > 0 && batch_ < step) {
    while (next_ < arrays_)
      LOWTIDE_TRY(skip());
    next_ = 0;
    ++batch_;
  }
  next_ = 0;
  return Status::ok();
}

Status BatchStream::skip() {
  Expected<NpyHeader> header = readHeader();
  if (!header)
    return header.takeStatus();
  values_.resize(std::min<uint64_t>(header->bytes, 1 << 20));
  for (uint64_t left = header->bytes; left > 0;) {
    const uint64_t now = std::min<uint64_t>(left, values_.size());
    LOWTIDE_TRY(fill(values_.data(), now));
    left -= now;
  }
  return Status::ok();
}

Status BatchStream::read(const Wanted &wanted, uint8_t *to) {
  Expected<NpyHeader> header = readHeader();
  if (!header)
    return header.takeStatus();
  const std::string where = place();
  const std::string found = "is " + describe(header->dtype, header->dims) + ", the model reads '" +
                            printable(wanted.name) + "' " + describe(wanted.dtype, wanted.dims) + " here";
  if (!std::equal(header->dims.begin(), header->dims.end(), wanted.dims.begin(), wanted.dims.end()))
    return badInput(found, where);
  Expected<Conversion> conversion = Conversion::create(header->dtype, wanted.dtype, wanted.scale);
  if (!conversion)
    return Status(conversion.status().code(), found + "; " + conversion.status().message(), where);
  if (conversion->isCopy())
    return fill(to, header->bytes);
  values_.resize(header->bytes);
  LOWTIDE_TRY(fill(values_.data(), header->bytes));
  const uint64_t elementSize = elementBytes(header->dtype);
  const int64_t count = static_cast<int64_t>(header->bytes / elementSize);
  const int64_t done = conversion->convert(values_.data(), to, count);
  if (done < count)
    return badInput("value " + elementText(header->dtype, values_.data() + static_cast<uint64_t>(done) * elementSize) +
                        " at position " + std::to_string(done) + " is no " + describe(wanted.dtype) +
                        " that the model could read",
                    where);
  return Status::ok();
}

} // namespace lowtide::rt
