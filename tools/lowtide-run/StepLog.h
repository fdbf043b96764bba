//===- StepLog.h - the lines of --log-jsonl --------------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_STEPLOG_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_STEPLOG_H

#include "runtime/Json.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace lowtide::run {

/// Whose log it is.
struct LogStart {
  std::string entry, run;              ///< `run`: the name that checkpoints have, too
  std::optional<int64_t> resumedAfter; ///< steps that were done before; nullopt: the run begins
};

/// A file of JSON lines, each there for others to read at once: a header that says what runs, then its steps. A
/// training that goes on, and an evaluation, keep the log of a training that is there under another name. What is no
/// log is refused and left alone.
class StepLog {
public:
  using Json = nlohmann::ordered_json;

  static rt::Expected<std::unique_ptr<StepLog>> open(const std::string &path, Json header, const LogStart &start);
  ~StepLog();

  /// Writes the header, which is otherwise written before the first line.
  rt::Status begin();
  rt::Status write(const Json &line);
  /// What became of the file that was there, for once; or empty.
  std::string takeNote() { return std::exchange(note_, {}); }

private:
  explicit StepLog(std::string path) : path_(std::move(path)) {}
  rt::Status put(const Json &line);

  std::string path_;
  std::FILE *file_ = nullptr;
  std::optional<Json> header_; ///< to be written before the next line
  bool keepsOld_ = false;      ///< the file that is there gets another name first
  std::string note_;
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_STEPLOG_H
