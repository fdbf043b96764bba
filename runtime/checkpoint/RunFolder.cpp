//===- RunFolder.cpp - the folder that a run saves into --------------------===//

#include "runtime/checkpoint/RunFolder.h"

#include "runtime/ShellQuote.h"
#include "runtime/checkpoint/Finite.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/OutputFile.h"
#include "runtime/checkpoint/TensorFiles.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace lowtide::rt {

namespace fs = std::filesystem;

namespace {

/// What a writer makes under another name first; under the lock, such a thing is what a killed writer left.
constexpr const char *temporaryPrefix = ".tmp-";

Status renamed(const std::string &from, const std::string &to) {
  return ::rename(from.c_str(), to.c_str()) == 0
             ? Status::ok()
             : ioError(std::string("cannot rename to its final name: ") + std::strerror(errno), to);
}

/// A place in a checkpoint as users know it.
std::string withoutTemporary(std::string where, const std::string &temporary, const std::string &final) {
  if (where.rfind(temporary, 0) == 0)
    where.replace(0, temporary.size(), final);
  return where;
}

int64_t nanosecondsNow() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// Whether two checkpoints are of one run, with the same seeds.
bool saysTheSame(const std::string &checkpoint, const std::string &other) {
  Expected<StateFile> one = readStateFile(checkpoint), two = readStateFile(other);
  return one && two && one->state.run == two->state.run && one->state.seed == two->state.seed &&
         one->state.shuffleSeed == two->state.shuffleSeed;
}

/// The first of <name>1, <name>2, … that is free.
std::string freeName(const std::string &folder, const std::string &name) {
  std::error_code error;
  for (int number = 1;; ++number)
    if (std::string next = name + std::to_string(number); !fs::exists(fs::symlink_status(folder + "/" + next, error)))
      return next;
}

} // namespace

Expected<std::unique_ptr<RunFolder>> RunFolder::open(const std::string &folder, std::vector<std::string> &notes) {
  std::error_code error;
  // What holds it may prune it, with all that is in it.
  if (fs::exists(folder + "/" + manifestName, error)) {
    const fs::path whole = fs::path(folder).lexically_normal();
    const fs::path parent = (whole.has_filename() ? whole : whole.parent_path()).parent_path();
    return Status(StatusCode::Usage,
                  "is a checkpoint of a run, not a folder of checkpoints: give the folder that holds it, --save=" +
                      quoteForShell(parent.empty() ? "." : parent.string()) + ", or another one",
                  folder);
  }
  const bool made = fs::create_directories(folder, error);
  if (error)
    return ioError("cannot create: " + error.message(), folder);
  std::string note;
  Expected<FolderLock> lock = FolderLock::take(folder, note);
  if (!lock)
    return lock.takeStatus();
  if (!note.empty())
    notes.push_back(note);
  std::unique_ptr<RunFolder> result(new RunFolder(folder, std::move(*lock)));
  result->made_ = made;
  result->removeStale();
  return result;
}

RunFolder::~RunFolder() {
  lock_.reset();
  if (made_ && !saved_)
    ::rmdir(folder_.c_str()); // fails where somebody else has put something there
}

void RunFolder::removeStale() {
  std::error_code error;
  std::vector<fs::path> stale;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(temporaryPrefix, 0) == 0 || name.rfind(".latest-", 0) == 0)
      stale.push_back(entry.path());
  }
  for (const fs::path &path : stale)
    fs::remove_all(path, error);
}

Status RunFolder::claim(const RunState &state, bool overwrite) {
  Expected<std::vector<ListedCheckpoint>> list = listCheckpoints(folder_);
  if (!list)
    return list.takeStatus();
  if (list->empty())
    return Status::ok();
  auto isOurs = [&](const ListedCheckpoint &each) { return each.facts && each.facts->state.run == state.run; };
  if (overwrite) {
    for (const ListedCheckpoint &each : *list)
      if (!isOurs(each))
        overwritten_.push_back(each.name);
    return Status::ok();
  }
  const std::string latest = readPointer(folder_, latestPointer);
  auto last =
      std::find_if(list->begin(), list->end(), [&](const ListedCheckpoint &each) { return each.name == latest; });
  if (last == list->end() || !last->facts)
    last = list->begin();
  if (isOurs(*last))
    return Status::ok();
  // From what tells no run, none goes on.
  const std::string whose = last->facts
                                ? "run " + printable(last->facts->state.run) + " has saved there, last in " +
                                      last->name + ": go on from there with --resume=" + quoteForShell(folder_) + ", "
                                : "it holds " + last->name + ", whose state.json cannot be read: ";
  return {StatusCode::Usage,
          whose + "give another folder, or add --overwrite to replace what is there once this run has saved", folder_};
}

Expected<std::string> RunFolder::setAside(const std::string &name) {
  std::error_code error;
  std::string to = name + ".corrupt";
  if (fs::exists(fs::symlink_status(pathOf(to), error)))
    to = freeName(folder_, to + "-");
  LOWTIDE_TRY(renamed(pathOf(name), pathOf(to)));
  return pathOf(to);
}

Status RunFolder::write(const Session &session, const RunState &state, const std::string &temporary) {
  if (::mkdir(temporary.c_str(), 0777) != 0)
    return ioError(std::string("cannot create: ") + std::strerror(errno), temporary);
  LOWTIDE_TRY(writeTensorFiles(session, state.step, temporary));
  // The clock may have been set back; the order in which checkpoints were written is theirs all the same.
  int64_t written = nanosecondsNow();
  if (Expected<std::vector<ListedCheckpoint>> list = listCheckpoints(folder_); list && !list->empty())
    if (const std::optional<StateFile> &newest = list->front().facts; newest && newest->written < INT64_MAX)
      written = std::max(written, newest->written + 1);
  LOWTIDE_TRY(writeStateFile(temporary, session, state, written));
  LOWTIDE_TRY(writeManifest(temporary));
  return syncDirectory(temporary);
}

Expected<std::string> RunFolder::publish(const std::string &temporary, const std::string &name) {
  auto done = [](Status status, std::string aside = {}) {
    return status.isOk() ? Expected<std::string>(std::move(aside)) : Expected<std::string>(std::move(status));
  };
  const std::string target = pathOf(name);
  std::error_code error;
  if (!fs::exists(fs::symlink_status(target, error)))
    return done(renamed(temporary, target));
  const std::optional<Refusal> refusal = checkManifest(target);
  if (refusal && refusal->why == Unloadable::Damaged) {
    if (Expected<std::string> moved = setAside(name); !moved)
      return moved;
    return done(renamed(temporary, target));
  }
  if (!refusal && statesSameTensors(temporary, target) && saysTheSame(temporary, target)) {
    fs::remove_all(temporary, error); // it is there already, whole
    return done(Status::ok());
  }
  // Both are whole under some name at any time: the new one becomes a checkpoint, then the two change names.
  const std::string aside = freeName(folder_, name + ".replaced-");
  LOWTIDE_TRY(renamed(temporary, pathOf(aside)));
  if (::renameat2(AT_FDCWD, pathOf(aside).c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
    return done(Status::ok(), aside);
  // A file system that cannot exchange names.
  const std::string other = freeName(folder_, name + ".replaced-");
  LOWTIDE_TRY(renamed(target, pathOf(other)));
  return done(renamed(pathOf(aside), target), other);
}

void RunFolder::remove(const std::string &name) {
  // Under another name first: a kill must not leave half a checkpoint that looks like one.
  std::error_code error;
  const std::string temporary = pathOf(temporaryPrefix + ("removed-" + name));
  if (::rename(pathOf(name).c_str(), temporary.c_str()) == 0)
    fs::remove_all(temporary, error);
}

void RunFolder::prune(const std::string &saved, unsigned keep) {
  Expected<std::vector<ListedCheckpoint>> list = listCheckpoints(folder_);
  Expected<StateFile> own = readStateFile(pathOf(saved));
  if (!list || !own || !keep)
    return;
  const std::string latest = readPointer(folder_, latestPointer), best = readPointer(folder_, bestPointer);
  unsigned counted = 1; // what was saved just now, whenever the same bits were written first
  for (const ListedCheckpoint &each : *list) {
    if (!each.facts || each.facts->state.run != own->state.run || each.name == saved)
      continue;
    if (counted++ >= keep && each.name != latest && each.name != best)
      remove(each.name);
  }
}

Status RunFolder::point(const char *pointer, int64_t step) {
  const std::string temporary = pathOf(temporaryPrefix + (std::string(pointer) + "-") + std::to_string(::getpid()));
  Status status = writeFile(temporary, stepName(step) + "\n");
  if (status.isOk())
    status = renamed(temporary, pathOf(pointer));
  if (!status.isOk())
    ::unlink(temporary.c_str());
  else
    status = syncDirectory(folder_);
  return status;
}

Status RunFolder::openAgain(const RunState &state) {
  if (lock_->isInPlace())
    return Status::ok();
  std::error_code error;
  const bool made = fs::create_directories(folder_, error);
  if (error)
    return ioError("cannot create: " + error.message(), folder_);
  std::string ignored; // of a file system without locks it was said when the folder was opened
  Expected<FolderLock> lock = FolderLock::take(folder_, ignored);
  if (!lock)
    return lock.takeStatus();
  lock_.emplace(std::move(*lock));
  if (made)
    note_ =
        folder_ + ": was renamed or removed while the run went on: what it saves goes into a new folder of that name";
  made_ = made, saved_ = false;
  overwritten_.clear();
  return claim(state, /*overwrite=*/false);
}

Expected<std::string> RunFolder::save(const Session &session, const RunState &state, unsigned keep) {
  if (state.step < 0 || state.step > maxStep)
    return Status(StatusCode::Usage, "step " + std::to_string(state.step) + " cannot be saved: it must be from 0 to " +
                                         std::to_string(maxStep));
  LOWTIDE_TRY(session.download());
  Expected<std::optional<NotFinite>> found = findNotFinite(session);
  if (!found)
    return found.takeStatus();
  if (*found)
    return Status(StatusCode::NonFinite, (*found)->str() + ": step " + std::to_string(state.step) + " is not saved",
                  folder_);
  LOWTIDE_TRY(openAgain(state));
  const std::string name = stepName(state.step);
  const std::string temporary = pathOf(temporaryPrefix + std::to_string(state.step) + "-" + std::to_string(::getpid()));
  std::error_code error;
  fs::remove_all(temporary, error);
  Status status = write(session, state, temporary);
  std::string aside;
  if (status.isOk()) {
    Expected<std::string> published = publish(temporary, name);
    status = published.status();
    if (published)
      aside = *published;
  }
  if (!status.isOk()) {
    fs::remove_all(temporary, error);
    return Status(status.code(), status.message(), withoutTemporary(status.where(), temporary, pathOf(name)));
  }
  saved_ = true;
  LOWTIDE_TRY(syncDirectory(folder_));
  LOWTIDE_TRY(point(latestPointer, state.step));
  // The best of what goes is not the best of this run, whose checkpoint may have the same name.
  if (std::find(overwritten_.begin(), overwritten_.end(), readPointer(folder_, bestPointer)) != overwritten_.end())
    ::unlink(pathOf(bestPointer).c_str());
  for (const std::string &each : overwritten_)
    if (each != name)
      remove(each);
    else if (!aside.empty())
      remove(aside);
  overwritten_.clear();
  prune(name, keep);
  LOWTIDE_TRY(syncDirectory(folder_));
  return pathOf(name);
}

Expected<std::string> saveCheckpoint(const Session &session, const RunState &state, const std::string &folder,
                                     unsigned keep) {
  if (!session.isBound())
    return Status(StatusCode::Usage, "the session is not bound: it has nothing to save");
  if (state.step < 0)
    return Status(StatusCode::Usage, "step " + std::to_string(state.step) + " cannot be saved: it is negative");
  std::vector<std::string> notes;
  Expected<std::unique_ptr<RunFolder>> opened = RunFolder::open(folder, notes);
  return opened ? (*opened)->save(session, state, keep) : Expected<std::string>(opened.takeStatus());
}

} // namespace lowtide::rt
