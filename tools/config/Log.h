//===- Log.h - what a tool says of its own work -----------------*- C++ -*-===//
//
// Lines `time level area message` on standard error, for the areas that LOWTIDE_LOG (or --log) asks for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

namespace lowtide::config {

enum class LogLevel { Off, Info, Debug };

/// Errors, warnings and results are not its business: those are printed whatever the levels.
class Log {
public:
  /// Sets levels from `plan=debug,runtime=info`; a level alone is that of all areas. On a word that is not known, says
  /// in `error` which are, and changes nothing.
  bool configure(const std::string &levels, std::string &error);

  bool shows(LogLevel level, const std::string &area) const;
  void info(const std::string &area, const std::string &message) const { write(LogLevel::Info, area, message); }
  void debug(const std::string &area, const std::string &message) const { write(LogLevel::Debug, area, message); }

  /// Called before each line: ends a progress line that is being rewritten.
  std::function<void()> beforeLine;

private:
  void write(LogLevel level, const std::string &area, const std::string &message) const;

  std::map<std::string, LogLevel> levels; // of the areas that are not silent
};

/// How long one piece of work takes.
class Stopwatch {
public:
  double milliseconds() const { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }
  /// "12.3 ms".
  std::string text() const;

private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
};

} // namespace lowtide::config
