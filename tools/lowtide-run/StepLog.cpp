//===- StepLog.cpp - the lines of --log-jsonl -------------------------------===//

#include "StepLog.h"

#include "runtime/MappedFile.h"
#include "runtime/SpecialFile.h"
#include "runtime/checkpoint/OutputFile.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace lowtide::run {

using namespace rt;

/// What the first line of a log says; nothing where it is no header.
static std::optional<nlohmann::json> readHeader(std::string_view text) {
  Expected<nlohmann::json> line = parseJson(text.substr(0, text.find('\n')));
  if (!line || !line->is_object() || !line->contains("lowtide_run"))
    return std::nullopt;
  return *line;
}

/// `run.jsonl` as `run.1.jsonl`, with the first number that no file has.
static std::filesystem::path findOlderName(const std::filesystem::path &path) {
  std::filesystem::path older;
  std::error_code error;
  int number = 0;
  do
    older = path.parent_path() / (path.stem().string() + "." + std::to_string(++number) + path.extension().string());
  while (std::filesystem::exists(std::filesystem::symlink_status(older, error)));
  return older;
}

Expected<std::unique_ptr<StepLog>> StepLog::open(const std::string &path, Json header, const LogStart &start) {
  std::unique_ptr<StepLog> log(new StepLog(path));
  log->header_ = std::move(header);
  std::error_code error;
  if (!isSpecialFile(path) && std::filesystem::is_regular_file(path, error) &&
      std::filesystem::file_size(path, error) > 0) {
    Expected<MappedFile> old = MappedFile::open(path);
    if (!old)
      return old.takeStatus();
    std::optional<nlohmann::json> known = readHeader(old->text());
    if (!known)
      return badInput("is no log of lowtide-run: its first line is not the header of one; it is left as it was: give "
                      "--log-jsonl another file, or remove this one",
                      path);
    log->keepsOld_ = (start.resumedAfter || start.entry != "train") && known->value("entry", "") == "train";
  }
  log->file_ = std::fopen(path.c_str(), log->keepsOld_ ? "ae" : "we");
  if (!log->file_)
    return cannotCreate(path);
  return log;
}

StepLog::~StepLog() {
  if (file_)
    std::fclose(file_);
}

Status StepLog::put(const Json &line) {
  if (std::fprintf(file_, "%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str()) < 0 ||
      std::fflush(file_) != 0)
    return ioError(std::string("cannot write: ") + std::strerror(errno), path_);
  return Status::ok();
}

Status StepLog::begin() {
  if (!header_)
    return Status::ok();
  if (keepsOld_) {
    const std::filesystem::path older = findOlderName(path_);
    std::error_code error;
    std::filesystem::rename(path_, older, error);
    if (error)
      return ioError("cannot rename to '" + older.filename().string() + "': " + error.message(), path_);
    file_ = std::freopen(path_.c_str(), "we", file_);
    if (!file_)
      return cannotCreate(path_);
    note_ = path_ + ": the lines of the run so far are in '" + older.filename().string() + "'";
  }
  return put(*std::exchange(header_, std::nullopt));
}

Status StepLog::write(const Json &line) {
  LOWTIDE_TRY(begin());
  return put(line);
}

} // namespace lowtide::run
