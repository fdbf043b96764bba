//===- Signals.h - requests to stop, and what must not end a run -----------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_SIGNALS_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_SIGNALS_H

#include <string>

namespace lowtide::run {

/// From now on:
/// - SIGINT (Ctrl-C), SIGTERM, SIGHUP (unless it was ignored: nohup), SIGQUIT, SIGUSR1, SIGUSR2 and SIGXCPU ask the run
/// to
///   stop after its step; a second request ends the process at once, with 128 + the signal's number;
/// - a write beyond a limit on file size, or to a terminal or pipe that is gone, fails instead of ending the process;
/// - a data file that somebody shortens does not end it either (MappedFile::surviveLostBytes).
void catchSignals();

/// The signal that has asked to stop; 0: none has.
int stopSignal();
/// "SIGINT".
std::string signalName(int signal);

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_SIGNALS_H
