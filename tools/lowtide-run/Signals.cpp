//===- Signals.cpp - requests to stop, and what must not end a run ---------===//

#include "Signals.h"

#include "runtime/MappedFile.h"

#include <csignal>
#include <cstring>
#include <unistd.h>

namespace lowtide::run {
namespace {

volatile std::sig_atomic_t stopped = 0;

void requestStop(int signal) {
  if (!stopped) {
    stopped = signal;
    return;
  }
  if (signal == SIGXCPU)
    return; // comes every second from the limit on
  const char text[] = "\nerror: a second signal: stopped at once, nothing more is saved\n";
  (void)!::write(STDERR_FILENO, text, sizeof text - 1);
  std::_Exit(128 + signal);
}

} // namespace

void catchSignals() {
  struct sigaction action = {}, before = {};
  action.sa_handler = requestStop;
  action.sa_flags = SA_RESTART; // files that are being written go on
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU}) {
    if (signal == SIGHUP && ::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN)
      continue;
    ::sigaction(signal, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  rt::MappedFile::surviveLostBytes();
}

int stopSignal() { return stopped; }

std::string signalName(int signal) {
  const char *name = ::sigabbrev_np(signal);
  return name ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

} // namespace lowtide::run
