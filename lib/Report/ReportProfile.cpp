//===- ReportProfile.cpp - when the instructions of a step ran ------------===//
//
// Reads what `lowtide-run --profile=FILE` writes.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Report/Report.h"
#include "lowtide/Support/StableSort.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace lowtide;
using namespace lowtide::report;

/// Of the form that is read.
static constexpr int64_t form = 1;

/// [begin, end], where those follow one another.
static std::optional<std::pair<double, double>> readSpan(const llvm::json::Value &value) {
  const llvm::json::Array *points = value.getAsArray();
  if (!points || points->size() != 2)
    return std::nullopt;
  const std::optional<double> begin = (*points)[0].getAsNumber(), end = (*points)[1].getAsNumber();
  if (!begin || !end || *begin < 0 || *end < *begin)
    return std::nullopt;
  return std::pair(*begin, *end);
}

static rt::Status readInstruction(const llvm::json::Value &value, Profile &profile) {
  const llvm::json::Object *object = value.getAsObject();
  const std::optional<int64_t> number = object ? object->getInteger("instruction") : std::nullopt,
                               lane = object ? object->getInteger("lane") : std::nullopt;
  const llvm::json::Array *spans = object ? object->getArray("spans") : nullptr;
  if (!spans || !number || *number < 0 || *number > UINT32_MAX || !lane || *lane < 0 || *lane > UINT32_MAX)
    return rt::badInput("an instruction lacks its number, lane or spans; run lowtide-run --profile=FILE again",
                        profile.path);
  for (const llvm::json::Value &each : *spans) {
    const auto span = readSpan(each);
    if (!span)
      return rt::badInput("a span of instruction " + std::to_string(*number) +
                              " is not [begin, end] in microseconds; run lowtide-run --profile=FILE again",
                          profile.path);
    profile.spans.push_back({unsigned(*number), uint32_t(*lane), span->first, span->second});
  }
  return rt::Status::ok();
}

rt::Expected<Profile> report::readProfile(const std::string &path, llvm::StringRef planDigest) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return rt::ioError("cannot read: " + buffer.getError().message(), path);
  llvm::Expected<llvm::json::Value> value = llvm::json::parse((*buffer)->getBuffer());
  if (!value) {
    llvm::consumeError(value.takeError());
    return rt::badInput("is no profile; a trace takes what lowtide-run --profile=FILE writes", path);
  }
  if (value->getAsArray())
    return rt::badInput("is a list, an older form of a profile, without lanes; run lowtide-run --profile=FILE again",
                        path);
  const llvm::json::Object *object = value->getAsObject();
  const std::optional<int64_t> found = object ? object->getInteger("lowtide_profile") : std::nullopt;
  if (!found)
    return rt::badInput("is no profile; a trace takes what lowtide-run --profile=FILE writes", path);
  const std::optional<llvm::StringRef> digest = object->getString("plan_sha256"), entry = object->getString("entry");
  const llvm::json::Array *instructions = object->getArray("instructions");
  if (*found != form || !digest || !entry || !instructions)
    return rt::badInput("is a profile of form " + std::to_string(*found) + "; this program reads form " +
                            std::to_string(form) + ": run its lowtide-run --profile=FILE again",
                        path);
  if (*digest != planDigest)
    return rt::badInput("the profile is of another plan (" + digest->take_front(12).str() + "…) than the artifact's (" +
                            planDigest.take_front(12).str() + "…); give the artifact that was run",
                        path);
  Profile profile{path, entry->str(), {}};
  for (const llvm::json::Value &each : *instructions)
    LOWTIDE_TRY(readInstruction(each, profile));
  if (profile.spans.empty())
    return rt::badInput("holds no step that was measured; run lowtide-run --profile=FILE with --steps=1 or more", path);
  sortStably(profile.spans, [](const MeasuredSpan &a, const MeasuredSpan &b) {
    return a.begin != b.begin ? a.begin < b.begin : a.instruction < b.instruction;
  });
  return profile;
}

rt::Status report::checkProfile(const Report &report) {
  const Profile &profile = *report.profile;
  const Entry *entry = findEntry(report, profile.entry);
  if (!entry)
    return rt::badInput("the profile is of @" + rt::printable(profile.entry) + ", which the artifact does not have",
                        profile.path);
  for (const MeasuredSpan &span : profile.spans)
    if (span.instruction >= entry->instructions.size())
      return rt::badInput("the profile has instruction " + std::to_string(span.instruction) + ", @" + entry->name +
                              " has " + std::to_string(entry->instructions.size()) + "; it was altered",
                          profile.path);
  return rt::Status::ok();
}
