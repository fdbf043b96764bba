//===- Checkpoint.cpp - a training run on disk -----------------------------===//

#include "runtime/checkpoint/Checkpoint.h"

#include "runtime/ShellQuote.h"
#include "runtime/checkpoint/FolderListing.h"
#include "runtime/checkpoint/TensorFiles.h"

#include <algorithm>
#include <filesystem>

namespace lowtide::rt {

namespace fs = std::filesystem;

namespace {

/// A checkpoint that the session takes.
struct Candidate {
  StateFile facts;
  TensorFiles tensors;
  std::string note;
};

/// Everything is looked at before anything is changed.
Expected<Candidate> examine(const Session &session, const std::string &path, Unloadable &why) {
  if (std::optional<Refusal> refusal = checkManifest(path)) {
    why = refusal->why;
    return std::move(refusal->status);
  }
  auto refuse = [&](Status status) {
    why = status.code() == StatusCode::Io ? Unloadable::Unreadable : Unloadable::Damaged;
    return status;
  };
  Expected<StateFile> facts = readStateFile(path);
  if (!facts)
    return refuse(facts.takeStatus());
  Expected<TensorFiles> tensors = TensorFiles::open(path);
  if (!tensors)
    return refuse(tensors.takeStatus());
  const std::string &model = session.plan().model_digest();
  const bool isOther = !model.empty() && !facts->modelDigest.empty() && model != facts->modelDigest;
  if (std::optional<Refusal> refusal = tensors->check(session, isOther)) {
    why = refusal->why;
    return std::move(refusal->status);
  }
  Candidate result{std::move(*facts), std::move(*tensors), {}};
  if (isOther)
    result.note =
        path + ": written by an artifact of another model file, whose parameters have the same names and shapes";
  if (std::string unused = result.tensors.unused(session); !unused.empty() && session.artifact().entry("train"))
    result.note += (result.note.empty() ? path + ": " : "; ") + ("its state '" + printable(unused)) +
                   "' has no place in the artifact: the optimizer is another one";
  return result;
}

Expected<LoadedCheckpoint> take(Session &session, const Candidate &candidate, std::string path,
                                LoadedCheckpoint result) {
  LOWTIDE_TRY(candidate.tensors.restore(session, candidate.facts.state.step));
  result.path = std::move(path);
  result.state = candidate.facts.state;
  if (!candidate.note.empty())
    result.notes.push_back(candidate.note);
  return result;
}

/// What `latest` names, then what its run wrote before, then what cannot be told; other runs are not looked at.
/// `missing`: what `latest` names and is not there.
std::vector<ListedCheckpoint> inOrder(const std::string &folder, std::vector<ListedCheckpoint> list,
                                      std::string &missing) {
  const std::string latest = readPointer(folder, latestPointer, &missing);
  auto first =
      std::find_if(list.begin(), list.end(), [&](const ListedCheckpoint &each) { return each.name == latest; });
  if (first != list.end())
    std::rotate(list.begin(), first, first + 1);
  auto owner =
      std::find_if(list.begin(), list.end(), [](const ListedCheckpoint &each) { return each.facts.has_value(); });
  if (owner != list.end()) {
    const std::string run = owner->facts->state.run;
    std::erase_if(list, [&](const ListedCheckpoint &each) { return each.facts && each.facts->state.run != run; });
  }
  return list;
}

/// The refusals of all, for the error that ends the search; names one that could be loaded, if there is one.
Status refuseAll(const Session &session, const std::string &folder, std::vector<std::string> reasons, StatusCode code,
                 std::span<const ListedCheckpoint> rest) {
  std::string sound;
  for (const ListedCheckpoint &each : rest) {
    Unloadable why;
    if (Expected<Candidate> found = examine(session, folder + "/" + each.name, why))
      sound = sound.empty() ? folder + "/" + each.name : sound;
    else
      reasons.push_back(found.status().str());
  }
  std::string text = sound.empty() ? "holds no sound checkpoint" : "the last checkpoint is not loaded";
  for (size_t i = 0; i < reasons.size(); ++i)
    text += (i ? "; " : ": ") + reasons[i];
  if (!sound.empty())
    text += "; sound is " + sound + ", to start from it name it: --resume=" + quoteForShell(sound);
  return {code, text, folder};
}

} // namespace

/// A folder as it is, and of a pointer (`run/best`) the checkpoint that it names.
static Expected<std::string> followPointer(const std::string &path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    return path;
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  for (const char *pointer : {bestPointer, latestPointer})
    if (fs::path(path).filename() == pointer) {
      std::string missing;
      const std::string name = readPointer(folder, pointer, &missing);
      if (!name.empty())
        return (fs::path(folder) / name).string();
      return badInput(missing.empty() ? "names no checkpoint" : "names " + missing + ", which is not there", path);
    }
  const bool isInside = fs::exists(folder + "/" + manifestName, error);
  return Status(StatusCode::Usage,
                "is a file, not a folder of checkpoints or one of them" +
                    (isInside ? ": --resume=" + quoteForShell(folder) + " takes the checkpoint that it is of" : ""),
                path);
}

Expected<LoadedCheckpoint> loadCheckpoint(Session &session, const std::string &path, bool strict) {
  if (!session.isBound())
    return Status(StatusCode::Usage, "the session is not bound: there is no place to load a checkpoint into");
  Expected<std::string> followed = followPointer(path);
  if (!followed)
    return followed.takeStatus();
  const std::string &folder = *followed;
  std::error_code error;
  Unloadable why = Unloadable::Damaged;
  for (const char *name : {manifestName, checkpointFiles[0], checkpointFiles[2]})
    if (fs::exists(folder + "/" + name, error)) {
      Expected<Candidate> found = examine(session, folder, why);
      return found ? take(session, *found, folder, {}) : Expected<LoadedCheckpoint>(found.takeStatus());
    }
  for (int round = 0;; ++round) {
    Expected<std::vector<ListedCheckpoint>> listed = listCheckpoints(folder);
    if (!listed)
      return listed.takeStatus();
    if (listed->empty())
      return badInput(fs::exists(folder, error) ? "holds no checkpoint (step-<number>)" : "there is no such folder",
                      folder);
    std::string missing;
    const std::vector<ListedCheckpoint> list = inOrder(folder, std::move(*listed), missing);
    LoadedCheckpoint result;
    if (!missing.empty())
      result.notes.push_back(folder + "/" + latestPointer + ": names " + missing +
                             ", which is not there; the one before is taken");
    std::vector<std::string> reasons;
    bool isGone = false;
    for (size_t i = 0; i < list.size() && !isGone; ++i) {
      const std::string checkpoint = folder + "/" + list[i].name;
      Expected<Candidate> found = examine(session, checkpoint, why);
      if (found)
        return take(session, *found, checkpoint, std::move(result));
      // A run that saves there may have pruned it since it was listed.
      isGone = round < 3 && !fs::exists(checkpoint, error) && !error;
      if (strict && !isGone)
        return found.takeStatus();
      reasons.push_back(found.status().str());
      if (why != Unloadable::Damaged && why != Unloadable::NotFinite && !isGone)
        return refuseAll(session, folder, std::move(reasons), found.status().code(), std::span(list).subspan(i + 1));
      result.notes.push_back(found.status().str() + "; the one before is taken");
      if (why == Unloadable::Damaged)
        result.damaged.push_back(list[i].name);
    }
    if (!isGone)
      return refuseAll(session, folder, std::move(reasons),
                       why == Unloadable::NotFinite ? StatusCode::NonFinite : StatusCode::BadInput, {});
  }
}

} // namespace lowtide::rt
