//===- ArtifactWriter.h - writes a `.tide` file section by section ---------===//
//
// Sections are streamed: the weights never have to be in memory together. The file appears under its name only when
// `finish` has succeeded; until then it is a temporary neighbour.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_ARTIFACTWRITER_H
#define LOWTIDE_RUNTIME_ARTIFACTWRITER_H

#include "runtime/ArtifactFormat.h"
#include "runtime/Sha256.h"
#include "runtime/Status.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide::rt {

/// Writes one artifact. The same calls give the same bytes.
///
///   auto writer = ArtifactWriter::create("step.tide");
///   LOWTIDE_TRY((*writer)->add("plan", plan.SerializeAsString()));   // deterministic serialization is the caller's
///   LOWTIDE_TRY((*writer)->begin("params"));
///   for (each piece) LOWTIDE_TRY((*writer)->append(data, bytes));    // any number of times
///   LOWTIDE_TRY((*writer)->end());
///   LOWTIDE_TRY((*writer)->add("code", elf));  LOWTIDE_TRY((*writer)->add("meta", json));
///   LOWTIDE_TRY((*writer)->finish());
class ArtifactWriter {
public:
  static Expected<std::unique_ptr<ArtifactWriter>> create(const std::string &path);
  /// Removes the temporary file if `finish` was not reached.
  ~ArtifactWriter();
  ArtifactWriter(const ArtifactWriter &) = delete;
  ArtifactWriter &operator=(const ArtifactWriter &) = delete;

  /// A whole section at once. Names: "plan", "params", "code", "meta"; each once, at most 31 bytes.
  Status add(std::string_view name, std::string_view bytes);

  /// A section in pieces: `begin`, any number of `append` and `appendZeros`, `end`.
  Status begin(std::string_view name);
  Status append(const void *data, size_t bytes);
  Status appendZeros(uint64_t bytes);
  Status end();
  /// Bytes of the open section so far.
  uint64_t sectionBytes() const { return sectionBytes_; }

  /// Writes the table and the header, syncs, and gives the file its name.
  Status finish();

private:
  ArtifactWriter(std::string path, std::string temporary, int file);
  Status writeAll(const void *data, size_t bytes);
  Status padTo(uint64_t alignment);

  std::string path_;
  std::string temporary_;
  int file_;
  uint64_t position_ = 0;
  uint64_t sectionBytes_ = 0;
  bool open_ = false;
  bool finished_ = false;
  Sha256 hash_;
  std::vector<format::Section> sections_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_ARTIFACTWRITER_H
